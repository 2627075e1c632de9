"""Pull queries that ksqlDB refuses, answered by DuckDB over the same views: aggregates, joins, ORDER BY, subqueries.

The tables that a query names become columns with their SQL types. The functions are DuckDB's, and `s.f` is a field of a
struct. What ksqlDB can answer never comes here, and with `ksql.dialect=strict` nothing does.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from moldau.extras import NotInstalled, require
from moldau.sql.catalogue import Settings, Source
from moldau.sql.cursor import Cursor
from moldau.sql.errors import ParseError, SqlError
from moldau.sql.extensions import DIALECT, STRICT
from moldau.sql.lexer import tokenize
from moldau.sql.moment_parser import as_of, wait
from moldau.sql.moments import AsOf, Wait
from moldau.sql.query_parser import takes_alias
from moldau.sql.server.access import READ
from moldau.sql.server.catching_up import wait_until
from moldau.sql.server.columns import ROWTIME, table_of
from moldau.sql.server.errors import BAD_STATEMENT, ServerError
from moldau.sql.server.materialized import View
from moldau.sql.server.past import view_as_of
from moldau.sql.server.results import ResultRow, Results, given
from moldau.sql.transient.pull import SCANS
from moldau.sql.tree import ArrayType, DecimalType, Field, MapType, Primitive, StructType, Type
from moldau.views import ViewError
from moldau.views.sql import CONFIG, MOST_TEXT, PATIENCE_S, mentioned

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service

BIGGEST = 1 << 63
MOST_IDLE = 4  # databases that wait for queries
# Words that follow a table in DuckDB's language, and are names in ksqlDB's.
CLAUSES = ("ORDER", "USING", "CROSS", "NATURAL", "UNION", "INTERSECT", "EXCEPT", "OFFSET", "QUALIFY", "SEMI", "ANTI")


def may_answer(service: Service, request: Request) -> bool:
    """Tell whether a text is a query that DuckDB may be asked."""
    settings = {**service.settings, **request.properties}
    if str(settings.get(DIALECT, "")).lower() == STRICT or not Settings(settings).flag(SCANS, True):
        return False
    try:
        words = [token.value for token in tokenize(request.text) if token.kind in ("name", "symbol")]
    except ParseError:
        return False
    return words[:1] in (["SELECT"], ["WITH"]) and not {"EMIT", "${"} & set(words) and len(request.text) <= MOST_TEXT


def answer(service: Service, request: Request, refused: ServerError) -> Results:
    """Answer a query that was refused; if DuckDB cannot either, the first refusal stands."""
    try:
        require("console", "full SQL in pull queries", "duckdb", "pyarrow")
        plain, moments, until = _without_moments(request.text)
        text = _duckdb_text(plain)
        known = dict(service.engine.catalogue.sources)
        known |= {alias: known[name] for alias, (name, _) in moments.items() if name in known}
        names = mentioned(text, known)
    except (NotInstalled, ViewError, ParseError):
        raise refused from None
    if not names:
        raise refused
    request.access({known[name].topic: {READ} for name in names})
    with service.admission.pull():
        try:
            if until is not None:
                wait_until(service, [known[name].name for name in names], until)
            lag = service.pulls.most_lag(request)
            tables = {name: _table(service, known[name], text, moments.get(name), lag) for name in names}
        except SqlError as error:
            raise ServerError(BAD_STATEMENT, str(error), request.text) from None
        found = _run(service, text, tables, refused)
    columns = [(_name(field.name, request.text), _sql_type(field.type), False) for field in found.schema]
    by_column = [_nodes(column, kind) for column, (_, kind, _) in zip(found.columns, columns, strict=True)]
    return given(columns, [ResultRow(list(row)) for row in zip(*by_column, strict=True)])


def _without_moments(text: str) -> tuple[str, dict[str, tuple[str, AsOf]], Wait | None]:
    """Replace each table with AS OF by a name of its own, under the table's name or its alias; cut WAIT UNTIL off."""
    until: Wait | None = None
    moments: dict[str, tuple[str, AsOf]] = {}
    parts, end = [], 0
    cursor = Cursor(text, tokenize(text))
    while cursor.now.kind != "end":
        start = cursor.now.start
        if until is None and (until := wait(cursor)) is not None:
            parts.append(text[end:start])
            end = cursor.tokens[cursor.place - 1].end
            continue
        table = cursor.next()
        if table.kind not in ("name", "quoted") or (moment := as_of(cursor)) is None:
            continue
        own = f"{table.value} as of {len(moments)}"
        moments[own] = (table.value, moment)
        parts += [text[end : table.start], f"`{own}`"]
        end = cursor.tokens[cursor.place - 1].end
        if cursor.now.value in CLAUSES or not takes_alias(cursor):
            parts.append(f" AS `{table.value}`")
    return "".join([*parts, text[end:]]), moments, until


def _duckdb_text(text: str) -> str:
    """Quote names as DuckDB does, and leave out the semicolon at the end."""
    parts, end = [], 0
    for token in tokenize(text):
        if token.kind == "quoted" and text[token.start] == "`":
            parts += [text[end : token.start], '"', token.value.replace('"', '""'), '"']
            end = token.end
    return "".join([*parts, text[end:]]).strip().rstrip(";")


