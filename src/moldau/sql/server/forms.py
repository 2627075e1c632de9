"""The forms in which rows are sent: a list of documents to /query, lines or a list to /query-stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.sql.server.documents import dumps
from moldau.sql.server.errors import ServerError
from moldau.sql.server.inserting import DELIMITED_V1
from moldau.sql.server.results import ResultRow, Results

JSON, JSON_V1 = "application/json", "application/vnd.ksql.v1+json"


@dataclass(frozen=True, slots=True)
class Form:
    """A form of an answer: `row` makes the bytes of a row, or of the failure that ends the rows."""

    media_type: str
    first: Callable[[Results], bytes]
    row: Callable[[ResultRow | ServerError], bytes]
    end: bytes
    has_final: bool = False  # whether the message at the end is sent

    def head(self, results: Results) -> bytes:
        """Return the bytes before the first row; they are kept with the plan, if that is kept."""
        if (head := results.heads.get(self.media_type)) is None:
            head = results.heads[self.media_type] = self.first(results)
        return head

    def tail(self, results: Results, failed: bool = False) -> bytes:
        if self.has_final and results.final is not None and not failed:
            return b",\n" + dumps({"finalMessage": results.final}) + self.end
        return self.end


def _columns(results: Results) -> bytes:
    return dumps({"queryId": results.query_id, "columnNames": results.names, "columnTypes": results.types})


def _line(row: ResultRow | ServerError) -> bytes:
    return dumps(row.body() if isinstance(row, ServerError) else row.columns)


def _header(results: Results) -> bytes:
    return b"[" + dumps({"header": {"queryId": results.query_id or "none", "schema": results.schema}})


def _document(row: ResultRow | ServerError) -> bytes:
    if isinstance(row, ServerError):
        return b",\n" + dumps({"errorMessage": row.body()})
    columns: dict[str, Any] = {"columns": row.columns}
    return b",\n" + dumps({"row": columns | ({"tombstone": True} if row.tombstone else {})})


DOCUMENTS = Form(JSON_V1, _header, _document, b"]", has_final=True)
LINES = Form(DELIMITED_V1, lambda results: _columns(results) + b"\n", lambda row: _line(row) + b"\n", b"")
LIST = Form(JSON, lambda results: b"[" + _columns(results), lambda row: b",\n" + _line(row), b"]\n")
