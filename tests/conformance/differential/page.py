"""docs/deviations.md: what the API files say under "Deviates", the rows of accepted.toml, and those of Connect and SQL.

`python -m tests.conformance.differential.page` writes it (`make docs`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests import needs
from tests.conformance.differential.accepted import ALL, ANY, Accepted, table
from tests.connect.judge.deviations import CHANGES
from tests.connect.judge.deviations import DEVIATIONS as CONNECT
from tests.sql.deviations import DEVIATIONS as SQL

PAGE = needs.ROOT / "docs" / "deviations.md"
APIS = needs.ROOT / "src" / "moldau" / "broker" / "api"
MARK = "Deviates: "
NOTHING = "nothing known"


def page() -> str:
    return "\n".join(lines()) + "\n"


def lines() -> Iterator[str]:
    yield "# Where Moldau deviates from Apache Kafka 4.3.1"
    yield ""
    yield "Made by `make docs` from the API files and from `tests/conformance/differential/accepted.toml`. Defaults of"
    yield "settings that are not Kafka's stand in [settings.md](settings.md)."
    yield ""
    yield "## API by API"
    yield ""
    yield "| API | deviates |"
    yield "|---|---|"
    yield from (f"| {name} | {text} |" for name, text in deviations())
    yield ""
    yield "## Request by request"
    yield ""
    yield "`tests/conformance/differential` sends the same requests to both brokers and compares the decoded answers."
    yield "They agree but for these. A difference that is not listed fails the test, and so does a row without need."
    for script, rows in table().items():
        yield from section(script, rows)
    yield from ["", "## Records of Connect", ""]
    yield "Transforms, predicates and converters are compared with Connect's by `make judge-connect`."
    yield from ["", "| what | Connect | Moldau |", "|---|---|---|"]
    yield from (f"| {row.what} | {row.connect} | {row.moldau} |" for row in CONNECT)
    yield from ["", "## Changes of MariaDB and MySQL", "", "| what | Debezium | Moldau |", "|---|---|---|"]
    yield from (f"| {row.what} | {row.connect} | {row.moldau} |" for row in CHANGES)
    yield from ["", "## SQL functions and formats", ""]
    yield from ["`moldau sql test` runs ksqlDB's own query cases.", "", "| what | ksqlDB | Moldau |", "|---|---|---|"]
    yield from (f"| {what} | {ksqldb} | {moldau} |" for what, ksqldb, moldau in SQL)


def section(script: str, rows: tuple[Accepted, ...]) -> Iterator[str]:
    yield ""
    yield f"### {'Everywhere' if script == ALL else script.capitalize()}"
    yield ""
    yield "| requests | field | Kafka | Moldau | why |"
    yield "|---|---|---|---|---|"
    for row in rows:
        cases, fields = ("<br>".join(map(cell, names)) for names in (row.cases, row.fields))
        yield f"| {cases} | {fields} | {said(row.kafka)} | {said(row.moldau)} | {row.why} |"


def cell(name: str) -> str:
    """A name with asterisks, which would be emphasis."""
    return {"": "the answer", ANY: "any"}.get(name) or name.replace("*", "…").replace("|", "/")


def said(value: object) -> str:
    return "" if value == ANY else str(value)


def deviations() -> Iterator[tuple[str, str]]:
    """Name and deviations of each API that has some, as its file says."""
    for path in sorted(APIS.glob("*.py")):
        prose = ast.get_docstring(ast.parse(path.read_text())) or ""
        _, _, rest = prose.partition(MARK)
        text = " ".join(rest.split("\n\n")[0].split())
        if text and not text.startswith(NOTHING):
            yield prose.split(",")[0], text[0].upper() + text[1:]


def main(where: Path = PAGE) -> None:
    where.write_text(page())


if __name__ == "__main__":
    main()
