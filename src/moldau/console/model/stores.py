"""Queries of the stores of an application in a form, and their answers in a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.console.model.problems import Refused
from moldau.records.stores import Kind

KEY, RANGE, SQL = "Key", "Range", "SQL"
WAYS = (KEY, RANGE, SQL)
MOST_ROWS = 200
LONGEST_CELL = 2000  # characters
LONGEST_QUERY = 64 << 10
PATIENCE_MS = 25_000  # for a changelog to be read
SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Question:
    """A query. Without an `address` the store is read from its changelog, using kind and formats."""

    store: str
    way: str = KEY
    key: str = ""
    low: str = ""
    high: str = ""
    prefix: str = ""
    sql: str = ""
    address: str = ""
    kind: str = Kind.key_value
    window_size_ms: int = 0
    key_format: str = "string"
    value_format: str = "string"

    def check(self) -> None:
        """Raise Refused if something is missing or too long."""
        if self.way not in WAYS or self.kind not in list(Kind):
            raise Refused("Choose how to query, and the kind of the store.")
        if self.way == SQL and not self.sql.strip():
            raise Refused("Write a query: select key, value from the store.")
        if self.way == KEY and not self.key:
            raise Refused("Write a key; a range finds many.")
        if sum(map(len, (self.key, self.low, self.high, self.prefix, self.sql, self.address))) > LONGEST_QUERY:
            raise Refused(f"A query may have at most {LONGEST_QUERY} characters.")
        if self.address and not self.address.startswith(SCHEMES):
            raise Refused("The address is that of application.server, with http:// in front.")
        if self.kind == Kind.window and not self.address and self.window_size_ms <= 0:
            raise Refused("Give the window size in milliseconds: the changelog does not have it.")

    @property
    def parameters(self) -> dict[str, str]:
        """Return the parameters that the service of stores takes."""
        bounds = {"from": self.low, "to": self.high, "prefix": self.prefix} if self.way == RANGE else {}
        limits = {"limit": str(MOST_ROWS), "timeout_ms": str(PATIENCE_MS)}
        return {name: text for name, text in {**bounds, **limits}.items() if text}


def table(found: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """Return columns and rows of an answer, as text."""
    rows = [
        one if isinstance(one, Mapping) else {"value": one} for one in (found if isinstance(found, list) else [found])
    ]
    columns = list(dict.fromkeys(str(name) for row in rows[:MOST_ROWS] for name in row))
    return columns, [
        {"#": number, **{str(name): _text(value) for name, value in row.items()}}
        for number, row in enumerate(rows[:MOST_ROWS])
    ]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
