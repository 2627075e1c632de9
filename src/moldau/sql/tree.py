"""The syntax tree of a statement: frozen nodes, which the parser makes and all later stages read.

- A name (source, column, field, function, type) is a plain string in its final case: an unquoted name is upper case,
  a quoted one is as written. Function names are always upper case.
- Two nodes are equal if they mean the same text; `at`, the position, does not count. So nodes may be keys of a dict.
- A `Literal` carries its SQL type as `kind`. Typed literals (DATE '2020-01-01') hold the text; `NULL` has None.
- `NOT IN`, `NOT LIKE` and `NOT BETWEEN` are a `Not` around the predicate; `IS NOT NULL` is `IsNull` with `negated`.
- `a || b` is `Call("CONCAT", ...)`. `COUNT(*)` is a `Call` without arguments.
- A name bound by a lambda is a `LambdaVariable`, any other name a `Column`, with its source if one is written.
- A custom type is a `NamedType`, which the analysis replaces. What ksqlDB lacks is in `extensions.py`.
- `children` and `rewrite` walk every node, so that a visitor need only know the nodes that it changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast
from typing import Literal as OneOf

from moldau.sql.moments import AsOf, Wait

Position: TypeAlias = tuple[int, int]  # line from 1, column from 1


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree, with the place where it begins in the text."""

    at: Position | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Primitive:
    """BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING, BYTES, DATE, TIME or TIMESTAMP; aliases are resolved by the parser."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    item: Type


@dataclass(frozen=True, slots=True)
class MapType:
    key: Type
    value: Type


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type made by CREATE TYPE, before the analysis looked it up."""

    name: str


Type: TypeAlias = "Primitive | DecimalType | ArrayType | MapType | StructType | NamedType"

BOOLEAN = Primitive("BOOLEAN")
INTEGER = Primitive("INTEGER")
BIGINT = Primitive("BIGINT")
DOUBLE = Primitive("DOUBLE")
STRING = Primitive("STRING")
BYTES = Primitive("BYTES")
DATE = Primitive("DATE")
TIME = Primitive("TIME")
TIMESTAMP = Primitive("TIMESTAMP")


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """A node that has a value."""


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant. `kind` is NULL, BOOLEAN, INTEGER, BIGINT, DECIMAL, DOUBLE, STRING, DATE, TIME or TIMESTAMP.

    The value is None, bool, int, int, decimal.Decimal, float, str; for the three times it is the text as written.
    """

    value: Any
    kind: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Expression):
    """A unit of time written as a word: DATEADD(DAYS, 2, d). The plural: DAYS."""

    unit: str


@dataclass(frozen=True, slots=True)
class Column(Expression):
    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LambdaVariable(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class Deref(Expression):
    """`base -> name`: a field of a struct."""

    base: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Subscript(Expression):
    """`base[index]`: an element of an array or a map."""

    base: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Call(Expression):
    name: str
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Lambda(Expression):
    """`(x, y) => body`: an argument of a call."""

    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    value: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """`left op right`; op is one of + - * / %."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Sign(Expression):
    """`+value` or `-value`. A minus before a number literal is folded into the literal by the parser."""

    op: OneOf["+", "-"]
    value: Expression


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """`left op right`; op is one of = <> < <= > >= or `IS DISTINCT FROM`, `IS NOT DISTINCT FROM`. `!=` becomes `<>`."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    op: OneOf["AND", "OR"]
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    value: Expression


@dataclass(frozen=True, slots=True)
class Between(Expression):
    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class In(Expression):
    value: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Like(Expression):
    value: Expression
    pattern: Expression
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    value: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    condition: Expression
    result: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """CASE [operand] WHEN ... THEN ... [ELSE default] END. Without an operand the conditions are booleans."""

    operand: Expression | None
    whens: tuple[When, ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class MakeArray(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MakeMap(Expression):
    pairs: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class MakeStruct(Expression):
    fields: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Span(Node):
    """A length of time as written: `5 MINUTES`. The unit is in the plural."""

    count: int
    unit: str


@dataclass(frozen=True, slots=True)
class Window(Node):
    """The WINDOW clause. `size` of a SESSION is its gap; `advance` is only of HOPPING. ksqlDB has no SLIDING."""

    kind: OneOf["TUMBLING", "HOPPING", "SESSION", "SLIDING"]
    size: Span
    advance: Span | None = None
    retention: Span | None = None
    grace: Span | None = None


@dataclass(frozen=True, slots=True)
class Within(Node):
    """WITHIN before [, after] [GRACE PERIOD grace] of a join of streams."""

    before: Span
    after: Span
    grace: Span | None = None


@dataclass(frozen=True, slots=True)
class Table(Node):
    """A source of FROM with its alias, which is its name if none is written; `query` is a subquery's."""

    name: str
    alias: str
    query: Query | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Join(Node):
    kind: OneOf["INNER", "LEFT", "RIGHT", "OUTER"]
    left: Relation
    right: Table
    on: Expression
    within: Within | None = None


Relation: TypeAlias = "Table | Join"


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """An expression of SELECT; `alias` is None if none is written."""

    value: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class SelectAll(Node):
    """`*`, or `source.*`."""

    source: str | None = None


@dataclass(frozen=True, slots=True)
class SelectFields(Node):
    """`struct->*`: every field of a struct."""

    base: Expression


