"""`python -m moldau.cli.metrics_page`: docs/metrics.md, made from the table of metrics."""

from __future__ import annotations

from typing import Any

from moldau.broker.metrics import COUNTER, TABLE, Row
from moldau.connect import metrics as connect_metrics
from moldau.flows import metrics
from moldau.http.metrics import Row as WorkerRow

HEAD = """# Metrics

`moldau broker --metrics-port 9308` serves the metrics of a broker in Prometheus's format at
`http://127.0.0.1:9308/metrics`. The last column names Kafka's metric with the same meaning; where Kafka has a rate, use
`rate()` of the counter. Most values are read when the page is requested, so metrics cost next to nothing otherwise.

Alert on `moldau_offline_partitions`, `moldau_under_min_isr_partitions` and `moldau_unclean_leader_elections_total` over
0, on a sum of `moldau_active_controller` that is not 1, and on `moldau_under_replicated_partitions` that stays over 0.

| metric | type | labels | meaning | in Kafka |
|---|---|---|---|---|
"""
TIMES = "| `moldau_request_seconds` | histogram | | Time that a request held the node, waits left out. | |"
WORKERS = """
## Workers

`moldau worker --metrics-port 9309` serves the metrics of a worker and of the [deployed applications](flows.md) that it
runs. Counters begin when the worker gets an application.

| metric | type | labels | meaning |
|---|---|---|---|
"""
CONNECT = """
## Connect

A worker of Connect serves its metrics at `/metrics` of its REST interface, under the names that Apache Connect's have
by way of a JMX exporter. Counters begin when the worker gets a task.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def markdown() -> str:
    """Return the page."""
    of_broker = HEAD + "".join(f"{_line(row)}\n" for row in TABLE) + f"{TIMES}\n"
    of_workers = WORKERS + "".join(f"{_worker_line(row)}\n" for row in metrics.TABLE)
    return of_broker + of_workers + CONNECT + "".join(f"{_worker_line(row)}\n" for row in connect_metrics.TABLE)


def _worker_line(row: WorkerRow[Any]) -> str:
    name, kind = (f"{row.name}_total", "counter") if row.is_counter else (row.name, "gauge")
    labels = ", ".join(f"`{label}`" for label in row.labels)
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (f"`{name}`", kind, labels, row.help)) + "|"


def _line(row: Row) -> str:
    is_counter = row.kind is COUNTER
    name = f"{row.name}_total" if is_counter else row.name
    labels = ", ".join(f"`{label}`" for label in row.labels)
    kafka = f"`{row.kafka}`" if row.kafka else ""
    cells = (f"`{name}`", "counter" if is_counter else "gauge", labels, row.help, kafka)
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


if __name__ == "__main__":
    print(markdown(), end="")
