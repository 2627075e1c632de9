"""The aggregates of a GROUP BY: the row that its store keeps, and how it changes.

The row holds the last value of each plain column, then the state of each aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moldau.sql import functions
from moldau.sql.analysis.aggregation import aggregate_function
from moldau.sql.catalogue import Schema
from moldau.sql.steps import Aggregate, Select
from moldau.sql.tree import Column

Row = tuple[Any, ...]


class Aggregation:
    """All aggregates of one step."""

    def __init__(self, step: Aggregate, settings: Mapping[str, Any]) -> None:
        prepared = step.input.input
        assert isinstance(prepared, Select), "an aggregate follows its Prepare step"
        columns = dict(prepared.schema.value)
        places = {name: at for at, (name, _) in enumerate(prepared.schema.value)}
        originals = dict(prepared.columns)
        self.plain = tuple(places[name] for name in step.columns)
        self.calls: list[tuple[functions.Aggregate, tuple[int, ...]]] = []
        for call in step.calls:
            made = aggregate_function(call, columns, originals, settings)
            args = [places[arg.name] for arg in call.args if isinstance(arg, Column)]
            self.calls.append((made, tuple(args[: made.inputs])))
        states = tuple((f"KSQL_AGG_VARIABLE_{at}", made.state_type) for at, (made, _) in enumerate(self.calls))
        self.schema = Schema(step.schema.key, (*((name, columns[name]) for name in step.columns), *states))
        self.offset = len(self.plain)

    def init(self) -> Row:
        return (*(None for _ in self.plain), *(made.init() for made, _ in self.calls))

    def add(self, key: Any, row: Row, kept: Row) -> Row:
        return self._change(row, kept, lambda made: made.add)

    def undo(self, key: Any, row: Row, kept: Row) -> Row:
        return self._change(row, kept, lambda made: made.undo)

    def _change(self, row: Row, kept: Row, which: Callable[[functions.Aggregate], Any]) -> Row:
        offset = self.offset
        states = (
            which(made)(kept[offset + at], *(row[place] for place in places))
            for at, (made, places) in enumerate(self.calls)
        )
        return (*(row[place] for place in self.plain), *states)

    def merge(self, key: Any, one: Row, other: Row) -> Row:
        """Merge two sessions into one."""
        offset = self.offset
        plain = (a if a is not None else b for a, b in zip(one[:offset], other[:offset], strict=True))
        states = (made.merge(one[offset + at], other[offset + at]) for at, (made, _) in enumerate(self.calls))
        return (*plain, *states)

    def results(self, row: Row) -> Row:
        offset = self.offset
        return (*row[:offset], *(made.result(row[offset + at]) for at, (made, _) in enumerate(self.calls)))
