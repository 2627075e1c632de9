"""Pull queries: a SELECT without EMIT becomes a lookup of keys, a range of keys or a scan, with a filter and columns.

The condition is brought into disjunctive form. Where each part of it fixes all key columns, rows are found by key;
where each part bounds the only key column, which is a string, by a range; anything else is a scan of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

from moldau.sql.analysis.checks import check_condition
from moldau.sql.analysis.projection import Item, items_of
from moldau.sql.analysis.query import prepare, read
from moldau.sql.analysis.scope import aliases_of
from moldau.sql.catalogue import Catalogue, Settings, Source
from moldau.sql.codegen import compile_row
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DIALECT, STRICT
from moldau.sql.printer import expression_text, quoted, type_text
from moldau.sql.strictness import CannotCoerceError, given_value
from moldau.sql.transient.pull_rules import (
    BOUND_NAMES,
    FLIPPED,
    MORE,
    PUSH_HINT,
    check_parts,
    pushed_down,
    refused_where,
)
from moldau.sql.transient.push import with_bounds
from moldau.sql.tree import (
    BIGINT,
    INTEGER,
    STRING,
    Between,
    Column,
    Compare,
    Expression,
    In,
    Join,
    Like,
    Literal,
    Logical,
    Query,
    SelectAll,
    SelectItem,
    Type,
    walk,
)
from moldau.sql.typing import type_of

Row: TypeAlias = tuple[Any, ...]
UNSUPPORTED = ("ROWPARTITION", "ROWOFFSET")
MAX_DISJUNCTS = 1_000  # a condition with more parts is answered by a scan
SCANS, RANGES = "ksql.query.pull.table.scan.enabled", "ksql.query.pull.range.scan.enabled"
EXACT: tuple[Type, ...] = (STRING, INTEGER, BIGINT)  # types whose values are equal if their bytes are


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows of these keys; a key may be there twice."""

    keys: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of the table; the filter decides. A range of keys is a scan in the order of keys, too."""


@dataclass(frozen=True, slots=True)
class Pull:
    """A planned pull query. A column is (name, type, whether it is a part of the key).

    If one key is looked up, `operands` are what the columns of the key are compared with.
    """

    source: Source
    columns: tuple[tuple[str, Type, bool], ...]
    lookup: Keys | Scan
    compute: Callable[[Row], Row | None]  # None: the filter drops the row
    limit: int | None
    operands: tuple[Expression, ...] = ()


class _NoLookup(Exception):
    """The condition fixes no key: why, for those who have switched scans off."""


def check_clauses(query: Query) -> None:
    """Refuse what no pull query may have."""
    clauses = (
        (isinstance(query.source, Join), "JOIN clauses"),
        (query.window is not None, "WINDOW clauses"),
        (query.group_by is not None, "GROUP BY clauses"),
        (query.partition_by is not None, "PARTITION BY clauses"),
        (query.having is not None, "HAVING clauses"),
        (query.limit is not None and query.limit < 0, "negative integers in the LIMIT clause"),
    )
    for given, what in clauses:
        if given:
            hint = MORE if "LIMIT" in what else PUSH_HINT
            raise SqlError(f"Pull queries don't support {what}.{hint}")


def check_columns(query: Query) -> None:
    """Refuse the pseudo columns that a stored row does not have."""
    selected = [item.value for item in query.items if isinstance(item, SelectItem)]
    for clause, expressions in (("SELECT", selected), ("WHERE", [query.where] if query.where is not None else [])):
        named = {node.name for e in expressions for node in walk(e) if isinstance(node, Column)}
        refused = [quoted(name) for name in UNSUPPORTED if name in named]
        if refused:
            raise SqlError(
                f"Pull queries don't support the following columns in {clause} clauses: {', '.join(refused)}\n"
            )


def plan_pull(query: Query, catalogue: Catalogue, settings: Settings) -> Pull:
    """Analyse a pull query on a table."""
    prepared, scope = prepare(with_bounds(query, catalogue), catalogue)
    source = scope.sources[0].source
    if not (source.by_query or source.read_only):
        raise SqlError(
            f"The {quoted(source.name)} table isn't queryable. To derive a queryable table, you can do 'CREATE TABLE "
            f"QUERYABLE_{source.name} AS SELECT * FROM {source.name}'.{MORE}"
        )
    step = read(scope.sources[0], "Pull")
    types = dict(step.schema.value)
    where = None if prepared.where is None else scope.plain(prepared.where)
    strict = (settings.text(DIALECT, "") or "").lower() == STRICT
    if strict:
        _check_stars(query)
    lookup = _lookup(where, source, types, settings)
    if where is not None and strict:
        check_parts(disjuncts(pushed_down(where)), source)
    operands, where = _looked_up(where, lookup, source)
    items = items_of(prepared, scope, step.schema, aliases_of(scope))
    columns = tuple((item.name, _type(item, types), _is_key(item, source)) for item in items)
    compute = compile_row([item.value for item in items], step.schema.value, where=where)
    return Pull(source, columns, lookup, compute, query.limit, operands)


def _check_stars(query: Query) -> None:
    if len(query.items) > 1 and any(isinstance(item, SelectAll) for item in query.items):
        raise SqlError("Pull queries only support wildcards in the projects if they are the only expression")


def _type(item: Item, types: dict[str, Type]) -> Type:
    found = type_of(item.value, types)
    return STRING if found is None else found


def _is_key(item: Item, source: Source) -> bool:
    value = item.value
    return isinstance(value, Column) and (value.name in dict(source.schema.key) or value.name in BOUND_NAMES)


def _looked_up(
    where: Expression | None, lookup: Keys | Scan, source: Source
) -> tuple[tuple[Expression, ...], Expression | None]:
    """Return what the columns of a single key are compared with, and what the condition asks of the rows found so."""
    keys = dict(source.schema.key)
    if where is None or not isinstance(lookup, Keys) or any(kind not in EXACT for kind in keys.values()):
        return (), where
    operands: dict[str, Expression] = {}
    left: list[Expression] = []
    for condition in conjuncts(where):
        found = _on_key(condition, keys)
        if found is None:
            left.append(condition)
        else:
            operands[found[1]] = found[2]
    if len(operands) < len(keys):
        return (), where  # there are alternatives
    rest = reduce(lambda one, other: Logical("AND", one, other), left) if left else None
    return tuple(operands[name] for name in keys), rest


def conjuncts(where: Expression) -> list[Expression]:
    """Return the conditions that must all hold."""
    if isinstance(where, Logical) and where.op == "AND":
        return conjuncts(where.left) + conjuncts(where.right)
    return [where]


def _lookup(where: Expression | None, source: Source, types: dict[str, Type], settings: Settings) -> Keys | Scan:
    scans = settings.flag(SCANS, True)
    ranges = settings.flag(RANGES, True)
    if where is None:
        if not scans:
            raise refused_where("Missing WHERE clause", source.window is not None)
        return Scan()
    for node in walk(where):
        _check_members(node, source)
        _check_like(node, types, scans)
    try:
        check_condition(where, types, "WHERE")
    except SqlError as error:
        raise SqlError(f"{error}\nStatement: {expression_text(where)}") from None
    try:
        parts = disjuncts(where)
        found = [_key_of(part, source, types) for part in parts]
    except _NoLookup as why:
        if not scans:
            raise refused_where(str(why), source.window is not None) from None
        return Scan()
    keys = [key for key in found if key is not None]
    if len(keys) == len(found):
        return Keys(tuple(keys))
    if not scans and not (ranges and len(source.schema.key) == 1 and source.schema.key[0][1] == STRING):
        raise SqlError(
            "Query requires table scan to be enabled. Table scans can be enabled by setting "
            f"ksql.query.pull.table.scan.enabled=true.{MORE}"
        )
    return Scan()


def disjuncts(where: Expression) -> list[list[Expression]]:
    """Bring a condition into disjunctive form: a list of parts, each of conditions that must all hold."""
    found: list[list[Expression]]
    match where:
        case Logical(op="OR"):
            found = disjuncts(where.left) + disjuncts(where.right)
        case Logical(op="AND"):
            left, right = disjuncts(where.left), disjuncts(where.right)
            if len(left) * len(right) > MAX_DISJUNCTS:
                raise _NoLookup("The WHERE clause has too many alternatives to look them up one by one.")
            found = [one + other for one in left for other in right]
        case In():
            found = [[Compare("=", where.value, option)] for option in where.options]
        case Between():
            found = [[Compare(">=", where.value, where.low), Compare("<=", where.value, where.high)]]
        case _:
            found = [[where]]
    if len(found) > MAX_DISJUNCTS:
        raise _NoLookup("The WHERE clause has too many alternatives to look them up one by one.")
    return found


def _key_of(part: list[Expression], source: Source, types: dict[str, Type]) -> Row | None:
    """Return the key that a part fixes, or None if it bounds the key otherwise; _NoLookup if it does neither."""
    key_types = dict(source.schema.key)
    fixed: dict[str, Any] = {}
    seen: set[str] = set()
    bounded = False
    for condition in part:
        found = _on_key(condition, key_types)
        if found is None:
            continue
        op, column, other = found
        if column in seen:
            raise _NoLookup(
                "A comparison condition on the key column cannot be combined with other comparisons such as an IN "
                "predicate"
            )
        seen.add(column)
        if any(isinstance(node, Column) for node in walk(other)):
            raise _NoLookup("A comparison must be between a key column and a resolvable expression")
        if op == "=":
            fixed[column] = _constant(condition, column, other, key_types[column])
        elif op in FLIPPED:
            bounded = True
        else:
            shown = ", ".join(f"{quoted(name)} {type_text(kind, quoted)} KEY" for name, kind in source.schema.key)
            raise _NoLookup(f"Bound on key columns '[{shown}]' must currently be '='")
    if not seen:
        text = " AND ".join(map(expression_text, part))
        raise _NoLookup(f"WHERE clause missing key column for disjunct: {text}")
    if bounded:
        return None
    if len(fixed) < len(key_types):
        raise _NoLookup(
            "Multi-column sources must specify every key in the WHERE clause. Specified: "
            f"[{', '.join(map(quoted, fixed))}] Expected: [{', '.join(map(quoted, key_types))}]"
        )
    return tuple(fixed[name] for name in key_types)


def _on_key(condition: Expression, keys: dict[str, Type]) -> tuple[str, str, Expression] | None:
    """Read a comparison of a key column: its operator, the column, and what it is compared with."""
    if not isinstance(condition, Compare):
        return None
    if isinstance(condition.left, Column) and condition.left.name in keys:
        return condition.op, condition.left.name, condition.right
    if isinstance(condition.right, Column) and condition.right.name in keys:
        return FLIPPED.get(condition.op, condition.op), condition.right.name, condition.left
    return None


def _constant(condition: Expression, column: str, other: Expression, kind: Type) -> Any:
    value = _converted(column, other, kind)
    if value is None:
        raise SqlError(f"Primary key columns can not be NULL: {expression_text(condition)}{MORE}")
    return value


def _converted(column: str, other: Expression, kind: Type) -> Any:
    try:
        return given_value(other, kind)
    except (SqlError, CannotCoerceError):
        shown = other.value if isinstance(other, Literal) else expression_text(other)
        raise SqlError(
            f"'{shown}' can not be converted to the type of the key column: {column} {type_text(kind, quoted)} KEY"
        ) from None


def _check_members(node: Any, source: Source) -> None:
    """Check the options of IN over a key column: they must be of its type, and not null."""
    keys = dict(source.schema.key)
    if not (isinstance(node, In) and isinstance(node.value, Column) and node.value.name in keys):
        return
    name, kind = node.value.name, keys[node.value.name]
    for option in node.options:
        if any(isinstance(part, Column) for part in walk(option)):
            continue
        if isinstance(option, Literal) and (option.kind == "STRING") != (kind == STRING) and option.kind != "NULL":
            raise SqlError(
                f"'{option.value}' can not be converted to the type of the key column: "
                f"{name} {type_text(kind, quoted)} KEY"
            )
        _constant(Compare("=", node.value, option), name, option, kind)


def _check_like(node: Any, types: dict[str, Type], scans: bool) -> None:
    if not isinstance(node, Like):
        return
    for side in (node.value, node.pattern):
        kind = type_of(side, types)
        if kind != STRING:
            raise SqlError(
                f"The column type for Like condition must be VARCHAR. The column type is {type_text(kind, quoted)}"
            )
    if not scans and not isinstance(node.value, Column):
        raise SqlError("Like condition must be between strings")