class Databases:
    """Databases of DuckDB that wait for the next query: to make one takes longer than most queries.

    A query has one for itself, for its memory is limited there, and a connection of its own, with which its tables go.
    """

    def __init__(self) -> None:
        self._idle: deque[Any] = deque(maxlen=MOST_IDLE)

    @contextmanager
    def connection(self, memory_megabytes: int) -> Iterator[Any]:
        import duckdb

        try:
            database = self._idle.pop()
        except IndexError:
            config: dict[str, Any] = {**CONFIG, "memory_limit": f"{memory_megabytes}MB", "threads": "1"}
            database = duckdb.connect(":memory:", config=config)
        is_usable = True
        try:
            with database.cursor() as connection:
                yield connection
        except (duckdb.FatalException, duckdb.InternalException):
            is_usable = False
            raise
        finally:
            if is_usable:
                self._idle.append(database)


def _run(service: Service, text: str, tables: dict[str, Any], refused: ServerError) -> Any:
    import duckdb

    limits = service.admission.limits
    try:
        with service.databases.connection(limits.pull_memory_megabytes) as connection:
            found = _found(connection, text, tables, limits.pull_rows + 1)
    except duckdb.InterruptException:
        raise ServerError(BAD_STATEMENT, f"The query took longer than {PATIENCE_S:g} s.", text) from None
    except duckdb.OutOfMemoryException:
        what = f"{limits.pull_memory_megabytes} MB (ksql.query.pull.max.memory.megabytes)"
        raise ServerError(BAD_STATEMENT, f"The query needs more memory than {what}.", text) from None
    except duckdb.Error as error:
        raise ServerError(BAD_STATEMENT, f"{refused.message}\n\nFull SQL: {error}", refused.statement) from None
    if found.num_rows > limits.pull_rows:
        raise ServerError(
            BAD_STATEMENT, f"The answer has more than {limits.pull_rows} rows (ksql.query.pull.max.rows).", text
        )
    return found


def _found(connection: Any, text: str, tables: dict[str, Any], most: int) -> Any:
    for name, table in tables.items():
        connection.register(name, table)
    timer = threading.Timer(PATIENCE_S, connection.interrupt)
    timer.start()
    try:
        return connection.sql(text).limit(most).to_arrow_table()
    finally:
        timer.cancel()


# Tables


def _table(service: Service, source: Source, text: str, past: tuple[str, AsOf] | None, most_lag: int | None) -> Any:
    """Return the rows of a table as columns: the key, the bounds of windows, the values, and ROWTIME if it is named."""
    most = service.admission.limits.pull_rows
    if source.kind == "STREAM":
        message = f"{source.name} is a stream: full SQL reads tables. CREATE TABLE ... AS makes one of it."
        raise ServerError(BAD_STATEMENT, message, text)
    if past is None:
        with service.pulls.up_to_date(source, most_lag) as view:
            return _arrow_table(view, most, ROWTIME in text.upper())
    view = view_as_of(source, past[1], service.topics, service.registry, service.clock())
    return _arrow_table(view, most, ROWTIME in text.upper())


def _arrow_table(view: View, most: int, with_time: bool) -> Any:
    if view.count() > most:
        name = view.source.name
        raise ServerError(BAD_STATEMENT, f"{name} has more than {most} rows (ksql.query.pull.max.rows).", name)
    return table_of(view, with_time)


# Answers


def _name(name: str, text: str) -> str:
    """Spell a column as ksqlDB does: in upper case, unless it is quoted."""
    return name if f'"{name}"' in text or f"`{name}`" in text else name.upper()


def _sql_type(kind: Any) -> Type:
    import pyarrow.types as of

    rows: tuple[tuple[Callable[[Any], bool], str], ...] = (
        (of.is_boolean, "BOOLEAN"),
        (lambda t: of.is_integer(t) and t.bit_width <= 32 and not of.is_uint32(t), "INTEGER"),
        (of.is_integer, "BIGINT"),
        (of.is_floating, "DOUBLE"),
        (of.is_date, "DATE"),
        (of.is_time, "TIME"),
        (of.is_timestamp, "TIMESTAMP"),
        (of.is_binary, "BYTES"),
    )
    for fits, name in rows:
        if fits(kind):
            return Primitive(name)
    if of.is_decimal(kind):
        return (
            Primitive("BIGINT") if (kind.precision, kind.scale) == (38, 0) else DecimalType(kind.precision, kind.scale)
        )
    if of.is_map(kind):
        return MapType(_sql_type(kind.key_type), _sql_type(kind.item_type))
    if of.is_list(kind) or of.is_large_list(kind):
        return ArrayType(_sql_type(kind.value_type))
    if of.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return StructType(tuple(Field(each.name, _sql_type(each.type)) for each in fields))
    return Primitive("STRING")


def _nodes(column: Any, kind: Type) -> list[Any]:
    return [_node(value, kind) for value in column.to_pylist()]


def _node(value: Any, kind: Type) -> Any:
    """Return a value as answers have it; a sum of integers is DuckDB's own type, and must fit into 64 bits."""
    if value is None:
        return None
    match kind:
        case Primitive(name="BIGINT"):
            if not -BIGGEST <= value < BIGGEST:
                raise ServerError(BAD_STATEMENT, f"{value} does not fit into a BIGINT: cast it to DOUBLE.", "")
            return int(value)
        case Primitive(name="TIMESTAMP"):
            moment: datetime = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return moment.isoformat(timespec="milliseconds")
        case Primitive(name="DATE"):
            return value.isoformat()
        case Primitive(name="TIME"):
            return value.isoformat() if value.microsecond == 0 else value.isoformat(timespec="milliseconds")
        case Primitive(name="BYTES"):
            import base64

            return base64.b64encode(value).decode()
        case Primitive(name="STRING"):
            return str(value)
        case ArrayType():
            return [_node(item, kind.item) for item in value]
        case MapType():
            return {str(key): _node(item, kind.value) for key, item in value}
        case StructType():
            return {field.name: _node(value[field.name], field.type) for field in kind.fields}
        case _:
            return value
