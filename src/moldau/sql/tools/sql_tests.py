"""Tests of SQL in SQL, in the form of ksqlDB's: statements, rows that go in, and rows that must come out, in memory.

--@test: spend per card
CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', value_format='JSON');
CREATE TABLE spend AS SELECT card, SUM(amount) AS total FROM pay GROUP BY card;
INSERT INTO pay (card, amount) VALUES ('visa', 40);
ASSERT VALUES spend (card, total) VALUES ('visa', 40);

Each `--@test` begins on an empty catalogue. `--@expected.error: CLASS` and `--@expected.message: TEXT` say that it must
be refused. ASSERT VALUES takes the next record of a source's topic and compares the columns that it names; ASSERT NULL
VALUES wants a tombstone; ASSERT STREAM and ASSERT TABLE compare a source with a definition. All topics have one
partition, so that records have one order, whatever PARTITIONS says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from moldau.operators.record import Raw
from moldau.sql import formats
from moldau.sql.cases.files import NotCases
from moldau.sql.cases.running import Outcome
from moldau.sql.catalogue import Settings, Source
from moldau.sql.codegen import constant
from moldau.sql.errors import SqlError
from moldau.sql.functions import cases as case_functions
from moldau.sql.local_registry import LocalRegistry
from moldau.sql.parser import parse
from moldau.sql.printer import statement_text
from moldau.sql.server.errors import ServerError
from moldau.sql.server.service import Request, Service
from moldau.sql.server.topics import MemoryTopics
from moldau.sql.shell.statements import placed
from moldau.sql.sources import create_source
from moldau.sql.tree import BIGINT, AssertSource, AssertValues, CreateAs, CreateSource, RunScript, Statement

MAX_ROUNDS = 10_000
MOST_SCRIPTS = 16
SETTINGS = {"auto.offset.reset": "earliest", "ksql.runtime": "local"}
_DIRECTIVE = re.compile(r"^--@([a-z.]+):\s*(.*?)\s*$", re.MULTILINE)
WINDOW_BYTES = {"SESSION": 16}  # after a windowed key; other windows have only their start


class Mismatch(Exception):
    """A test that does not do what it should: one sentence."""


@dataclass(frozen=True, slots=True)
class SqlTest:
    """A test of a file."""

    file: str
    name: str
    text: str
    error: str = ""
    message: str = ""
    folder: Path = field(default_factory=Path)

    @property
    def refused(self) -> bool:
        return bool(self.error or self.message)


def has_tests(text: str) -> bool:
    return any(match.group(1) == "test" for match in _DIRECTIVE.finditer(text))


def read_sql_tests(file: Path) -> list[SqlTest]:
    """Return the tests of a file, in order; NotCases if there are none."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotCases(f"{file} cannot be read: {error}") from None
    starts = [match for match in _DIRECTIVE.finditer(text) if match.group(1) == "test"]
    if not starts:
        raise NotCases(f"{file} has no line --@test: NAME")
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return [_test(file, match.group(2), text[match.end() : end]) for match, end in zip(starts, ends, strict=True)]


def _test(file: Path, name: str, text: str) -> SqlTest:
    given = {match.group(1): match.group(2) for match in _DIRECTIVE.finditer(text)}
    error, message = given.get("expected.error", ""), given.get("expected.message", "")
    return SqlTest(file.stem, name, text, error, message, file.parent)


def check_sql(test: SqlTest) -> Outcome:
    """Run a test and tell whether it passed."""
    case_functions.install()
    try:
        _check(test)
    except Mismatch as error:
        return Outcome(test, False, str(error))
    except (SqlError, ServerError) as error:
        return Outcome(test, False, f"refused: {error}")
    except Exception as error:  # a crash is a result, too: it is reported, and the next test runs
        return Outcome(test, False, f"crashed: {type(error).__name__}: {error}")
    finally:
        case_functions.uninstall()
    return Outcome(test, True)


def _check(test: SqlTest) -> None:
    run = Run(test.folder)
    if not test.refused:
        run.execute(test.text)
        return
    try:
        run.execute(test.text)
    except (Mismatch, SqlError, ServerError) as error:
        if test.message not in str(error):
            raise Mismatch(f"refused with: {error}; expected: {test.message}") from None
        return
    raise Mismatch(f"not refused; expected: {test.message or test.error}")


