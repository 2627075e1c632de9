"""The parser of statements: a text becomes a list of statements.

A statement is found by its first words: a row of STATEMENTS. ParseError says where the text is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from moldau.sql import extension_parser
from moldau.sql.cursor import MAX_NESTING, Cursor
from moldau.sql.errors import ParseError
from moldau.sql.expression_parser import expression, literal, span, type_name
from moldau.sql.lexer import tokenize
from moldau.sql.query_parser import query
from moldau.sql.tree import (
    AlterSource,
    AlterSystem,
    AssertSchema,
    AssertSource,
    AssertTopic,
    AssertValues,
    ColumnDef,
    CreateAs,
    CreateConnector,
    CreateSource,
    CreateType,
    Define,
    Describe,
    DropConnector,
    DropSource,
    DropType,
    Explain,
    Expression,
    Field,
    InsertInto,
    InsertValues,
    Node,
    PrintTopic,
    Properties,
    QueryControl,
    QueryStatement,
    RunScript,
    SetProperty,
    Show,
    Span,
    Statement,
    Type,
    Undefine,
    UnsetProperty,
    children,
)
from moldau.sql.variables import substitute

MAX_DEPTH = MAX_NESTING  # of a tree, whose text has a bracket for each level: a sum of more terms is refused, too

SourceKind = Literal["STREAM", "TABLE"]


def parse(text: str, variables: dict[str, str] | None = None, *, testing: bool = False) -> list[Statement]:
    """Parse all statements of `text`. `variables` stand for ${name}; `testing` allows the test runner's statements."""
    if variables is not None:
        text = substitute(text, variables)
    c = Cursor(text, tokenize(text))
    statements: list[Statement] = []
    while c.now.kind != "end":
        if c.takes(";"):
            continue
        c.first = c.place
        statement = _statement(c, testing)
        end = c.now.start
        if c.takes(";"):
            end += 1
        elif c.now.kind != "end":
            c.refuse("")
        _check_depth(statement)
        start = c.tokens[c.first].start
        statements.append(replace(statement, text=text[start:end].rstrip()))
    return statements


def parse_expression(text: str) -> Expression:
    """Parse one expression, as the properties of a request or a test have it."""
    c = Cursor(text, tokenize(text))
    result = expression(c)
    if c.now.kind != "end":
        c.fail("<EOF>")
    _check_depth(result)
    return result


def _check_depth(node: Node) -> None:
    level = [node]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise ParseError(f"The statement is nested more than {MAX_DEPTH} levels deep.")
        level = [child for parent in level for child in children(parent)]


def _statement(c: Cursor, testing: bool) -> Statement:
    for words, read in STATEMENTS:
        if c.sees(*words):
            return read(c)
    if testing:
        for words, read in TEST_STATEMENTS:
            if c.sees(*words):
                return read(c)
    if c.sees("ASSERT"):
        c.next()
        c.fail("{'TOPIC', 'SCHEMA', 'NOT'}")
    c.unknown_statement()
    return None


def _query(c: Cursor) -> Statement:
    at = c.at
    return QueryStatement(query(c), at=at)


def _create(c: Cursor) -> Statement:
    at = c.at
    c.expect("CREATE")
    or_replace = c.takes("OR", "REPLACE")
    if c.sees("SINK") or c.sees("SOURCE", "CONNECTOR"):
        return _create_connector(c)
    if c.takes("TYPE"):
        exists = c.takes("IF", "NOT", "EXISTS")
        name = c.name()
        c.expect("AS")
        return CreateType(name, type_name(c), exists, at=at)
    beyond = extension_parser.create(c, at, or_replace)
    if beyond is not None:
        return beyond
    source = c.takes("SOURCE")
    kind = _source_kind(c)
    exists = c.takes("IF", "NOT", "EXISTS")
    name = c.name()
    columns = _columns(c, kind) if c.sees("(") else ()
    properties = _properties(c) if c.takes("WITH") else ()
    if not source and not columns and c.takes("AS"):
        return CreateAs(kind, name, properties, query(c), or_replace, exists, at=at)
    return CreateSource(kind, name, columns, properties, or_replace, exists, source, at=at)


def _source_kind(c: Cursor) -> SourceKind:
    if c.takes("STREAM"):
        return "STREAM"
    if c.takes("TABLE"):
        return "TABLE"
    c.fail("{'STREAM', 'TABLE'}")
    return None


def _columns(c: Cursor, kind: SourceKind) -> tuple[ColumnDef, ...]:
    c.expect("(")
    columns: list[ColumnDef] = []
    while not c.takes(")"):
        if columns:
            c.expect(",")
        columns.append(_column(c, kind))
    return tuple(columns)


