"""GROUP BY: aggregates, windows and HAVING."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moldau.sql import functions
from moldau.sql.analysis.checks import (
    and_list,
    by_name,
    calls_of,
    check_condition,
    check_known,
    columns_in,
    columns_outside,
    has_aggregate,
    typed,
)
from moldau.sql.analysis.projection import Item, KeyRule
from moldau.sql.analysis.scope import Aliases
from moldau.sql.catalogue import BOUNDS, Columns, Schema
from moldau.sql.errors import SqlError
from moldau.sql.format_rules import check_keys, key_features, refusal
from moldau.sql.printer import expression_text
from moldau.sql.properties import UNITS_MS
from moldau.sql.steps import Aggregate, Filter, Formats, GroupBy, Select, Step, TimeWindow, kind_of
from moldau.sql.tree import Call, Column, Deref, Expression, Node, Span, Type, Window, rewrite
from moldau.sql.typing import type_of

DAY_MS = 86_400_000
UNIT_MS = {f"{unit}S": size for unit, size in UNITS_MS.items()} | {"WEEKS": 7 * DAY_MS}


def milliseconds(span: Span) -> int:
    size = UNIT_MS.get(span.unit)
    if size is None:
        raise SqlError(f"{span.unit} is not a unit of windows.")
    return span.count * size


def time_window(window: Window, final: bool) -> TimeWindow:
    """Return the window in milliseconds. Without GRACE PERIOD it is open for a day; EMIT FINAL closes it at its end."""
    size = milliseconds(window.size)
    advance = size if window.advance is None else milliseconds(window.advance)
    default = 0 if final else max(DAY_MS - size, 0)
    grace = default if window.grace is None else milliseconds(window.grace)
    retention = None if window.retention is None else milliseconds(window.retention)
    return TimeWindow(window.kind, size, advance, grace, retention, final)


@dataclass(frozen=True, slots=True)
class Grouped:
    """The parts of a query with GROUP BY, over the rows of the step before."""

    keys: tuple[Expression, ...]
    items: Sequence[Item]
    having: Expression | None
    window: TimeWindow | None
    rowtime: Column


def with_arguments(expression: Expression, rowtime: Column) -> Expression:
    """Give COUNT(*) the argument that ksqlDB gives it."""

    def change(node: Node) -> Node | None:
        if isinstance(node, Call) and not node.args and functions.kind(node.name) == "aggregate":
            return replace(node, args=(rowtime,))
        return None

    return rewrite(expression, change)


def check_ungrouped(items: Sequence[Item], kind: str, rowtime: Column) -> None:
    """Refuse aggregates in a query without GROUP BY."""
    for item in items:
        found = calls_of(with_arguments(item.value, rowtime), "aggregate")
        if found:
            raise SqlError(
                f"CREATE {kind} AS SELECT statement does not support aggregate function "
                f"[{', '.join(expression_text(call) for call in found)}] without a GROUP BY clause."
            )


def _check(grouped: Grouped, before: Step) -> None:
    keys = frozenset(grouped.keys)
    if not grouped.keys:
        raise SqlError("GROUP BY requires at least one expression")
    for key in grouped.keys:
        for call in calls_of(key, "aggregate"):
            raise SqlError(f"GROUP BY does not support aggregate functions: {call.name} is an aggregate function.")
        for call in calls_of(key, "table"):
            raise SqlError(f"GROUP BY does not support table functions: {call.name} is a table function.")
    for expression in _expressions(grouped):
        check_known(expression)
    _check_nesting(grouped)
    _check_bounds(grouped)
    windowed = frozenset(dict(BOUNDS)) if grouped.window is not None else frozenset[str]()
    uncovered = [
        expression_text(item.value)
        for item in grouped.items
        if any(column.name not in windowed for column in columns_outside(item.value, keys))
    ]
    if uncovered:
        raise SqlError(
            f"Non-aggregate SELECT expression(s) not part of GROUP BY: {', '.join(uncovered)}\n"
            "Either add the column(s) to the GROUP BY or remove them from the SELECT."
        )
    if grouped.having is not None and (outside := columns_outside(grouped.having, keys)):
        raise SqlError(
            f"Non-aggregate HAVING expression not part of GROUP BY: {', '.join(expression_text(c) for c in outside)}\n"
            "Consider switching the HAVING clause to a WHERE clause before the GROUP BY."
        )
    if not any(map(has_aggregate, _expressions(grouped))):
        raise SqlError("GROUP BY requires aggregate functions in either the SELECT or HAVING clause.")


def _expressions(grouped: Grouped) -> list[Expression]:
    having = [] if grouped.having is None else [grouped.having]
    return [item.value for item in grouped.items] + having


def _check_nesting(grouped: Grouped) -> None:
    for expression in _expressions(grouped):
        for call in calls_of(expression, "aggregate"):
            if any(has_aggregate(arg) for arg in call.args):
                text = expression_text(call).replace("COUNT(*)", "COUNT()")
                raise SqlError(f"Aggregate functions can not be nested: {text}")
        if calls_of(expression, "table"):
            raise SqlError("Table functions cannot be used with aggregations.")


def _check_bounds(grouped: Grouped) -> None:
    if grouped.window is None:
        return
    clauses = [*grouped.keys] + ([] if grouped.having is None else [grouped.having])
    clauses += [arg for item in grouped.items for call in calls_of(item.value, "aggregate") for arg in call.args]
    for name in columns_in(clauses):
        if name in dict(BOUNDS):
            raise SqlError(
                f"Window bounds column {name} can only be used in the SELECT clause of windowed aggregations and can "
                "not be passed to aggregate functions.\nSee https://github.com/confluentinc/ksql/issues/4397"
            )


def aggregate(grouped: Grouped, before: Step, formats: Formats, aliases: Aliases) -> tuple[Step, KeyRule, list[Item]]:
    """Make the steps of GROUP BY, and return what SELECT must contain and its columns over the result."""
    _check(grouped, before)
    having = None if grouped.having is None else with_arguments(grouped.having, grouped.rowtime)
    items = [Item(item.name, with_arguments(item.value, grouped.rowtime)) for item in grouped.items]
    expressions = [item.value for item in items] + ([] if having is None else [having])
    calls = [call for e in expressions for call in calls_of(e, "aggregate")]  # each its own, as in ksqlDB
    prepared, calls, renamed = _prepare(grouped, expressions, calls, before)
    group = _group(grouped, prepared, before, formats, aliases)
    formats = group.formats
    step = _aggregate(group, prepared, calls, grouped.window, formats)
    variables = {original: f"KSQL_AGG_VARIABLE_{at}" for original, at in renamed.items()}

    def change(node: Node) -> Node | None:
        return Column(variables[node]) if isinstance(node, Call) and node in variables else None

    result: Step = step
    if having is not None:
        condition = rewrite(having, change)
        try:
            check_condition(condition, by_name(step.schema), "HAVING")
        except SqlError as error:
            raise SqlError(_with_calls(str(error), variables)) from None
        result = Filter("Aggregate/HavingFilter", step, condition)
    keys = tuple((key, expression_text(key)) for key in grouped.keys)
    rule = KeyRule(keys, "grouping expression", grouped=True)
    return result, rule, [Item(item.name, rewrite(item.value, change)) for item in items]


def _with_calls(message: str, variables: Mapping[Call, str]) -> str:
    """Write aggregates in a message as the statement has them."""
    names = {name: expression_text(call) for call, name in variables.items()}
    return re.sub(r"KSQL_AGG_VARIABLE_\d+", lambda found: names[found[0]], message)


def _prepare(
    grouped: Grouped, expressions: list[Expression], calls: list[Call], before: Step
) -> tuple[Select, list[Call], dict[Call, int]]:
    """Make the step that computes the arguments of aggregates; other columns stay as they are."""
    columns = by_name(before.schema)
    bounds = frozenset(dict(BOUNDS)) if grouped.window is not None else frozenset[str]()
    names = [name for name in columns_in([*expressions, *grouped.keys]) if name not in bounds]
    chosen: dict[str, Expression] = {name: Column(name) for name in names}
    renamed: dict[Call, int] = {}
    computed: list[Call] = []
    for call in calls:
        args: list[Expression] = []
        for arg in call.args:
            if isinstance(arg, Column):
                args.append(arg)
                continue
            known = next((name for name, value in chosen.items() if value == arg), None)
            if known is None:
                known = f"KSQL_INTERNAL_COL_{len(chosen)}"
                chosen[known] = arg
            args.append(Column(known))
        renamed.setdefault(call, len(computed))
        computed.append(replace(call, args=tuple(args)))
    value: list[tuple[str, Type]] = [(name, _argument_type(e, columns)) for name, e in chosen.items()]
    return (
        Select("Aggregate/Prepare", Schema(before.schema.key, tuple(value)), before, tuple(chosen.items())),
        computed,
        renamed,
    )


def _argument_type(expression: Expression, columns: dict[str, Type]) -> Type:
    try:
        return typed(expression, columns)
    except SqlError as error:
        raise SqlError(f"Invalid Select: {error}") from None


def _group(grouped: Grouped, prepared: Select, before: Step, formats: Formats, aliases: Aliases) -> GroupBy:
    columns = by_name(prepared.schema)
    own = tuple(Column(name) for name, _ in before.schema.key)
    by_key = grouped.keys == own and len(own) == 1 and kind_of(before) == "STREAM"
    if by_key:
        return GroupBy("Aggregate/GroupBy", prepared.schema, prepared, (), formats)
    key: Columns = tuple((group_name(e, aliases), _argument_type(e, columns)) for e in grouped.keys)
    check_keys(key)
    formats = replace(formats, key=replace(formats.key, features=key_features(formats.key.name, key)))
    schema = Schema(key, prepared.schema.value)
    return GroupBy("Aggregate/GroupBy", schema, prepared, grouped.keys, formats)


def group_name(expression: Expression, aliases: Aliases) -> str:
    """Name a key column: by its column or field, or by a generated name."""
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Deref):
        return aliases.field(expression.name)
    return aliases.generated()


def _aggregate(
    group: GroupBy, prepared: Select, calls: list[Call], window: TimeWindow | None, formats: Formats
) -> Aggregate:
    columns = by_name(prepared.schema)
    plain = tuple(
        name for name, e in prepared.columns if isinstance(e, Column) and not name.startswith("KSQL_INTERNAL")
    )
    value: list[tuple[str, Type]] = [(name, columns[name]) for name in plain]
    originals = dict(prepared.columns)
    made = [aggregate_function(call, columns, originals) for call in calls]
    fixed = [call.name for call, function in zip(calls, made, strict=True) if function.undo is None]
    if fixed and kind_of(prepared) == "TABLE":
        raise SqlError(
            f"The aggregation function{'s' if len(fixed) > 1 else ''} {and_list(fixed)} cannot be applied to a table "
            "source, only to a stream source."
        )
    states = tuple((f"KSQL_AGG_VARIABLE_{at}", function.state_type) for at, function in enumerate(made))
    if refusal(formats.value.name, states, False) is not None:
        raise SqlError(
            "One of the functions used in the statement has an intermediate type that the value format can not handle. "
            "Please remove the function or change the format."
        )
    value += [(f"KSQL_AGG_VARIABLE_{at}", function.type) for at, function in enumerate(made)]
    bounds = BOUNDS if window is not None else ()
    return Aggregate(
        "Aggregate/Aggregate", Schema(group.schema.key, (*value, *bounds)), group, plain, tuple(calls), formats, window
    )


def aggregate_function(
    call: Call,
    columns: dict[str, Type],
    originals: dict[str, Expression],
    settings: Mapping[str, Any] | None = None,
) -> functions.Aggregate:
    """Choose the aggregate for a call whose arguments are columns; constants are looked up where they were computed."""
    arguments = [originals.get(arg.name, arg) if isinstance(arg, Column) else arg for arg in call.args]
    types = [type_of(arg, columns) for arg in call.args]
    return functions.aggregate(call.name, types, arguments, settings)
