"""The aggregates of a GROUP BY: the row that its store keeps, and how it changes.

The row holds the last value of each plain column, then the state of each aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        self.init = self._init()
        self.add = self._change([made.add for made, _ in self.calls])
        self.undo = self._change([made.undo for made, _ in self.calls])
        self.results = self._results()

    def _init(self) -> Callable[[], Row]:
        parts = ["None"] * len(self.plain) + [f"call{at}()" for at in range(len(self.calls))]
        return _generated("", parts, [made.init for made, _ in self.calls])

    def _change(self, functions: Sequence[Any]) -> Callable[[Any, Row, Row], Row]:
        """Return a function of key, row and what the store keeps, in one expression."""
        parts = [f"row[{place}]" for place in self.plain]
        for at, (_, places) in enumerate(self.calls):
            arguments = "".join(f", row[{place}]" for place in places)
            parts.append(f"call{at}(kept[{self.offset + at}]{arguments})")
        return _generated("key, row, kept", parts, functions)

    def merge(self, key: Any, one: Row, other: Row) -> Row:
        """Merge two sessions into one."""
        offset = self.offset
        plain = (a if a is not None else b for a, b in zip(one[:offset], other[:offset], strict=True))
        states = (made.merge(one[offset + at], other[offset + at]) for at, (made, _) in enumerate(self.calls))
        return (*plain, *states)

    def _results(self) -> Callable[[Row], Row]:
        parts = [f"row[{place}]" for place in range(self.offset)]
        parts += [f"call{at}(row[{self.offset + at}])" for at in range(len(self.calls))]
        return _generated("row", parts, [made.result for made, _ in self.calls])


def _generated(arguments: str, parts: Sequence[str], functions: Sequence[Any]) -> Callable[..., Row]:
    """Make a function that returns a row; only numbers and names of this file reach its source."""
    names: dict[str, Any] = {f"call{at}": function for at, function in enumerate(functions)}
    exec(f"def made({arguments}): return ({''.join(f'{part}, ' for part in parts)})", names)
    return names["made"]
