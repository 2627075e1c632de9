"""Metrics of a worker for Prometheus, under the names that Connect's have by way of a JMX exporter, as rows.

Tasks count as they go (`Figures`); everything is read when `GET /metrics` asks for it. Counts begin when a worker gets
a task, and go on when the task is restarted there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moldau.http import metrics
from moldau.http.metrics import Row, Values

if TYPE_CHECKING:
    from moldau.connect.worker import Worker

Task = tuple[str, int]


@dataclass(slots=True)
class Figures:
    """What a task has counted; `is_source` is None until it runs."""

    is_source: bool | None = None
    polled: int = 0
    written: int = 0
    read: int = 0
    sent: int = 0
    commits: int = 0
    failed_commits: int = 0
    errors: int = 0
    failures: int = 0
    skipped: int = 0
    retries: int = 0
    logged: int = 0
    letters: int = 0


@dataclass(frozen=True, slots=True)
class Now:
    """What a worker has, at the time of a request."""

    tasks: Mapping[Task, Figures]
    states: Mapping[tuple[str, int | None], str]


def of_tasks(count: Callable[[Figures], int], is_source: bool | None = None) -> Callable[[Now], Values]:
    """Read a count of all tasks, or of those of one kind."""
    return lambda now: (
        ((name, str(number)), count(one))
        for (name, number), one in now.tasks.items()
        if is_source is None or one.is_source is is_source
    )


def counted(is_task: bool) -> Callable[[Now], Values]:
    return lambda now: [((), sum((unit[1] is not None) is is_task for unit in now.states))]


def states(is_task: bool) -> Callable[[Now], Values]:
    """Return 1 for the state that each unit has."""
    return lambda now: (
        ((name, *(() if number is None else (str(number),)), state.lower()), 1)
        for (name, number), state in now.states.items()
        if (number is not None) is is_task
    )


TASK = ("connector", "task")
SOURCE, SINK = "kafka_connect_source_task_metrics_", "kafka_connect_sink_task_metrics_"
WORKER = "kafka_connect_connect_worker_metrics_"
TABLE: tuple[Row[Now], ...] = (
    Row(SOURCE + "source_record_poll", "Records that a source has polled.", TASK,
        of_tasks(lambda f: f.polled, True), True),
    Row(SOURCE + "source_record_write", "Records that went to Kafka.", TASK, of_tasks(lambda f: f.written, True), True),
    Row(SINK + "sink_record_read", "Records that a sink has read.", TASK, of_tasks(lambda f: f.read, False), True),
    Row(SINK + "sink_record_send", "Records that were put, after transforms.", TASK,
        of_tasks(lambda f: f.sent, False), True),
    Row(SINK + "offset_commit_completion", "Commits of offsets.", TASK, of_tasks(lambda f: f.commits, False), True),
    Row("moldau_connect_offset_commit_failures", "Commits of offsets that failed.", TASK,
        of_tasks(lambda f: f.failed_commits, False), True),
    *(
        Row(f"kafka_connect_task_error_metrics_{name}", doc, TASK, of_tasks(count))  # Connect has them as gauges
        for name, doc, count in (
            ("total_record_errors", "Operations on records that failed.", lambda f: f.errors),
            ("total_record_failures", "Records that were given up after retries.", lambda f: f.failures),
            ("total_records_skipped", "Records that were left out.", lambda f: f.skipped),
            ("total_retries", "Operations that were tried again.", lambda f: f.retries),
            ("total_errors_logged", "Errors that were logged.", lambda f: f.logged),
            ("deadletterqueue_produce_requests", "Dead letters.", lambda f: f.letters),
        )
    ),
    Row(WORKER + "connector_count", "Connectors of this worker.", (), counted(False)),
    Row(WORKER + "task_count", "Tasks of this worker.", (), counted(True)),
    Row("kafka_connect_connector_metrics_status", "The state of a connector.", ("connector", "status"), states(False)),
    Row("kafka_connect_connector_task_metrics_status", "The state of a task.", (*TASK, "status"), states(True)),
)  # fmt: skip


def page(worker: Worker, figures: Mapping[Task, Figures]) -> bytes:
    """Return the metrics of a worker, of the tasks that it has now."""
    carried = {unit: one.state for unit, one in list(worker.carried.items())}
    tasks = {unit: one for unit, one in list(figures.items()) if unit in carried}
    return metrics.page(TABLE, Now(tasks, carried))
