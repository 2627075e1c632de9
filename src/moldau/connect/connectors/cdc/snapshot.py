"""Snapshots: what stands in the tables when capture begins, and again when somebody asks for it.

`marked` numbers nothing and holds nothing but one row: it tells the first and the last row of a snapshot and of each
table apart, as `source.snapshot` of an envelope must. `Incremental` re-reads tables while the stream goes on.

An incremental snapshot goes chunk by chunk, in the order of the key. A chunk was read at some moment of the database;
the stream may be before that moment. Until the stream has passed it (`passed`), changes that the chunk cannot contain
remove their keys from it (`seen`), for they are newer; then what is left is sent. So a row never overwrites a change
that came after it, and nothing is locked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moldau.connect.connectors.cdc.envelope import FIRST, FIRST_OF_TABLE, LAST, LAST_OF_TABLE, TRUE
from moldau.connect.errors import ConnectError

T = TypeVar("T")
R = TypeVar("R")
PROGRESS = "incremental_snapshot"  # in offsets
EXECUTE, STOP, PAUSE, RESUME = "execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot"


def marked(rows: Iterable[tuple[T, R]]) -> Iterator[tuple[T, R, str]]:
    """Yield each row of (table, row) pairs, which come table by table, with its mark. It looks one row ahead."""
    before: T | None = None
    held: tuple[T, R] | None = None
    is_first = True
    for one in rows:
        if held is not None:
            yield *held, _mark(is_first, held[0] != before, one[0] != held[0], False)
            is_first, before = False, held[0]
        held = one
    if held is not None:
        yield *held, _mark(is_first, held[0] != before, True, True)


def _mark(is_first: bool, begins: bool, ends: bool, is_last: bool) -> str:
    if is_last:
        return LAST
    if is_first:
        return FIRST
    return LAST_OF_TABLE if ends else FIRST_OF_TABLE if begins else TRUE


@dataclass(slots=True)
class Incremental:
    """Which tables are yet to be read again, and how far the first of them was. It reads nothing itself."""

    tables: list[str] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)
    last: Sequence[Any] | None = None  # the key up to which the first table was sent
    is_paused: bool = False
    chunk: dict[tuple[Any, ...], Any] | None = None  # rows by key, read but not sent
    end: Any = None  # the position of the database that the stream must reach before the chunk is sent

    @staticmethod
    def of(offset: Mapping[str, Any] | None) -> Incremental:
        """Go on with what an offset says."""
        stored = (offset or {}).get(PROGRESS)
        if not stored:
            return Incremental()
        found = json.loads(stored)
        return Incremental(found["tables"], found["conditions"], found["last"], found["paused"])

    @property
    def wants_chunk(self) -> bool:
        return bool(self.tables) and not self.is_paused and self.chunk is None

    def stored(self, last: Sequence[Any] | None = None) -> dict[str, str]:
        """Return what an offset must say; `last` is the key of the row that the offset belongs to."""
        if not self.tables:
            return {}
        found = {
            "tables": self.tables,
            "conditions": self.conditions,
            "last": self.last if last is None else list(last),
            "paused": self.is_paused,
        }
        return {PROGRESS: json.dumps(found)}

    def signal(self, kind: str, data: str | None) -> bool:
        """Take a row of the signal table; return False if it is not for snapshots. ConnectError if it is not valid."""
        if kind not in (EXECUTE, STOP, PAUSE, RESUME):
            return False
        try:
            given = json.loads(data or "{}")
            names = [str(one) for one in given.get("data-collections") or ()]
            conditions = {
                str(one["data-collection"]): str(one["filter"]) for one in given.get("additional-conditions") or ()
            }
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            raise ConnectError(f"The signal {kind} has data that is not understood: {error}") from None
        match kind:
            case "execute-snapshot":
                self.tables += [one for one in names if one not in self.tables]
                self.conditions |= conditions
            case "stop-snapshot":
                self._stop(names)
            case _:
                self.is_paused = kind == PAUSE
        return True

    def _stop(self, names: list[str]) -> None:
        if not names or (self.tables and self.tables[0] in names):
            self.chunk, self.end, self.last = None, None, None
        self.tables = [one for one in self.tables if names and one not in names]

    def took(self, rows: Mapping[tuple[Any, ...], Any], end: Any) -> None:
        """Take a chunk; an empty one ends the table."""
        if rows:
            self.chunk, self.end = dict(rows), end
        else:
            self.next_table()

    def next_table(self) -> None:
        self.conditions.pop(self.tables[0], None)
        self.tables, self.last, self.chunk, self.end = self.tables[1:], None, None, None

    def seen(self, table: str, key: tuple[Any, ...]) -> None:
        """Forget a row that has changed since the chunk was read."""
        if self.chunk is not None and self.tables[0] == table and key in self.chunk:
            self.chunk[key] = None  # not removed: the last key says where the next chunk begins

    def passed(self, position: Any) -> list[tuple[tuple[Any, ...], Any]]:
        """Return the rows to send if the stream has come far enough, and none otherwise."""
        if self.chunk is None or position < self.end:
            return []
        rows, self.last = list(self.chunk.items()), list(next(reversed(self.chunk)))
        self.chunk = self.end = None
        return [(key, row) for key, row in rows if row is not None]