def _column(c: Cursor, kind: SourceKind) -> ColumnDef:
    at = c.at
    name = c.name()
    data_type = type_name(c)
    place = f"Line: {at[0]}, Col: {at[1]}: Column `{name}` is a"
    if c.takes("PRIMARY", "KEY"):
        if kind == "STREAM":
            raise ParseError(f"{place} 'PRIMARY KEY' column: please use 'KEY' for streams.\n" + _why_keys())
        return ColumnDef(name, data_type, "PRIMARY KEY", at=at)
    if c.takes("KEY"):
        if kind == "TABLE":
            raise ParseError(f"{place} 'KEY' column: please use 'PRIMARY KEY' for tables.\n" + _why_keys())
        return ColumnDef(name, data_type, "KEY", at=at)
    if c.takes("HEADERS"):
        return ColumnDef(name, data_type, "HEADERS", at=at)
    if c.takes("HEADER", "("):
        header = c.string()
        c.expect(")")
        return ColumnDef(name, data_type, "HEADER", header, at=at)
    return ColumnDef(name, data_type, at=at)


def _why_keys() -> str:
    return "Tables have PRIMARY KEYs, which are unique and NON NULL; streams have KEYs, which are neither."


def _properties(c: Cursor) -> Properties:
    c.expect("(")
    items: list[tuple[str, object]] = []
    while not c.takes(")"):
        if items:
            c.expect(",")
        name = c.string() if c.now.kind == "string" else c.name()
        c.expect("=")
        items.append((name if "." in name else name.upper(), literal(c).value))
    return tuple(sorted(items, key=lambda item: item[0]))


def _insert(c: Cursor) -> Statement:
    at = c.at
    c.expect("INSERT", "INTO")
    name = c.name()
    properties = _properties(c) if c.sees("WITH", "(") and c.takes("WITH") else ()
    if c.sees("SELECT") or c.sees("WITH"):
        return InsertInto(name, properties, query(c), at=at)
    columns = _names(c) if c.sees("(") else ()
    c.expect("VALUES")
    return InsertValues(name, columns, _values(c), at=at)


def _names(c: Cursor) -> tuple[str, ...]:
    c.expect("(")
    names = [c.name()]
    while c.takes(","):
        names.append(c.name())
    c.expect(")")
    return tuple(names)


def _values(c: Cursor) -> tuple[Expression, ...]:
    c.expect("(")
    values = [expression(c)]
    while c.takes(","):
        values.append(expression(c))
    c.expect(")")
    return tuple(values)


def _drop(c: Cursor) -> Statement:
    at = c.at
    c.expect("DROP")
    if c.takes("CONNECTOR"):
        exists = c.takes("IF", "EXISTS")
        return DropConnector(c.name(), exists, at=at)
    if c.takes("TYPE"):
        exists = c.takes("IF", "EXISTS")
        return DropType(c.name(), exists, at=at)
    beyond = extension_parser.drop(c, at)
    if beyond is not None:
        return beyond
    kind = _source_kind(c)
    exists = c.takes("IF", "EXISTS")
    return DropSource(kind, c.name(), exists, c.takes("DELETE", "TOPIC"), at=at)


def _alter(c: Cursor) -> Statement:
    at = c.at
    c.expect("ALTER")
    if c.takes("SYSTEM"):
        name = c.string()
        c.expect("=")
        return AlterSystem(name, c.string(), at=at)
    kind = _source_kind(c)
    name = c.name()
    added = [_added(c)]
    while c.takes(","):
        added.append(_added(c))
    return AlterSource(kind, name, tuple(added), at=at)


def _added(c: Cursor) -> Field:
    c.expect("ADD")
    if c.sees("COLUMN") and c.ahead(2).kind != "symbol":
        c.next()
    name = c.name()
    data_type: Type = type_name(c)
    return Field(name, data_type)


def _create_connector(c: Cursor) -> Statement:
    at = c.at
    kind: Literal["SOURCE", "SINK"] = "SOURCE" if c.takes("SOURCE") else "SINK"
    c.takes("SINK")
    c.expect("CONNECTOR")
    exists = c.takes("IF", "NOT", "EXISTS")
    name = c.name()
    c.expect("WITH")
    return CreateConnector(kind, name, _properties(c), exists, at=at)


def _set(c: Cursor) -> Statement:
    at = c.at
    c.expect("SET")
    name = c.string()
    c.expect("=")
    return SetProperty(name, c.string(), at=at)


def _unset(c: Cursor) -> Statement:
    at = c.at
    c.expect("UNSET")
    return UnsetProperty(c.string(), at=at)


def _define(c: Cursor) -> Statement:
    at = c.at
    c.expect("DEFINE")
    name = c.name()
    c.expect("=")
    return Define(name, c.string(), at=at)


def _undefine(c: Cursor) -> Statement:
    at = c.at
    c.expect("UNDEFINE")
    return Undefine(c.name(), at=at)


def _show(c: Cursor) -> Statement:
    at = c.at
    c.next()
    scope = next((word for word in ("ALL", "SOURCE", "SINK") if c.takes(word)), None)
    for words in SHOWN:
        if c.takes(*words):
            return Show(" ".join(words), scope, c.takes("EXTENDED"), at=at)
    c.fail("{" + ", ".join(f"'{words[0]}'" for words in SHOWN) + "}")
    return None


SHOWN = (
    ("TOPICS",),
    ("STREAMS",),
    ("TABLES",),
    ("FUNCTIONS",),
    ("CONNECTOR", "PLUGINS"),
    ("CONNECTORS",),
    ("TYPES",),
    ("VARIABLES",),
    ("QUERIES",),
    ("PROPERTIES",),
)


