"""What only the leading worker does, beside answering requests: fence predecessors, and clear away what is left."""

from __future__ import annotations

import logging

from moldau.client import Client, check, transaction
from moldau.client import messages as m
from moldau.connect import plugins
from moldau.connect.config_topic import STOPPED, Fencing, Row, TaskConfig, Tasks
from moldau.connect.config_topic import Commit as Committed
from moldau.connect.worker import Wanted, Worker

log = logging.getLogger(__name__)


class Leading:
    """The duties of a leader, in each round of its worker."""

    def __init__(self, worker: Worker, client: Client) -> None:
        self._worker, self._client = worker, client

    def round(self) -> None:
        assert self._worker.group is not None
        if not self._worker.group.leads:
            return
        wanted = self._worker.wanted()
        for name, one in wanted.items():
            if one.is_unfenced and self._is_exactly_once(one):
                self._fence(name, one.tasks)
        clear(self._worker)

    def _is_exactly_once(self, one: Wanted) -> bool:
        plugin = plugins.find(one.config.get("connector.class") or "")
        return plugin is not None and self._worker.is_exactly_once(plugin.load())

    def _fence(self, name: str, tasks: Tasks) -> None:
        """Fence all tasks of before, so that none of them writes beside its successors, and note how many there are."""
        before = self._worker.state.fenced.get(name, 0)
        for number in range(before):
            fence(self._client, f"{self._worker.settings.group_id}-{name}-{number}")
        log.info("fenced %s tasks of %s", before, name)
        self._worker.configs.update(lambda: ([Fencing(name, len(tasks.configs))], None))


def clear(worker: Worker) -> None:
    """Remove what is said of connectors and tasks that there are no more, the topics of connectors too (KIP-558)."""
    wanted = worker.wanted()

    def left() -> list[tuple[str, int | None]]:
        return [unit for unit in worker.said.statuses if is_left(unit, wanted)]

    def used() -> list[tuple[str, str]]:
        return [(name, topic) for name, topics in worker.said.topics.items() if name not in wanted for topic in topics]

    worker.forget(worker.statuses.look(left))
    worker.forget_topics(worker.statuses.look(used))


def is_left(unit: tuple[str, int | None], wanted: dict[str, Wanted]) -> bool:
    name, task = unit
    if name not in wanted:
        return True
    return task is not None and (task >= len(wanted[name].tasks.configs) or wanted[name].target == STOPPED)


def fence(client: Client, transactional_id: str) -> None:
    """Take over a transactional id: its open transaction is aborted, and its producer can write no more."""
    request = m.InitProducerIdRequest(transactional_id, client.config["transaction.timeout.ms"])
    check(client.send(request, transaction(transactional_id)))


def task_rows(name: str, configs: list[dict[str, str]]) -> list[Row]:
    """Return the records of a new set of tasks."""
    rows: list[Row] = [TaskConfig(name, number, config) for number, config in enumerate(configs)]
    return [*rows, Committed(name, len(configs))]
