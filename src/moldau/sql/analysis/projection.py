"""SELECT: its columns, and which of them are the key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moldau.sql.analysis.checks import and_list, by_name, check_duplicates, typed
from moldau.sql.analysis.scope import Aliases, Scope, struct_fields
from moldau.sql.catalogue import BOUNDS, SYSTEM_NAMES, Schema
from moldau.sql.errors import SqlError
from moldau.sql.printer import quoted
from moldau.sql.steps import Select, Step
from moldau.sql.tree import Column, Deref, Expression, Query, SelectAll, SelectFields, SelectItem, Type
from moldau.sql.typing import type_of


@dataclass(frozen=True, slots=True)
class Item:
    """A column of SELECT: its name, and its expression over the rows of the step before."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class KeyRule:
    """What a projection must contain, and how a message calls it."""

    keys: tuple[tuple[Expression, str], ...]  # the expression of each key column over the rows, and its text
    what: str  # "key column", "grouping expression", ...
    alternatives: tuple[tuple[Expression, str], ...] = ()  # of a join: any one of these will do
    grouped: bool = False


def items_of(query: Query, scope: Scope, schema: Schema, aliases: Aliases) -> list[Item]:
    """Expand `*`, and turn columns into the names that rows have."""
    items: list[Item] = []
    for item in query.items:
        match item:
            case SelectAll():
                items += [Item(name, Column(name)) for name in star(scope, schema, item.source)]
            case SelectFields():
                base = scope.plain(item.base)
                for name in struct_fields(type_of(base, by_name(schema)), base):
                    items.append(Item(aliases.field(name), Deref(base, name)))
            case SelectItem():
                assert item.alias is not None, "sanitize names every expression"
                items.append(Item(item.alias, scope.plain(item.value)))
    return items


def star(scope: Scope, schema: Schema, alias: str | None) -> list[str]:
    """Return the columns of `*` or `alias.*`: the key first, no pseudo columns."""
    keys = {name for name, _ in schema.key}
    if not scope.joined:
        hidden = SYSTEM_NAMES | keys
        return [name for name, _ in schema.key] + [name for name, _ in schema.value if name not in hidden]
    names: list[str] = []
    if scope.synthetic in keys and alias is None:
        names.append(scope.synthetic or "")
    for named in scope.sources:
        if alias is None or named.alias == alias:
            bounds = BOUNDS if named.source.window is not None else ()
            columns = (*named.source.schema.key, *bounds, *named.source.schema.value)
            names += [f"{named.alias}_{name}" for name, _ in columns]
    return names


def check_names(items: Sequence[Item], query: Query, keys: frozenset[str] = frozenset()) -> None:
    """Refuse names that only the system may use, in a query that writes a topic. PARTITION BY may make one a key."""
    written = {item.alias for item in query.items if isinstance(item, SelectItem)}
    for item in items:
        if item.name not in SYSTEM_NAMES or item.name in keys:
            continue
        own = isinstance(item.value, Column) and item.value.name.endswith(item.name)
        if item.name in written and not own and item.name not in dict(BOUNDS):
            raise SqlError(
                f"{quoted(item.name)} is a reserved column name. You cannot use it as an alias for a column."
            )
        raise SqlError(f"Reserved column name in select: {quoted(item.name)}. Please remove or alias the column.")


def project(context: str, before: Step, items: Sequence[Item], rule: KeyRule, sink: str) -> Select:
    """Make the last step: key columns are named by SELECT, everything else is the value."""
    schema = before.schema
    columns = by_name(schema)
    all_types = [_typed(item.value, columns) for item in items]
    key: list[str] = []
    used: set[int] = set()
    missing: list[str] = []
    for expression, text in rule.keys:
        found = [at for at, item in enumerate(items) if item.value == expression]
        if not found:
            missing.append(text)
            continue
        if len(found) > 1:
            raise SqlError(_twice(rule, text, [items[at].name for at in found], expression))
        used.add(found[0])
        key.append(items[found[0]].name)
    if missing:
        raise SqlError(_missing(rule, missing, sink))
    values = [item for at, item in enumerate(items) if at not in used]
    types = [(item.name, kind) for at, (item, kind) in enumerate(zip(items, all_types, strict=True)) if at not in used]
    if not values:
        raise SqlError("The projection contains no value columns.")
    key_columns = tuple((name, kind) for name, (_, kind) in zip(key, schema.key, strict=True))
    check_duplicates(key_columns, "key")
    check_duplicates(tuple(types), "value")
    clashing = [column for column in types if column[0] in dict(key_columns)]
    check_duplicates((*clashing, *clashing), "value")
    return Select(context, Schema(key_columns, tuple(types)), before, tuple((i.name, i.value) for i in values))


def everything(context: str, before: Step, items: Sequence[Item]) -> Select:
    """Make the last step of a transient query: all columns of SELECT are values."""
    columns = by_name(before.schema)
    value = tuple((item.name, _typed(item.value, columns)) for item in items)
    check_duplicates(value, "value")
    return Select(context, Schema(before.schema.key, value), before, tuple((item.name, item.value) for item in items))


def _typed(expression: Expression, columns: dict[str, Type]) -> Type:
    try:
        return typed(expression, columns)
    except SqlError as error:
        raise SqlError(f"Invalid Select: {error}") from None


def _twice(rule: KeyRule, text: str, names: list[str], expression: Expression) -> str:
    advice = (
        "\nEach key column must only be in the projection once. If you intended to copy the key into the value, then "
        "consider using the `AS_VALUE` function to indicate which key reference should be copied."
    )
    if rule.grouped:
        return f"The projection contains a key column more than once: {and_list(map(quoted, names))}.{advice}"
    shown = quoted(expression.name) if isinstance(expression, Column) else text
    return (
        f"The projection contains a key column ({shown}) more than once, aliased as: {and_list(sorted(names))}.{advice}"
    )


def _missing(rule: KeyRule, missing: list[str], sink: str) -> str:
    if rule.what == "foreign":
        many = "s" if len(missing) > 1 else ""
        table = rule.alternatives[0][1]
        names = ", ".join(quoted(name.rsplit(".", 1)[-1]) for name in missing)
        return (
            f"Primary key column{many} missing in projection. For foreign-key table-table joins, the projection must "
            f"include all primary key columns from the left input table ({quoted(table)}). "
            f"Missing column{many}: {names}."
        )
    if rule.alternatives:
        texts = [text for _, text in rule.alternatives]
        many, listed, example = "s" if len(texts) > 1 else "", and_list(texts, "or"), texts[0]
    else:
        texts = [text for _, text in rule.keys] if not rule.grouped else missing
        many, listed, example = "s" if len(texts) > 1 else "", and_list(texts), ", ".join(texts)
    keys = "Keys" if many and not rule.alternatives else "Key"
    synthetic = rule.what == "join expression" and not rule.alternatives
    link = "See https://cnfl.io/2LV7ouS." if synthetic else ""
    hint = (
        f"\n{texts[0]} was added as a synthetic key column because the join criteria did not match any source column. "
        "This expression must be included in the projection and may be aliased. "
        if synthetic
        else ""
    )
    return (
        f"{keys} missing from projection (ie, SELECT). {link}\n"
        f"The query used to build {quoted(sink)} must include the {rule.what}{many} {listed} in its projection "
        f"(eg, SELECT {example}...).{hint}"
    )
