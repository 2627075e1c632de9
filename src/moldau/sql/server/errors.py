"""Refusals of the server: an error code of ksqlDB, which begins with the HTTP status, and a message."""

from __future__ import annotations

from typing import Any

from moldau.sql.errors import StatementError

BAD_REQUEST, BAD_STATEMENT, QUERY_ENDPOINT = 40000, 40001, 40002
TOO_MANY_PUSH_QUERIES, NOT_FOUND, NOT_ACCEPTABLE, ASSERTION_FAILED = 40003, 40400, 40600, 41700
DENIED, NO_ACCESS, TOO_MANY_REQUESTS = 40300, 40301, 42900
SERVER_ERROR, NOT_CAUGHT_UP, NOT_READY, SHUTTING_DOWN = 50000, 50301, 50302, 50303
FORBIDDEN = "You are forbidden from using this cluster."  # in ksqlDB's words


class ServerError(Exception):
    """A refusal with its code; with a statement it is a statement's error."""

    def __init__(
        self, code: int, message: str, statement: str | None = None, entities: tuple[dict[str, Any], ...] = ()
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.statement, self.entities = code, message, statement, entities

    @property
    def status(self) -> int:
        return self.code // 100

    def body(self) -> dict[str, Any]:
        if self.statement is None:
            return {"@type": "generic_error", "error_code": self.code, "message": self.message}
        return {
            "@type": "statement_error",
            "error_code": self.code,
            "message": self.message,
            "statementText": self.statement,
            "entities": list(self.entities),
        }


def reason(error: Exception) -> str:
    """Return the message of a refusal without the text of its statement, which the answer has anyway."""
    return error.reason if isinstance(error, StatementError) else str(error)
