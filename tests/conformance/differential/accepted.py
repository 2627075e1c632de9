"""accepted.toml: the differences that are meant, or wait for a part that is not built yet."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.differential.normal import Difference

TABLE = Path(__file__).parent / "accepted.toml"
ANY = "*"
ALL = "*"  # scripts


@dataclass(frozen=True, slots=True)
class Accepted:
    """A row. `cases` and `fields` may have asterisks; `kafka` and `moldau` are the values, if always the same."""

    cases: tuple[str, ...]
    why: str
    fields: tuple[str, ...] = ("",)
    kafka: Any = ANY
    moldau: Any = ANY

    def covers(self, case: str, difference: Difference) -> bool:
        values = ((self.kafka, difference.kafka), (self.moldau, difference.moldau))
        return (
            self.names(case)
            and any(fnmatchcase(difference.path, pattern) for pattern in self.fields)
            and all(wanted in (ANY, found) for wanted, found in values)
        )

    def names(self, case: str) -> bool:
        return any(fnmatchcase(case, pattern) for pattern in self.cases)


@cache
def table() -> dict[str, tuple[Accepted, ...]]:
    """The rows by script."""
    rows = tomllib.loads(TABLE.read_text())
    return {script: tuple(map(_row, found)) for script, found in rows.items()}


def _row(given: dict[str, Any]) -> Accepted:
    lists = {name: tuple(given.pop(name)) for name in ("cases", "fields") if name in given}
    return Accepted(**lists, **given)


class Judgement:
    """What a script's differences came to, beside the rows for it."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.own = table().get(script, ())
        self.rows = (*self.own, *table().get(ALL, ()))
        self.used: set[tuple[Accepted, str]] = set()
        self.requests = 0
        self.accepted = 0
        self.failures: list[str] = []

    def line(self) -> str:
        counts = f"{self.requests} requests, {self.accepted} differ as accepted, {len(self.failures)} failures"
        return f"{self.script}: {counts}"

    def unexpected(self, case: str, found: Iterable[Difference]) -> list[Difference]:
        return [difference for difference in found if not self._covered(case, difference)]

    def _covered(self, case: str, difference: Difference) -> bool:
        rows = [row for row in self.rows if row.covers(case, difference)]
        self.used |= {(row, pattern) for row in rows for pattern in row.cases if fnmatchcase(case, pattern)}
        return bool(rows)

    def unneeded(self) -> list[str]:
        """Rows, and names of cases in rows, that no answer needed."""
        wanted = [(row, pattern) for row in self.own for pattern in row.cases]
        return [
            f"accepted.toml: {pattern} ({', '.join(row.fields) or 'answer'}) agrees now"
            for row, pattern in wanted
            if (row, pattern) not in self.used
        ]
