"""CREATE OR REPLACE: what may change in a source and in the query that fills it. These are ksqlDB's rules.

Two plans are compared from their last step to their sources. Filters and projections may come, go and change; every
other step must have its like in the new plan, in the same order. Joins and windowed aggregates cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from moldau.sql.catalogue import Columns, Source
from moldau.sql.errors import SqlError
from moldau.sql.printer import expression_text, quoted, schema_text
from moldau.sql.properties import duration_text
from moldau.sql.steps import (
    Aggregate,
    Filter,
    FlatMap,
    GroupBy,
    Read,
    Select,
    SelectKey,
    Step,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    inputs,
    kind_of,
)

RUNTIME = "ksql.runtime"

# What must be equal of the old and the new source, and under which name a refusal has it.
PROPERTIES: tuple[tuple[str, Callable[[Source], Any]], ...] = (
    ("type", lambda s: f"K{s.kind}"),
    ("topic", lambda s: s.topic),
    ("keyFormat", lambda s: s.key_format.name),
    ("valueFormat", lambda s: s.value_format.name),
    ("window", lambda s: s.window and s.window.kind),
    ("timestampColumn", lambda s: s.timestamp),
    ("history", lambda s: s.history_ms and duration_text(s.history_ms)),
)
JOINS = (StreamStreamJoin, StreamTableJoin, TableTableJoin)
PASSIVE = (Filter, Select)


def check_source(before: Source, after: Source) -> None:
    """Refuse a source that readers of the present one could not read."""
    faults = [
        f"{name} = {value(before)} which is not upgradeable to {value(after)}"
        for name, value in PROPERTIES
        if value(before) != value(after)
    ]
    columns = _columns_fault(before, after)
    if columns:
        faults.append(f"schema = {before.schema.text()} which is not upgradeable to {after.schema.text()}. ({columns})")
    if faults:
        listed = "\n\tAND ".join(f"DataSource '{quoted(before.name)}' has {fault}" for fault in faults)
        raise SqlError(f"Cannot upgrade data source: {listed}")


def _columns_fault(before: Source, after: Source) -> str:
    if before.schema.key != after.schema.key:
        missing = _listed(_missing(before.schema.key, after.schema.key))
        return (
            f"Key columns must be identical. The following key columns are changed, missing or reordered: [{missing}]"
        )
    changed = _missing(before.schema.value, after.schema.value)
    return f"The following columns are changed, missing or reordered: [{_listed(changed)}]" if changed else ""


def _missing(before: Columns, after: Columns) -> Columns:
    """Return the columns that are not at their place any more; new ones may only follow."""
    return tuple(column for at, column in enumerate(before) if after[at : at + 1] != (column,))


def _listed(columns: Columns) -> str:
    return schema_text([(name, kind, "") for name, kind in columns])


def check_query(before: Step, after: Step) -> None:
    """Refuse a query that could not go on where the present one is."""
    old, new = list(_enforced(before)), list(_enforced(after))
    for one in (*old, *new):
        name = _name(one)
        if isinstance(one, JOINS) or (isinstance(one, Aggregate) and one.time_window is not None):
            raise SqlError(f"Upgrades not yet supported for {name}")
    for one, other in zip(old, new, strict=False):
        if type(one) is not type(other) or kind_of(one) != kind_of(other):
            raise SqlError(
                f"Query is not upgradeable. Cannot add a {_name(other)} step that is not in the original query plan."
                if len(new) > len(old)
                else _differs(one, "class", _name(one), _name(other))
            )
        for name, wanted, found in _compared(one, other):
            if wanted != found:
                raise SqlError(_differs(one, name, wanted, found))
    if len(old) != len(new):
        longer = (old if len(old) > len(new) else new)[min(len(old), len(new))]
        raise SqlError(
            f"Query is not upgradeable. Cannot add a {_name(longer)} step that is not in the original query plan."
        )


def check_runtime(query_id: str, before: str, after: str) -> None:
    """Refuse a query that is to run elsewhere than the one whose place it takes."""
    if after != before:
        raise SqlError(f"The query {query_id} runs with {RUNTIME}={before}, and cannot change that.")


def check_state(before: Step, after: Step) -> None:
    """Refuse a query that would read the state of the present one otherwise than it was written."""
    for one, other in zip(_enforced(before), _enforced(after), strict=True):
        match one, other:
            case (Aggregate(), Aggregate()) if len(one.calls) != len(other.calls):
                what = "the aggregate functions of a query on Spark"
            case (Read(kind="TABLE"), Read()) if one.schema != other.schema:
                what = "the columns of a table that a query on Spark reads"
            case _:
                continue
        raise SqlError(
            f"CREATE OR REPLACE cannot change {what}, which keeps its state. Terminate the query and create another "
            "one; queries with ksql.runtime=local can be replaced."
        )


def _enforced(step: Step) -> Iterator[Step]:
    if not isinstance(step, PASSIVE):
        yield step
    below = inputs(step)
    if below and not isinstance(step, JOINS):
        yield from _enforced(below[0])


def _compared(one: Step, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what must be equal of two steps of one type: a name and both values."""
    match one:
        case Read():
            yield "topicName", one.source.topic, other.source.topic
            yield "formats", _formats(one), _formats(other)
            yield "timestampColumn", one.source.timestamp, other.source.timestamp
        case GroupBy():
            yield "groupByExpressions", _texts(one.keys), _texts(other.keys)
        case SelectKey():
            yield "keyExpressions", _texts(one.keys), _texts(other.keys)
        case FlatMap():
            yield "tableFunctions", _texts(call for _, call in one.calls), _texts(call for _, call in other.calls)
        case Aggregate():
            yield "columns not part of aggregate", _names(one.columns), _names(other.columns)
            kept = other.calls[: len(one.calls)]
            yield "aggregate functions", _texts(one.calls), _texts(kept)
        case _:
            return


def _formats(step: Read) -> str:
    return f"{step.source.key_format.name}/{step.source.value_format.name}"


def _texts(expressions: Any) -> str:
    return f"[{', '.join(expression_text(each) for each in expressions)}]"


def _names(columns: tuple[str, ...]) -> str:
    return f"[{', '.join(map(quoted, columns))}]"


def _name(step: Step) -> str:
    """Return ksqlDB's name of a step."""
    match step:
        case StreamStreamJoin() | StreamTableJoin() | TableTableJoin():
            return "ForeignKeyTableTableJoin" if getattr(step, "foreign_key", None) else type(step).__name__
        case Aggregate():
            first = "Stream" if kind_of(step.input) == "STREAM" else "Table"
            return f"{first}{'Windowed' if step.time_window is not None else ''}Aggregate"
        case Read():
            return f"{'Windowed' if step.window else ''}{step.kind.capitalize()}Source"
        case _:
            return f"{kind_of(step).capitalize()}{type(step).__name__}"


def _differs(step: Step, what: str, one: Any, other: Any) -> str:
    return (
        f"Query is not upgradeable. Plan step of type {_name(step)} must have matching {what}. "
        f"Values differ: {one} vs. {other}"
    )
