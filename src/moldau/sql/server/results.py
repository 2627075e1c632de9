"""The rows of a query, as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.sql.printer import schema_text, type_text
from moldau.sql.server.local import LocalQuery
from moldau.sql.server.topics import Positions
from moldau.sql.transient.nodes import row_nodes
from moldau.sql.tree import Type

LIMIT_REACHED, COMPLETED = "Limit Reached", "Query Completed"
Column = tuple[str, Type, bool]  # the name, the type, whether it is a part of the key


@dataclass(frozen=True, slots=True)
class ResultRow:
    columns: list[Any]
    tombstone: bool = False


@dataclass(slots=True)
class Results:
    """An answer in rows. `poll` returns those that are there now, `done` says that there will be no more.

    `final` is the message at the end; a lookup in a table has none. `query_id` is None for a lookup, too.
    """

    query_id: str | None
    columns: Sequence[Column]
    poll: Callable[[], list[ResultRow]]
    done: bool = False
    final: str | None = None
    close: Callable[[], None] = lambda: None
    positions: Callable[[], dict[str, Positions]] = dict  # up to where it has read its topics
    heads: dict[str, bytes] = field(default_factory=dict)  # the first bytes of an answer, by their form
    text: str = ""  # what was asked, where the query runs on
    is_there: bool = False  # whether `poll` has all rows, and neither waits nor leaves anything to close

    @property
    def schema(self) -> str:
        return schema_text([(name, kind, " KEY" if key else "") for name, kind, key in self.columns])

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.columns]

    @property
    def types(self) -> list[str]:
        return [type_text(kind, lambda name: f"`{name}`") for _, kind, _ in self.columns]


def immediate(columns: Sequence[Column], rows: Iterator[tuple[Any, ...]]) -> Results:
    """Return the rows of a lookup, which are all there."""
    types = [kind for _, kind, _ in columns]
    return given(columns, [ResultRow(row_nodes(row, types)) for row in rows])


def given(columns: Sequence[Column], found: list[ResultRow]) -> Results:
    """Return rows that are all there."""
    results = Results(None, columns, list, is_there=True)

    def poll() -> list[ResultRow]:
        results.done = True
        return found

    results.poll = poll
    return results


@dataclass(slots=True)
class Pushed:
    """A running push query: it reads on until its limit, or until `ends` for a pull query on a stream."""

    query: LocalQuery
    types: Sequence[Type]
    tombstone: Callable[[Any], tuple[Any, ...]] | None  # None: a stream, whose records without a value are no rows
    limit: int | None
    ends: dict[str, Positions] | None = None
    waiting: deque[ResultRow] = field(default_factory=deque)
    sent: int = 0

    def emit(self, key: Any, row: tuple[Any, ...] | None, timestamp: int) -> None:
        if row is not None:
            self.waiting.append(ResultRow(row_nodes(row, self.types)))
        elif self.tombstone is not None:
            self.waiting.append(ResultRow(row_nodes(self.tombstone(key), self.types), True))

    def rows(self, results: Results) -> list[ResultRow]:
        """Return the rows that are there; tell `results` when it is over."""
        if self.limit is None or self.sent + len(self.waiting) < self.limit:
            self.query.step()
        room = len(self.waiting) if self.limit is None else min(len(self.waiting), self.limit - self.sent)
        found = [self.waiting.popleft() for _ in range(room)]
        self.sent += len(found)
        if self.limit is not None and self.sent >= self.limit:
            results.done, results.final = True, LIMIT_REACHED
        elif self.ends is not None and self._at_end():
            results.done, results.final = True, COMPLETED
        return found

    def _at_end(self) -> bool:
        assert self.ends is not None
        return all(
            self.query.positions[topic].get(partition, 0) >= end
            for topic, ends in self.ends.items()
            for partition, end in ends.items()
        )


def now_ms() -> int:
    return time.time_ns() // 1_000_000
