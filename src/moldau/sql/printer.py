"""The printer: a tree becomes ksqlDB's text of it. Parsing what was printed gives the same tree.

Names are quoted only where they must be. `schema_text` quotes every name, as DESCRIBE and messages do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from moldau.sql.errors import SqlError
from moldau.sql.extensions import CreateFunction, CreateView, DeleteFrom, DropFunction, DropView
from moldau.sql.lexer import RESERVED
from moldau.sql.moments import AsOf, Wait
from moldau.sql.tree import (
    AlterSource,
    AlterSystem,
    Arithmetic,
    ArrayType,
    AssertSchema,
    AssertSource,
    AssertTopic,
    AssertValues,
    Between,
    Call,
    Case,
    Cast,
    Column,
    ColumnDef,
    Compare,
    CreateAs,
    CreateConnector,
    CreateSource,
    CreateType,
    DecimalType,
    Define,
    Deref,
    Describe,
    DropConnector,
    DropSource,
    DropType,
    Explain,
    Expression,
    In,
    InsertInto,
    InsertValues,
    IntervalUnit,
    IsNull,
    Item,
    Join,
    Lambda,
    LambdaVariable,
    Like,
    Literal,
    Logical,
    MakeArray,
    MakeMap,
    MakeStruct,
    MapType,
    NamedType,
    Not,
    Primitive,
    PrintTopic,
    Properties,
    Query,
    QueryControl,
    QueryStatement,
    Relation,
    RunScript,
    SelectAll,
    SelectFields,
    SelectItem,
    SetProperty,
    Show,
    Sign,
    Span,
    Statement,
    StructType,
    Subscript,
    Type,
    Undefine,
    UnsetProperty,
    When,
    Window,
)

_PLAIN = re.compile(r"[A-Z_][A-Z0-9_@]*|\d[A-Z0-9_@]*[A-Z_@][A-Z0-9_@]*")


def quoted(name: str) -> str:
    """Put a name into back quotes."""
    return "`" + name.replace("`", "``") + "`"


def name_text(name: str) -> str:
    """Print a name so that it is read as the same name."""
    return name if _PLAIN.fullmatch(name) and name not in RESERVED else quoted(name)


def string_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def type_text(kind: Type | None, name: Callable[[str], str] = name_text) -> str:
    """Print a type; `name` prints the names of fields."""
    match kind:
        case None:
            return "null"
        case Primitive():
            return kind.name
        case DecimalType():
            return f"DECIMAL({kind.precision}, {kind.scale})"
        case ArrayType():
            return f"ARRAY<{type_text(kind.item, name)}>"
        case MapType():
            return f"MAP<{type_text(kind.key, name)}, {type_text(kind.value, name)}>"
        case StructType():
            fields = ", ".join(f"{name(f.name)} {type_text(f.type, name)}" for f in kind.fields)
            return f"STRUCT<{fields} >" if not kind.fields else f"STRUCT<{fields}>"
        case NamedType():
            return name(kind.name)


def schema_text(columns: Sequence[tuple[str, Type, str]]) -> str:
    """Print columns as DESCRIBE does: (name, type, suffix such as ' KEY')."""
    return ", ".join(f"{quoted(name)} {type_text(kind, quoted)}{suffix}" for name, kind, suffix in columns)


def expression_text(node: Expression) -> str:
    """Print an expression."""
    printer = _EXPRESSIONS.get(type(node))
    if printer is None:
        raise AssertionError(f"{type(node).__name__} has no text")
    return printer(node)


_text = expression_text


def _joined(items: Sequence[Expression]) -> str:
    return ", ".join(_text(item) for item in items)


def _literal(node: Literal) -> str:
    if node.kind == "NULL":
        return "null"
    if node.kind == "BOOLEAN":
        return "true" if node.value else "false"
    if node.kind == "STRING":
        return string_text(node.value)
    if node.kind in ("DATE", "TIME", "TIMESTAMP"):
        return f"{node.kind} {string_text(node.value)}"
    if isinstance(node.value, Decimal):
        text = format(node.value, "f")
        return text if "." in text else text + "."
    if isinstance(node.value, float):
        return _double(node.value)
    return str(node.value)


def _double(value: float) -> str:
    """Print a double with an exponent, so that it stays a double: 1.5E1."""
    if value in (float("inf"), float("-inf")):
        return "-1E999" if value < 0 else "1E999"
    digits = Decimal(repr(value)).normalize()
    sign, figures, _ = digits.as_tuple()
    mantissa = "".join(map(str, figures))
    tail = mantissa[1:].rstrip("0")
    return f"{'-' if sign else ''}{mantissa[0]}{'.' + tail if tail else ''}E{digits.adjusted()}"


def _column(node: Column) -> str:
    return name_text(node.name) if node.source is None else f"{name_text(node.source)}.{name_text(node.name)}"


def _call(node: Call) -> str:
    if not node.args and node.name == "COUNT":
        return "COUNT(*)"
    return f"{name_text(node.name) if node.name != 'REPLACE' else node.name}({_joined(node.args)})"


def _lambda(node: Lambda) -> str:
    names = ", ".join(map(name_text, node.parameters))
    return f"({names}) => {_text(node.body)}" if len(node.parameters) != 1 else f"{names} => {_text(node.body)}"


def _sign(node: Sign) -> str:
    value = _text(node.value)
    if isinstance(node.value, Literal) or value[0].isdigit():  # the sign would be taken for the number's
        return f"{node.op}({value})"
    space = " " if value.startswith(node.op) else ""
    return f"{node.op}{space}{value}"


def _base(node: Expression) -> str:
    """Print what a field or an element is taken of: a sign binds less, so it needs brackets."""
    text = _text(node)
    return f"({text})" if text.startswith(("-", "+")) else text


def _like(node: Like) -> str:
    escape = "" if node.escape is None else f" ESCAPE {string_text(node.escape)}"
    return f"({_text(node.value)} LIKE {_text(node.pattern)}{escape})"


def _case(node: Case) -> str:
    operand = "" if node.operand is None else f" {_text(node.operand)}"
    whens = "".join(f" WHEN {_text(when.condition)} THEN {_text(when.result)}" for when in node.whens)
    default = "" if node.default is None else f" ELSE {_text(node.default)}"
    return f"(CASE{operand}{whens}{default} END)"


_EXPRESSIONS: dict[type, Callable[[Any], str]] = {
    Literal: _literal,
    IntervalUnit: lambda node: node.unit,
    Column: _column,
    LambdaVariable: lambda node: name_text(node.name),
    Deref: lambda node: f"{_base(node.base)}->{name_text(node.name)}",
    Subscript: lambda node: f"{_base(node.base)}[{_text(node.index)}]",
    Call: _call,
    Lambda: _lambda,
    Cast: lambda node: f"CAST({_text(node.value)} AS {type_text(node.type)})",
    Arithmetic: lambda node: f"({_text(node.left)} {node.op} {_text(node.right)})",
    Sign: _sign,
    Compare: lambda node: f"({_text(node.left)} {node.op} {_text(node.right)})",
    Logical: lambda node: f"({_text(node.left)} {node.op} {_text(node.right)})",
    Not: lambda node: f"(NOT {_text(node.value)})",
    Between: lambda node: f"({_text(node.value)} BETWEEN {_text(node.low)} AND {_text(node.high)})",
    In: lambda node: f"({_text(node.value)} IN ({_joined(node.options)}))",
    Like: _like,
    IsNull: lambda node: f"({_text(node.value)} IS {'NOT ' if node.negated else ''}NULL)",
    Case: _case,
    MakeArray: lambda node: f"ARRAY[{_joined(node.items)}]",
    MakeMap: lambda node: "MAP(" + ", ".join(f"{_text(k)}:={_text(v)}" for k, v in node.pairs) + ")",
    MakeStruct: lambda node: "STRUCT(" + ", ".join(f"{name_text(n)}:={_text(v)}" for n, v in node.fields) + ")",
    When: lambda node: f"WHEN {_text(node.condition)} THEN {_text(node.result)}",
}


def _span(node: Span) -> str:
    return f"{node.count} {node.unit}"


def _window(node: Window) -> str:
    parts = [_span(node.size) if node.kind == "SESSION" else f"SIZE {_span(node.size)}"]
    for word, value in (("ADVANCE BY", node.advance), ("RETENTION", node.retention), ("GRACE PERIOD", node.grace)):
        if value is not None:
            parts.append(f"{word} {_span(value)}")
    return f"{node.kind} ( {', '.join(parts)} )"


_JOIN_WORDS = {
    "INNER": "INNER JOIN",
    "LEFT": "LEFT OUTER JOIN",
    "RIGHT": "RIGHT OUTER JOIN",
    "OUTER": "FULL OUTER JOIN",
}


def _relation(node: Relation) -> str:
    if not isinstance(node, Join):
        inner = name_text(node.name) if node.query is None else f"({query_text(node.query)})"
        return f"{inner}{_as_of(node.as_of)} {name_text(node.alias)}"
    within = ""
    if node.within is not None:
        w = node.within
        size = _span(w.before) if w.before == w.after else f"({_span(w.before)}, {_span(w.after)})"
        within = f" WITHIN {size}" + (f" GRACE PERIOD {_span(w.grace)}" if w.grace else "")
    join = f"{_JOIN_WORDS[node.kind]} {_relation(node.right)}{within}"
    return f"{_relation(node.left)}\n{join} ON ({expression_text(node.on)})"


def _as_of(moment: AsOf | None) -> str:
    match moment:
        case None:
            return ""
        case AsOf(timestamp=None):
            numbers = ", ".join(map(str, moment.offsets))
            return f" AS OF OFFSET {numbers}" if len(moment.offsets) == 1 else f" AS OF OFFSET ({numbers})"
        case _:
            return f" AS OF TIMESTAMP {_value(moment.timestamp)}"


def _item(node: Item) -> str:
    match node:
        case SelectAll(source=None):
            return "*"
        case SelectAll():
            return f"{name_text(node.source or '')}.*"
        case SelectFields():
            return f"{expression_text(node.base)}->*"
        case SelectItem():
            return expression_text(node.value) + ("" if node.alias is None else f" {name_text(node.alias)}")


def _list(items: tuple[Expression, ...], brackets: bool) -> str:
    text = ", ".join(map(expression_text, items))
    return f"({text})" if brackets or not items or text.startswith("(") else text


def query_text(node: Query) -> str:
    """Print a query, one clause a line."""
    if node.union:
        parts = [query_text(replace(node, union=(), emit=None, limit=None, wait=None)), *map(query_text, node.union)]
        return "\n".join(["\nUNION ALL\n".join(parts), *_ends(node)])
    items = [_item(item) for item in node.items]
    select = "SELECT DISTINCT" if node.distinct else "SELECT"
    lines = [f"{select} *"] if items == ["*"] else [f"{select}\n  " + ",\n  ".join(items)]
    lines.append(f"FROM {_relation(node.source)}")
    if node.window is not None:
        lines.append(f"WINDOW {_window(node.window)} ")
    if node.where is not None:
        lines.append(f"WHERE {expression_text(node.where)}")
    if node.group_by is not None:
        lines.append(f"GROUP BY {_list(node.group_by, node.group_brackets)}")
    if node.partition_by is not None:
        lines.append(f"PARTITION BY {_list(node.partition_by, node.partition_brackets)}")
    if node.having is not None:
        lines.append(f"HAVING {expression_text(node.having)}")
    return "\n".join([*lines, *_ends(node)])


def _ends(node: Query) -> list[str]:
    emit = [] if node.emit is None else [f"EMIT {node.emit}"]
    limit = [] if node.limit is None else [f"LIMIT {node.limit}"]
    return emit + limit + ([] if node.wait is None else [_wait(node.wait)])


def _wait(wait: Wait) -> str:
    place = "" if wait.partition is None else f" PARTITION {wait.partition}"
    what = "LATEST" if wait.source is None else f"{name_text(wait.source)}{place} OFFSET {wait.offset}"
    return f"WAIT UNTIL {what}" + ("" if wait.timeout_ms is None else f" TIMEOUT {wait.timeout_ms} MILLISECONDS")


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return string_text(value)
    return _double(value) if isinstance(value, float) else str(value)


def _properties(properties: Properties) -> str:
    items = (f"{n if _PLAIN.fullmatch(n) else string_text(n)}={_value(v)}" for n, v in properties)
    return f" WITH ({', '.join(items)})" if properties else ""


def _column_def(node: ColumnDef) -> str:
    role = "" if node.role == "VALUE" else f" {node.role}"
    header = "" if node.header is None else f"({string_text(node.header)})"
    return f"{name_text(node.name)} {type_text(node.type)}{role}{header}"


def _columns(columns: tuple[ColumnDef, ...]) -> str:
    return f" ({', '.join(map(_column_def, columns))})" if columns else ""


def _create_source(s: CreateSource) -> str:
    replaces, source = "OR REPLACE " if s.or_replace else "", "SOURCE " if s.source else ""
    exists = "IF NOT EXISTS " if s.if_not_exists else ""
    what = f"{source}{s.kind} {exists}{name_text(s.name)}"
    return f"CREATE {replaces}{what}{_columns(s.columns)}{_properties(s.properties)};"


def _create_as(s: CreateAs) -> str:
    replaces = "OR REPLACE " if s.or_replace else ""
    exists = "IF NOT EXISTS " if s.if_not_exists else ""
    return f"CREATE {replaces}{s.kind} {exists}{name_text(s.name)}{_properties(s.properties)} AS {query_text(s.query)};"


def _creates(s: CreateFunction | CreateView, what: str) -> str:
    replaces = "OR REPLACE " if s.or_replace else ""
    return f"CREATE {replaces}{what} {'IF NOT EXISTS ' if s.if_not_exists else ''}{name_text(s.name)}"


def _insert_values(s: InsertValues) -> str:
    columns = f" ({', '.join(map(name_text, s.columns))})" if s.columns else ""
    return f"INSERT INTO {name_text(s.name)}{columns} VALUES ({_joined(s.values)});"


def _timeout(span: Span | None) -> str:
    return "" if span is None else f" TIMEOUT {_span(span)}"


def _assert_schema(s: AssertSchema) -> str:
    subject = "" if s.subject is None else f" SUBJECT {string_text(s.subject)}"
    schema_id = "" if s.schema_id is None else f" ID {s.schema_id}"
    return f"ASSERT {'' if s.exists else 'NOT EXISTS '}SCHEMA{subject}{schema_id}{_timeout(s.timeout)};"


def _assert_values(s: AssertValues) -> str:
    columns = f" ({', '.join(map(name_text, s.columns))})" if s.columns else ""
    head = "ASSERT NULL VALUES" if s.tombstone else "ASSERT VALUES"
    return f"{head} {name_text(s.name)}{columns} {'KEY' if s.tombstone else 'VALUES'} ({_joined(s.values)});"


def _print_topic(s: PrintTopic) -> str:
    parts = ["PRINT", string_text(s.topic)]
    parts += ["FROM BEGINNING"] * s.from_beginning
    parts += [] if s.interval is None else [f"INTERVAL {s.interval}"]
    parts += [] if s.limit is None else [f"LIMIT {s.limit}"]
    return " ".join(parts) + ";"


def _describe(s: Describe) -> str:
    what = "" if s.what == "SOURCE" else f" {s.what}"
    name = "" if s.name is None else f" {name_text(s.name)}"
    return f"DESCRIBE{what}{name}{' EXTENDED' if s.extended else ''};"


def _drop_source(s: DropSource) -> str:
    exists, topic = "IF EXISTS " if s.if_exists else "", " DELETE TOPIC" if s.delete_topic else ""
    return f"DROP {s.kind} {exists}{name_text(s.name)}{topic};"


_STATEMENTS: dict[type, Callable[[Any], str]] = {
    QueryStatement: lambda s: query_text(s.query) + ";",
    CreateSource: _create_source,
    CreateAs: _create_as,
    InsertInto: lambda s: f"INSERT INTO {name_text(s.name)}{_properties(s.properties)} {query_text(s.query)};",
    InsertValues: _insert_values,
    DropSource: _drop_source,
    CreateType: lambda s: (
        f"CREATE TYPE {'IF NOT EXISTS ' if s.if_not_exists else ''}{name_text(s.name)} AS {type_text(s.type)};"
    ),
    DropType: lambda s: f"DROP TYPE {'IF EXISTS ' if s.if_exists else ''}{name_text(s.name)};",
    AlterSource: lambda s: (
        f"ALTER {s.kind} {name_text(s.name)} "
        + ", ".join(f"ADD COLUMN {name_text(f.name)} {type_text(f.type)}" for f in s.added)
        + ";"
    ),
    AlterSystem: lambda s: f"ALTER SYSTEM {string_text(s.name)}={string_text(s.value)};",
    SetProperty: lambda s: f"SET {string_text(s.name)}={string_text(s.value)};",
    UnsetProperty: lambda s: f"UNSET {string_text(s.name)};",
    Define: lambda s: f"DEFINE {name_text(s.name)}={string_text(s.value)};",
    Undefine: lambda s: f"UNDEFINE {name_text(s.name)};",
    Show: lambda s: f"SHOW {s.scope + ' ' if s.scope else ''}{s.what}{' EXTENDED' if s.extended else ''};",
    Describe: _describe,
    PrintTopic: _print_topic,
    QueryControl: lambda s: f"{s.action} {'ALL' if s.query_id is None else name_text(s.query_id)};",
    Explain: lambda s: f"EXPLAIN {statement_text(s.statement) if s.statement else name_text(s.query_id) + ';'}",
    CreateConnector: lambda s: (
        f"CREATE {s.kind} CONNECTOR {'IF NOT EXISTS ' if s.if_not_exists else ''}{name_text(s.name)}"
        f"{_properties(s.properties) or ' WITH ()'};"
    ),
    DropConnector: lambda s: f"DROP CONNECTOR {'IF EXISTS ' if s.if_exists else ''}{name_text(s.name)};",
    RunScript: lambda s: f"RUN SCRIPT {string_text(s.path)};",
    AssertTopic: lambda s: (
        f"ASSERT {'' if s.exists else 'NOT EXISTS '}TOPIC {string_text(s.name)}"
        f"{_properties(s.properties)}{_timeout(s.timeout)};"
    ),
    CreateFunction: lambda s: f"{_creates(s, 'FUNCTION')} FROM {string_text(s.file)};",
    CreateView: lambda s: f"{_creates(s, 'VIEW')} AS {query_text(s.query)};",
    DropFunction: lambda s: f"DROP FUNCTION {'IF EXISTS ' if s.if_exists else ''}{name_text(s.name)};",
    DropView: lambda s: f"DROP VIEW {'IF EXISTS ' if s.if_exists else ''}{name_text(s.name)};",
    DeleteFrom: lambda s: f"DELETE FROM {name_text(s.name)} WHERE {expression_text(s.where)};",
    AssertSchema: _assert_schema,
    AssertValues: _assert_values,
    AssertSource: lambda s: "ASSERT" + _create_source(s.source).removeprefix("CREATE"),
}


def statement_text(statement: Statement) -> str:
    """Print a statement with its semicolon."""
    printer = _STATEMENTS.get(type(statement))
    if printer is None:
        raise SqlError(f"{type(statement).__name__} has no text")
    return printer(statement)