def _describe(c: Cursor) -> Statement:
    at = c.at
    c.expect("DESCRIBE")
    if c.takes("FUNCTION"):
        return Describe("FUNCTION", c.name(), at=at)
    if c.takes("CONNECTOR"):
        return Describe("CONNECTOR", c.name(), at=at)
    if c.takes("STREAMS"):
        return Describe("STREAMS", None, c.takes("EXTENDED"), at=at)
    if c.sees("TABLES") and c.ahead().value in (";", "<EOF>", "EXTENDED"):
        c.next()
        return Describe("TABLES", None, c.takes("EXTENDED"), at=at)
    if c.takes("EXTENDED"):
        return Describe("SOURCE", c.name(), True, at=at)
    return Describe("SOURCE", c.name(), c.takes("EXTENDED"), at=at)


def _print(c: Cursor) -> Statement:
    at = c.at
    c.expect("PRINT")
    topic = c.string() if c.now.kind == "string" else _topic_name(c)
    from_beginning = c.takes("FROM", "BEGINNING")
    interval = c.integer() if c.takes("INTERVAL") or c.takes("SAMPLE") else None
    return PrintTopic(topic, from_beginning, interval, c.integer() if c.takes("LIMIT") else None, at=at)


def _topic_name(c: Cursor) -> str:
    """Take a topic's name, which keeps its case even without quotes."""
    token = c.now
    name = c.name()
    return token.raw if token.kind == "name" else name


def _control(c: Cursor) -> Statement:
    at = c.at
    action = c.next().value
    query_id = None if c.takes("ALL") else c.name()
    return QueryControl(action, query_id, at=at)  # type: ignore[arg-type]


def _explain(c: Cursor) -> Statement:
    at = c.at
    c.expect("EXPLAIN")
    if c.now.kind in ("name", "quoted") and c.ahead().value in (";", "<EOF>"):
        return Explain(None, c.name(), at=at)
    return Explain(_statement(c, testing=False), None, at=at)


def _assert_topic(c: Cursor) -> Statement:
    at = c.at
    c.expect("ASSERT")
    exists = not c.takes("NOT", "EXISTS")
    if c.takes("TOPIC"):
        topic = c.string() if c.now.kind == "string" else _topic_name(c)
        properties = _properties(c) if c.takes("WITH") else ()
        return AssertTopic(topic, properties, _timeout(c), exists, at=at)
    c.expect("SCHEMA")
    subject = None
    if c.takes("SUBJECT"):
        subject = c.string() if c.now.kind == "string" else _topic_name(c)
    schema_id = c.integer() if c.takes("ID") else None
    return AssertSchema(subject, schema_id, _timeout(c), exists, at=at)


def _timeout(c: Cursor) -> Span | None:
    return span(c) if c.takes("TIMEOUT") else None


def _assert_values(c: Cursor) -> Statement:
    at = c.at
    c.expect("ASSERT")
    tombstone = c.takes("NULL")
    c.expect("VALUES")
    name = c.name()
    columns = _names(c) if c.sees("(") else ()
    c.takes("KEY") if tombstone else c.expect("VALUES")
    return AssertValues(name, columns, _values(c), tombstone, at=at)


def _assert_source(c: Cursor) -> Statement:
    at = c.at
    c.expect("ASSERT")
    kind = _source_kind(c)
    name = c.name()
    columns = _columns(c, kind) if c.sees("(") else ()
    properties = _properties(c) if c.takes("WITH") else ()
    return AssertSource(CreateSource(kind, name, columns, properties, at=at), at=at)


def _run_script(c: Cursor) -> Statement:
    at = c.at
    c.expect("RUN", "SCRIPT")
    return RunScript(c.string(), at=at)


Rows = tuple[tuple[tuple[str, ...], Callable[[Cursor], Statement]], ...]

# The first words of each statement, and who reads it.
STATEMENTS: Rows = (
    (("SELECT",), _query),
    (("WITH",), _query),
    (("CREATE",), _create),
    (("INSERT",), _insert),
    (("DROP",), _drop),
    (("DELETE", "FROM"), extension_parser.delete),
    (("ALTER",), _alter),
    (("SET",), _set),
    (("UNSET",), _unset),
    (("DEFINE",), _define),
    (("UNDEFINE",), _undefine),
    (("LIST",), _show),
    (("SHOW",), _show),
    (("DESCRIBE",), _describe),
    (("PRINT",), _print),
    (("TERMINATE",), _control),
    (("PAUSE",), _control),
    (("RESUME",), _control),
    (("EXPLAIN",), _explain),
    (("ASSERT", "TOPIC"), _assert_topic),
    (("ASSERT", "SCHEMA"), _assert_topic),
    (("ASSERT", "NOT"), _assert_topic),
)
TEST_STATEMENTS: Rows = (
    (("ASSERT", "VALUES"), _assert_values),
    (("ASSERT", "NULL"), _assert_values),
    (("ASSERT", "STREAM"), _assert_source),
    (("ASSERT", "TABLE"), _assert_source),
    (("RUN", "SCRIPT"), _run_script),
)
