"""Metrics for Prometheus as rows of a table. All is read when the page is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

Now = TypeVar("Now")
Values = Iterable[tuple[tuple[str, ...], float | None]]


@dataclass(frozen=True, slots=True)
class Row(Generic[Now]):
    """One metric: its name, what it says, its labels, and how it is read from what is there now."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[Now], Values]
    is_counter: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Collector(Generic[Now]):
    """A collector of prometheus_client."""

    table: Sequence[Row[Now]]
    now: Now

    def collect(self) -> Iterator[Metric]:
        for row in self.table:
            family = (CounterMetricFamily if row.is_counter else GaugeMetricFamily)(
                row.name, row.help, labels=row.labels
            )
            for labels, value in row.read(self.now):
                if value is not None:
                    family.add_metric(labels, value)
            yield family


def page(table: Sequence[Row[Now]], now: Now) -> bytes:
    """Return the metrics of a table; a value of None is left out."""
    registry = CollectorRegistry()
    registry.register(_Collector(table, now))
    return generate_latest(registry)