@dataclass(slots=True)
class Run:
    """An empty catalogue in memory, and what statements have made of it."""

    folder: Path
    registry: LocalRegistry = field(default_factory=LocalRegistry)
    topics: MemoryTopics = field(default_factory=MemoryTopics)
    properties: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)  # how many records of a topic were compared
    service: Service = field(init=False)

    def __post_init__(self) -> None:
        self.service = Service(self.topics, self.registry, SETTINGS, clock=lambda: 0)

    def execute(self, text: str, depth: int = 0) -> None:
        for piece in placed(text):
            for statement in parse(piece, self.variables, testing=True):
                self.one(statement, depth)

    def one(self, statement: Statement, depth: int) -> None:
        match statement:
            case AssertValues():
                self.settle()
                self.compare(statement)
            case AssertSource():
                self.compare_source(statement.source)
            case RunScript():
                if depth >= MOST_SCRIPTS:
                    raise Mismatch(f"at most {MOST_SCRIPTS} scripts may run each other")
                self.execute((self.folder / statement.path).read_text("utf-8"), depth + 1)
            case CreateSource() | CreateAs():
                given = tuple(pair for pair in statement.properties if pair[0] not in ("PARTITIONS", "REPLICAS"))
                topic = dict(given).get("KAFKA_TOPIC")
                if isinstance(statement, CreateSource) and topic is not None:
                    self.topics.create(str(topic), 1, 1, {})
                self.send(statement_text(replace(statement, properties=given)).rstrip(";"))
            case _:
                self.send(statement.text)

    def send(self, text: str) -> None:
        self.service.execute(Request(f"{text};", self.properties, self.variables))

    def settle(self) -> None:
        """Let all queries process what there is."""
        for _ in range(MAX_ROUNDS):
            if not self.service.work():
                return
        raise Mismatch(f"the queries are still busy after {MAX_ROUNDS} rounds")

    def next_record(self, source: Source) -> Raw:
        at = self.seen.get(source.topic, 0)
        records = self.topics.read(source.topic, {0: at})
        if not records:
            raise Mismatch(f"{source.name} has only {at} records")
        self.seen[source.topic] = at + 1
        return records[0]

    def compare(self, wanted: AssertValues) -> None:
        source = self.service.engine.catalogue.source(wanted.name)
        record = self.next_record(source)
        if wanted.tombstone and record.value is not None:
            raise Mismatch(f"the next record of {source.name} is {self.row(source, record)} and not a tombstone")
        names = wanted.columns or tuple(name for name, _ in (*source.schema.key, *source.stored_value))
        if len(names) != len(wanted.values):
            raise Mismatch(f"ASSERT names {len(names)} columns and {len(wanted.values)} values")
        types = dict((*source.schema.key, *source.schema.value))
        row = self.row(source, record)
        for name, expression in zip(names, wanted.values, strict=True):
            if name not in row:
                raise Mismatch(f"{source.name} has no column {name}")
            expected = constant(expression, types.get(name, BIGINT))
            if not _equal(expected, row[name]):
                raise Mismatch(f"{source.name}.{name} is {row[name]!r} instead of {expected!r}")

    def row(self, source: Source, record: Raw) -> dict[str, Any]:
        """Return the columns of a record, and when it is from."""
        place = {"topic": source.topic, "name": source.name, "registry": self.registry}
        key, found = record.key, {"ROWTIME": record.timestamp}
        if source.window is not None and key is not None:
            size = WINDOW_BYTES.get(source.window.kind, 8)
            start = int.from_bytes(key[-8:], "big")
            end = int.from_bytes(key[-16:-8], "big") if size == 16 else start + (source.window.size_ms or 0)
            found |= {"WINDOWSTART": start, "WINDOWEND": end}
            key = key[:-size]
        found |= _named(source.schema.key, formats.serde(source.key_format, source.schema.key, key=True, **place), key)
        values = formats.serde(source.value_format, source.stored_value, key=False, **place)
        return found | _named(source.stored_value, values, record.value)

    def compare_source(self, wanted: CreateSource) -> None:
        self.settle()
        catalogue = self.service.engine.catalogue
        known = catalogue.source(wanted.name)
        settings = Settings({**SETTINGS, **self.properties})
        given = replace(wanted, or_replace=True)
        expected = create_source(given, catalogue, settings, self.service.engine.infer)
        for what in ("kind", "schema", "topic", "key_format", "value_format", "timestamp", "window"):
            mine, other = getattr(known, what), getattr(expected, what)
            if _brief(mine) != _brief(other):
                title = what.replace("_", " ")
                raise Mismatch(f"{known.name} has the {title} {_brief(mine)} instead of {_brief(other)}")


def _brief(value: Any) -> Any:
    text = getattr(value, "text", None)
    return text() if callable(text) else getattr(value, "name", value)


def _named(columns: Sequence[tuple[str, Any]], serde: Any, data: bytes | None) -> dict[str, Any]:
    row = None if data is None else serde.loads(data)
    return dict(zip((name for name, _ in columns), row or [None] * len(columns), strict=True))


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, float) and isinstance(actual, float):
        return expected == actual or abs(expected - actual) <= 1e-6
    return expected == actual
