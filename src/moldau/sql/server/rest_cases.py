"""Files of cases in the form of ksqlDB's rest-query-validation-tests, run against a service in memory.

Statements are executed as requests; then the records of the case are written to their topics, then queries are asked. A
topic has four partitions unless the case or the statement says otherwise.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from moldau.operators.record import Produced
from moldau.operators.windowed_serdes import END_AND_START, START
from moldau.serdes.registry import Schema
from moldau.sql import formats
from moldau.sql.cases.comparing import same, shown
from moldau.sql.cases.files import NotCases, expanded
from moldau.sql.cases.running import Outcome
from moldau.sql.catalogue import Source
from moldau.sql.errors import ParseError
from moldau.sql.functions import cases as case_functions
from moldau.sql.local_registry import LocalRegistry
from moldau.sql.parser import parse
from moldau.sql.server.errors import ServerError
from moldau.sql.server.results import Results
from moldau.sql.server.service import Request, Service
from moldau.sql.server.topics import MemoryTopics, place_of_key
from moldau.sql.tree import CreateSource, QueryStatement, Table

PARTITIONS = 4
MAX_ROUNDS = 1_000  # of all queries of one case
SETTINGS = {"auto.offset.reset": "earliest", "ksql.query.push.v2.enabled": "true", "ksql.dialect": "strict"}
ERRORS = {"KsqlStatementErrorMessage": "statement_error", "KsqlErrorMessage": "generic_error"}


class Mismatch(Exception):
    """A case that does not do what it should: one sentence."""


@dataclass(frozen=True, slots=True)
class RestCase:
    file: str
    name: str
    node: dict[str, Any]


def read_rest_file(file: Path) -> list[RestCase]:
    """Return the cases of a file; none if its cases are of the other kind."""
    try:
        document = json.loads(file.read_text("utf-8"), parse_float=Decimal)
        nodes = document["tests"]
        if not any("responses" in node or "expectedError" in node for node in nodes):
            return []
        return [RestCase(file.stem, name, filled) for node in nodes for name, filled in expanded(node)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotCases(f"{file} is not a file of cases: {type(error).__name__}: {error}") from None


def check_rest(case: RestCase) -> Outcome:
    """Run a case and tell whether it passed."""
    case_functions.install()
    try:
        _Run(case.node).check()
    except Mismatch as error:
        return Outcome(case, False, str(error))
    except ServerError as error:
        return Outcome(case, False, f"refused: {error}")
    except Exception as error:  # a crash is a result, too: it is reported, and the next case runs
        return Outcome(case, False, f"crashed: {type(error).__name__}: {error}")
    return Outcome(case, True)


@dataclass(slots=True)
class _Run:
    node: dict[str, Any]
    registry: LocalRegistry = field(default_factory=LocalRegistry)
    topics: MemoryTopics = field(default_factory=lambda: MemoryTopics(PARTITIONS))
    service: Service = field(init=False)

    def __post_init__(self) -> None:
        properties = dict(self.node.get("properties", {}))
        self.service = Service(self.topics, self.registry, SETTINGS | properties)

    def check(self) -> None:
        self.make_topics()
        expected = self.node.get("expectedError")
        if expected is None:
            self.play()
            return
        try:
            self.play()
        except ServerError as error:
            self.compare_error(expected, error)
            return
        raise Mismatch(f"not refused; expected: {expected.get('message')}")

    def play(self) -> None:
        statements = list(self.node["statements"])
        responses = [each for each in self.node.get("responses", ()) if "queryProto" not in each]
        first = next((at for at, text in enumerate(statements) if _is_query(text)), len(statements))
        for at, text in enumerate(statements[:first]):
            self.make_topic_of(text)
            entities = self.service.execute(Request(text))
            self.settle()
            if at < len(responses) and "admin" in responses[at]:
                self.compare_admin(responses[at]["admin"], entities)
        early = self.node.get("inputConditions", {}).get("waitForActivePushQuery", False)
        if not early:
            self.write_inputs()
        for at, text in enumerate(statements[first:], first):
            results = self.service.query(Request(text))
            if early:
                self.write_inputs()
            rows = self.rows(results)
            if at < len(responses):
                self.compare_rows(responses[at].get("query", ()), rows, text, self.is_ordered(text))
        self.compare_outputs()

    def settle(self) -> None:
        for _ in range(MAX_ROUNDS):
            if not self.service.work():
                break
        else:
            raise Mismatch(f"the queries are still busy after {MAX_ROUNDS} rounds")
        for query in self.service.running.values():
            if query.error is not None:
                raise Mismatch(f"a query failed: {query.error}")

    def rows(self, results: Results) -> list[dict[str, Any]]:
        """Collect an answer in the form of /query."""
        found: list[dict[str, Any]] = [{"header": {"queryId": results.query_id, "schema": results.schema}}]
        for _ in range(MAX_ROUNDS):
            for row in results.poll():
                body: dict[str, Any] = {"columns": row.columns}
                found.append({"row": body | ({"tombstone": True} if row.tombstone else {})})
            if results.done:
                break
            self.settle()
        else:
            results.close()
            raise Mismatch(f"the query is not over; it has given {len(found) - 1} rows: {shown(found[1:4])}")
        if results.final is not None:
            found.append({"finalMessage": results.final})
        return found

    # Topics and records

    def make_topics(self) -> None:
        for topic in self.node.get("topics", ()):
            self.topics.create(topic["name"], topic.get("partitions", PARTITIONS), 1, {})
            for side in ("key", "value"):
                schema = topic.get(f"{side}Schema")
                if schema is None:
                    continue
                name = topic.get(f"{side}Format", "AVRO")
                text = schema if isinstance(schema, str) else json.dumps(schema, default=float)
                kind = "JSON" if name == "JSON_SR" else name
                registered = Schema(kind, text)
                self.registry.register(f"{topic['name']}-{side}", registered, False, id=topic.get(f"{side}SchemaId"))

    def make_topic_of(self, text: str) -> None:
        """Make the topic of a CREATE statement that does not say how many partitions it should have."""
        try:
            statement = parse(text)[0]
        except ParseError:
            return
        if isinstance(statement, CreateSource):
            given = dict(statement.properties)
            topic = given.get("KAFKA_TOPIC")
            if topic is not None and not self.topics.partitions(topic):
                self.topics.create(topic, int(given.get("PARTITIONS", PARTITIONS)), 1, {})

    def write_inputs(self) -> None:
        for record in self.node.get("inputs", ()):
            source = self.source_of(record["topic"])
            place = {"topic": source.topic, "name": source.topic, "registry": self.registry}
            key = formats.encode_case(source.key_format, source.schema.key, record.get("key"), key=True, **place)
            window = record.get("window")
            inner = key
            if window is not None and key is not None:
                session = str(window["type"]).lower() == "session"
                key += END_AND_START.pack(window["end"], window["start"]) if session else START.pack(window["start"])
            value = formats.encode_case(
                source.value_format, source.stored_value, record.get("value"), key=False, **place
            )
            headers = tuple((h["KEY"], _bytes(h.get("VALUE"))) for h in record.get("headers") or ())
            partition = None
            if inner is not None and window is not None:
                partition = place_of_key(inner, self.topics.partitions(source.topic))
            time = int(record.get("timestamp", 0))
            self.topics.append([Produced(source.topic, partition, key, value, time, headers)])
        self.settle()

    def source_of(self, topic: str) -> Source:
        for source in self.service.engine.catalogue.sources.values():
            if source.topic == topic:
                return source
        raise Mismatch(f"no statement names the topic {topic}")

    # Comparing

    def compare_admin(self, expected: dict[str, Any], entities: list[dict[str, Any]]) -> None:
        if not entities:
            return  # INSERT VALUES and SET answer with nothing
        for name, value in expected.items():
            if not same(value, entities[0].get(name)):
                raise Mismatch(f"the answer has {name} {shown(entities[0].get(name))} instead of {shown(value)}")

    def is_ordered(self, text: str) -> bool:
        """Tell whether rows have an order: those of a lookup in several partitions have none."""
        statement = parse(text)[0]
        assert isinstance(statement, QueryStatement)
        query = statement.query
        if query.emit is not None or not isinstance(query.source, Table):
            return True
        source = self.service.engine.catalogue.source(query.source.name)
        return source.kind == "STREAM" or self.topics.partitions(source.topic) == 1

    def compare_rows(self, expected: Any, rows: list[dict[str, Any]], text: str, ordered: bool) -> None:
        wanted = list(expected)
        if not ordered:
            wanted, rows = sorted(wanted, key=_sortable), sorted(rows, key=_sortable)
        for at, (one, other) in enumerate(zip(wanted, rows, strict=False)):
            if not _matches(one, other):
                raise Mismatch(f"{text}: row {at} is {shown(other)} instead of {shown(one)}")
        if len(wanted) != len(rows):
            raise Mismatch(f"{text}: {len(rows)} rows instead of {len(wanted)}: {shown(rows[1:])}")

    def compare_outputs(self) -> None:
        outputs = self.node.get("outputs", ())
        for topic in dict.fromkeys(record["topic"] for record in outputs):
            wanted = [record for record in outputs if record["topic"] == topic]
            raws = sorted(self.topics.read(topic, {}), key=lambda raw: raw.timestamp)
            source = self.source_of(topic)
            place = {"topic": topic, "name": source.name, "registry": self.registry}
            actual = []
            for raw in raws:
                key = formats.decode_case(source.key_format, source.schema.key, raw.key, key=True, **place)
                value = formats.decode_case(source.value_format, source.stored_value, raw.value, key=False, **place)
                actual.append({"key": key, "value": value, "timestamp": raw.timestamp})
            for one, other in zip(wanted, actual, strict=False):
                for part in ("key", "value", "timestamp"):
                    if part in one and not same(one[part], other[part]):
                        raise Mismatch(f"{topic}: {part} {shown(other[part])} instead of {shown(one[part])}")
            if len(wanted) != len(actual):
                raise Mismatch(f"{topic} has {len(actual)} records instead of {len(wanted)}")

    def compare_error(self, expected: dict[str, Any], error: ServerError) -> None:
        if str(expected.get("message", "")) not in error.message:
            raise Mismatch(f"refused with: {error.message}; expected: {expected.get('message')}")
        kind = ERRORS.get(str(expected.get("type", "")).rpartition(".")[2])
        if kind is not None and error.body()["@type"] != kind:
            raise Mismatch(f"the error is a {error.body()['@type']} instead of a {kind}: {error.message}")
        if "status" in expected and expected["status"] != error.status:
            raise Mismatch(f"the status is {error.status} instead of {expected['status']}")


def _matches(expected: dict[str, Any], actual: dict[str, Any]) -> bool:
    """Compare a part of an answer; `name|starts_with` compares the beginning of a text."""
    if "header" in expected and "header" in actual:
        for name, value in expected["header"].items():
            name, _, how = name.partition("|")
            found = actual["header"].get(name)
            if not (str(found).startswith(value) if how == "starts_with" else found == value):
                return False
        return True
    return same(expected, actual)


def _sortable(part: dict[str, Any]) -> str:
    return shown(part.get("row", ""))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _is_query(text: str) -> bool:
    try:
        return isinstance(parse(text)[0], QueryStatement)
    except ParseError:
        return text.lstrip().upper().startswith("SELECT")
