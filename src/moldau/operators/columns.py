"""The records of a batch in columns: processed with the same result as one by one, but without an object for each.

Operators that can take columns have `process_all`, and say by `in_columns` whether they can in this task. Columns are
used where a batch takes one path, from a topic to its end: there it makes no difference whether a record has passed all
nodes before the next one comes. What cannot be done in columns raises InRows, and the batch is processed again record
by record. That may happen in the middle of a batch, so operators only change what is dropped with the failed attempt:
their own fields and the stores of the batch, never pages, global tables or anything else that another batch sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .context import Context
from .record import Headers, Record

NO_AGGREGATE = "an aggregate is None"


class InRows(Exception):
    """These records must be processed one by one. The text is the reason, the same for all records."""


@dataclass(slots=True)
class Columns:
    """The records of one edge in their order; on the edge of a table the values are the new ones. Lists are never
    changed once they are here: edges share them, and what is written for a list is reused while the list is the same.
    """

    keys: list[Any]
    values: list[Any]
    timestamps: list[int]
    headers: list[Headers] | None = None  # None: none has any
    partition: int = -1
    offsets: list[int] | None = None  # where the records were read; None below the first nodes

    def __len__(self) -> int:
        return len(self.keys)

    def keep(self, chosen: Sequence[int], context: Context, why: str) -> Columns:
        """Select as `where`, and count the others as dropped."""
        for _ in range(len(self) - len(chosen)):
            context.dropped(why)
        return self.where(chosen)

    def where(self, chosen: Sequence[int]) -> Columns:
        """Select the records at these places; the same object if these are all."""
        if len(chosen) == len(self.keys):
            return self
        headers = self.headers
        return Columns(
            [self.keys[at] for at in chosen],
            [self.values[at] for at in chosen],
            [self.timestamps[at] for at in chosen],
            None if headers is None else [headers[at] for at in chosen],
            self.partition,
            None if self.offsets is None else [self.offsets[at] for at in chosen],
        )

    def record(self, at: int) -> Record:
        return Record(self.keys[at], self.values[at], self.timestamps[at], self.headers[at] if self.headers else ())


@runtime_checkable
class KeepsTable(Protocol):
    """An operator that changes the store of a table, if it has one, and forwards the changes."""

    store: Any

    @property
    def keeps(self) -> bool: ...


class TakesColumns(Protocol):
    in_columns: bool

    def process_all(self, columns: Columns, /) -> Columns:
        """Return what goes on to the next node."""
        ...
