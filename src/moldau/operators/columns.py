"""Records of a batch side by side: the same work as one record after the other, without an object for each.

Operators that can take them have `process_all`, and say by `in_columns` whether they can here. They are used where a
batch goes one way, from a topic to its end: there nobody sees whether a record went all its way before the next one
came. What cannot be done in columns raises InRows, and the batch is processed again record by record. That may happen
in the middle of a batch, so operators only change what is dropped with the failed try: their own fields and the stores
of the batch, never pages, global tables or anything else that another batch sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from .record import Headers, Record

NO_AGGREGATE = "an aggregate is None"


class InRows(Exception):
    """These records must be processed one by one. The text is the reason, the same for all records."""


@dataclass(slots=True)
class Columns:
    """Records of one edge in their order; on the edge of a table the values are the new ones. Lists are never changed
    once they are here: edges share them, and what is still the same list is still written in the same way.
    """

    keys: list[Any]
    values: list[Any]
    timestamps: list[int]
    headers: list[Headers] | None = None  # None: none has any

    def __len__(self) -> int:
        return len(self.keys)

    def where(self, chosen: Sequence[int]) -> Columns:
        """Those at these places; the same object if all are."""
        if len(chosen) == len(self.keys):
            return self
        headers = self.headers
        return Columns(
            [self.keys[at] for at in chosen],
            [self.values[at] for at in chosen],
            [self.timestamps[at] for at in chosen],
            None if headers is None else [headers[at] for at in chosen],
        )

    def record(self, at: int) -> Record:
        return Record(self.keys[at], self.values[at], self.timestamps[at], self.headers[at] if self.headers else ())


@runtime_checkable
class KeepsTable(Protocol):
    """An operator that changes the store of a table, if it has one, and tells the next node."""

    store: Any

    @property
    def keeps(self) -> bool: ...


class TakesColumns(Protocol):
    in_columns: bool

    def process_all(self, columns: Columns, /) -> Columns:
        """What goes on to the next node."""
        ...