Item: TypeAlias = "SelectItem | SelectAll | SelectFields"


@dataclass(frozen=True, slots=True)
class Query(Node):
    items: tuple[Item, ...]
    source: Relation
    window: Window | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] | None = None
    partition_by: tuple[Expression, ...] | None = None
    having: Expression | None = None
    emit: OneOf["CHANGES", "FINAL"] | None = None
    limit: int | None = None
    group_brackets: bool = field(default=False, compare=False)
    partition_brackets: bool = field(default=False, compare=False)
    distinct: bool = False
    union: tuple[Query, ...] = ()  # the queries after UNION ALL
    wait: Wait | None = None


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """A node that can be executed. `text` is what was written, without the semicolon."""

    text: str = field(default="", compare=False, repr=False, kw_only=True)


Properties: TypeAlias = tuple[tuple[str, Any], ...]  # (name in upper case, value), by name


@dataclass(frozen=True, slots=True)
class ColumnDef(Node):
    """A column of CREATE. `role` is KEY, PRIMARY KEY, HEADERS, HEADER (then `header` names it), or VALUE."""

    name: str
    type: Type
    role: OneOf["VALUE", "KEY", "PRIMARY KEY", "HEADERS", "HEADER"] = "VALUE"
    header: str | None = None


@dataclass(frozen=True, slots=True)
class CreateSource(Statement):
    kind: OneOf["STREAM", "TABLE"]
    name: str
    columns: tuple[ColumnDef, ...]
    properties: Properties
    or_replace: bool = False
    if_not_exists: bool = False
    source: bool = False


@dataclass(frozen=True, slots=True)
class CreateAs(Statement):
    kind: OneOf["STREAM", "TABLE"]
    name: str
    properties: Properties
    query: Query
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class QueryStatement(Statement):
    query: Query


@dataclass(frozen=True, slots=True)
class InsertInto(Statement):
    name: str
    properties: Properties
    query: Query


@dataclass(frozen=True, slots=True)
class InsertValues(Statement):
    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class DropSource(Statement):
    kind: OneOf["STREAM", "TABLE"]
    name: str
    if_exists: bool = False
    delete_topic: bool = False


@dataclass(frozen=True, slots=True)
class CreateType(Statement):
    name: str
    type: Type
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropType(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSource(Statement):
    kind: OneOf["STREAM", "TABLE"]
    name: str
    added: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class AlterSystem(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class SetProperty(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class UnsetProperty(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class Define(Statement):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Undefine(Statement):
    name: str


@dataclass(frozen=True, slots=True)
class Show(Statement):
    """LIST or SHOW of `what` (parser.py: SHOWN). `scope` is SOURCE or SINK for connectors, ALL for topics."""

    what: str
    scope: str | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    """DESCRIBE of a SOURCE by its name, of all STREAMS or TABLES (name None), of a FUNCTION or of a CONNECTOR."""

    what: OneOf["SOURCE", "STREAMS", "TABLES", "FUNCTION", "CONNECTOR"]
    name: str | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class PrintTopic(Statement):
    topic: str
    from_beginning: bool = False
    interval: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class QueryControl(Statement):
    """TERMINATE, PAUSE or RESUME of one query, or of ALL (id None)."""

    action: OneOf["TERMINATE", "PAUSE", "RESUME"]
    query_id: str | None


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    statement: Statement | None
    query_id: str | None


@dataclass(frozen=True, slots=True)
class CreateConnector(Statement):
    kind: OneOf["SOURCE", "SINK"]
    name: str
    properties: Properties
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConnector(Statement):
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RunScript(Statement):
    path: str


@dataclass(frozen=True, slots=True)
class AssertTopic(Statement):
    name: str
    properties: Properties
    timeout: Span | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertSchema(Statement):
    subject: str | None
    schema_id: int | None
    timeout: Span | None = None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AssertValues(Statement):
    """ASSERT [NULL] VALUES of the test runner."""

    name: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class AssertSource(Statement):
    """ASSERT STREAM or TABLE of the test runner."""

    source: CreateSource


_N = TypeVar("_N", bound="Node")


@cache
def _fields(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind) if f.name not in ("at", "text"))


def _collect(values: Iterable[Any], found: list[Node]) -> list[Node]:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _collect(value, found)
    return found


def children(node: Node) -> list[Node]:
    """Return the nodes directly below `node`, from left to right."""
    return _collect([getattr(node, name) for name in _fields(type(node))], [])


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and every node below it, parents first."""
    left = [node]
    while left:
        yield (now := left.pop())
        left += reversed(children(now))


def rewrite(node: _N, change: Callable[[Node], Node | None]) -> _N:
    """Rebuild the tree: what `change` returns for a node stands in its place; None means "look at its children"."""
    changed = change(node)
    if changed is not None:
        return cast("_N", changed)
    values = [(name, getattr(node, name)) for name in _fields(type(node))]
    updates = {name: after for name, before in values if (after := _rewrite_value(before, change)) is not before}
    return replace(node, **updates) if updates else node


def _rewrite_value(value: Any, change: Callable[[Node], Node | None]) -> Any:
    if not isinstance(value, tuple):
        return rewrite(value, change) if isinstance(value, Node) else value
    items = tuple(_rewrite_value(item, change) for item in value)
    return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
