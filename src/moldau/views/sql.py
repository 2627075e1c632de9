"""SQL over views, answered by DuckDB.

A view is a table: `key`, `value` and `timestamp`; windows have `window_start` and `window_end` too. Keys and values
that are documents are structs (`value.amount`); where entries differ too much for one type, they are text in JSON.
Times are in UTC. What was made of a view for one query serves the next one, until the view has changed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.extras import NotInstalled, require
from moldau.operators.windowed import LAST_TIME

from .errors import ViewError
from .plain import plain
from .view import View

if TYPE_CHECKING:
    import pyarrow as pa

TIMES = ("window_start", "window_end", "timestamp")
CONFIG = {
    "enable_external_access": "false",  # a query reads views, and no files of this machine
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "memory_limit": "1GB",
}
PATIENCE_S = 60.0
MOST_TEXT = 100_000


def answer(query: str, views: Mapping[str, View], timeout_s: float = PATIENCE_S) -> pa.Table:
    """Answer a query by an Arrow table. Only views that the query names are read."""
    try:
        require("console", "SQL over views", "duckdb", "pyarrow")
    except NotInstalled as error:
        raise ViewError(str(error)) from None
    import duckdb

    if len(query) > MOST_TEXT:
        raise ViewError(f"the query has {len(query)} characters: at most {MOST_TEXT} are allowed")
    names = mentioned(query, views)
    with duckdb.connect(":memory:", config=dict(CONFIG)) as connection:
        for name in names:
            connection.register(name, table_of(views[name]))
        timer = threading.Timer(timeout_s, connection.interrupt)
        timer.start()
        try:
            return connection.sql(query).to_arrow_table()
        except duckdb.InterruptException:
            raise ViewError(f"the query took longer than {timeout_s:g} s") from None
        except duckdb.Error as error:
            raise ViewError(f"the query cannot be answered: {error}") from None
        finally:
            timer.cancel()


def mentioned(query: str, known: Iterable[str]) -> list[str]:
    """Return the views that a query reads."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse(query, dialect="duckdb")
    except SqlglotError as error:
        raise ViewError(f"the query cannot be read: {error}") from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        raise ViewError("a query over views is one SELECT")
    by_lower = {name.lower(): name for name in known}
    used = {table.name.lower() for table in parsed[0].find_all(exp.Table)}
    return [by_lower[name] for name in sorted(used) if name in by_lower]


def table_of(view: View) -> pa.Table:
    """Return the entries of a view as columns."""
    import pyarrow as pa

    position = tuple(sorted(view.position.items()))
    if view.table is not None and view.table[0] == position:
        return view.table[1]
    rows = list(view.rows())
    names = list(rows[0]) if rows else ["key", "value", "timestamp"]
    made = pa.table({name: column(name, [row[name] for row in rows]) for name in names})
    view.table = (position, made)
    return made


def column(name: str, values: list[Any]) -> pa.Array:
    import pyarrow as pa

    if name in TIMES:
        times = [None if value is None or value < 0 or value == LAST_TIME else value for value in values]
        return pa.array(times, pa.timestamp("ms"))
    try:
        return pa.array(values) if values else pa.array([], pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else json.dumps(plain(value)) for value in values], pa.string())
