"""Running a case: an engine of its own, a driver for each query, records in, records out.

A record goes to every query that reads its topic; what a query writes goes on to the queries that read that.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from moldau.operators.errors import StreamsError
from moldau.operators.record import Headers, Produced
from moldau.operators.windowed import Windowed
from moldau.operators.windowed_serdes import END_AND_START, START
from moldau.serdes.registry import Schema as RegisteredSchema
from moldau.serdes.schemas.parsed import Reference
from moldau.sql import formats
from moldau.sql.cases.comparing import same_row, shown
from moldau.sql.cases.files import Case
from moldau.sql.catalogue import Columns, Format, Source, Topic
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.extensions import DIALECT, STRICT
from moldau.sql.functions import cases as case_functions
from moldau.sql.inference import inferring
from moldau.sql.local_registry import LocalRegistry
from moldau.sql.lowering import build
from moldau.sql.parser import parse
from moldau.sql.steps import QueryPlan
from moldau.sql.tree import CreateSource
from moldau.streams.driver import TopologyTestDriver

SERVICE_ID = "some.ksql.service.id"
MAX_RECORDS = 100_000  # that one case may produce


class Mismatch(Exception):
    """A case that does not do what it should: one sentence."""


class Titled(Protocol):
    """A case of any kind: where it is from, and its name."""

    @property
    def file(self) -> str: ...

    @property
    def name(self) -> str: ...


@dataclass(slots=True)
class Outcome:
    case: Titled
    passed: bool
    reason: str = ""


def check(case: Case) -> Outcome:
    """Run a case and tell whether it passed."""
    case_functions.install()
    try:
        _Run(case).check()
    except Mismatch as error:
        return Outcome(case, False, str(error))
    except SqlError as error:
        return Outcome(case, False, f"refused: {error}")
    except Exception as error:  # a crash is a result, too: it is reported, and the next case runs
        return Outcome(case, False, f"crashed: {type(error).__name__}: {error}")
    finally:
        case_functions.uninstall()
    return Outcome(case, True)


def queries_of(case: Case) -> tuple[list[QueryPlan], LocalRegistry]:
    """Execute the statements of a case, and return its queries and the registry that they use."""
    run = _Run(case)
    run.execute()
    return list(run.engine.queries.values()), run.registry


def records_of(case: Case) -> list[Produced]:
    """Return the input of a case as records."""
    run = _Run(case)
    run.execute()
    return [run.encoded(record, run.source_of(record["topic"])) for record in case.inputs]


@dataclass(slots=True)
class _Run:
    case: Case
    registry: LocalRegistry = field(default_factory=LocalRegistry)
    engine: Engine = field(default_factory=Engine)
    drivers: list[TopologyTestDriver] = field(default_factory=list)
    written: dict[str, list[Produced]] = field(default_factory=dict)

    def check(self) -> None:
        expected = self.case.expected
        if expected is None:
            self.execute()
            self.feed()
            self.compare()
            self.check_sources()
            return
        try:
            self.execute()
            self.feed()
        except Exception as error:
            self.compare_refusal(expected, error)
            return
        raise Mismatch(f"not refused; expected: {expected.get('message')}")

    def compare_refusal(self, expected: dict[str, Any], error: Exception) -> None:
        wanted = str(expected.get("message", ""))
        if isinstance(error, StreamsError) and str(expected.get("type", "")).endswith(".StreamsException"):
            wanted = str(expected.get("causeMessage", ""))  # what is around the cause is Kafka's wording
        if wanted not in str(error):
            raise Mismatch(f"refused with: {error}; expected: {wanted}")

    def execute(self) -> None:
        """Execute the statements, and make a driver for each query."""
        self.engine.settings.update({DIALECT: STRICT, **self.case.properties})
        self.engine.infer = inferring(self.registry)
        has_id = [any(f"{side}SchemaId" in topic for side in ("key", "value")) for topic in self.case.topics]
        for topic, given in zip(self.case.topics, has_id, strict=True):
            if given:
                self.register(topic)
        self.register_declared()
        for topic, given in zip(self.case.topics, has_id, strict=True):
            if not given:
                self.register(topic)
        for plan in self.engine.execute_text(self.case.text):
            builder = build(plan, self.registry, service_id=SERVICE_ID)
            self.drivers.append(TopologyTestDriver(builder))

    def register_declared(self) -> None:
        """Register the schemas of declared values where statements name schemas by number: these come first."""
        if "SCHEMA_ID" not in self.case.text.upper():
            return
        for statement in parse(self.case.text):
            if not isinstance(statement, CreateSource):
                continue
            given = {name: str(value) for name, value in statement.properties}
            format_ = given.get("VALUE_FORMAT", given.get("FORMAT", "")).upper()
            columns = [(each.name, each.type) for each in statement.columns if each.role == "VALUE"]
            if columns and format_ in ("AVRO", "JSON_SR", "PROTOBUF"):
                topic = given.get("KAFKA_TOPIC", statement.name)
                place = {"topic": topic, "name": statement.name, "registry": self.registry, "key": False}
                formats.register(Format(format_), columns, **place)

    def register(self, topic: dict[str, Any]) -> None:
        """Make a topic of the case with its schemas."""
        name = topic["name"]
        if "partitions" in topic:
            self.engine.catalogue.topics[name] = Topic(topic["partitions"], topic.get("replicas", 1))
        for side in ("key", "value"):
            schema = topic.get(f"{side}Schema")
            if schema is None:
                continue
            format_ = topic.get(f"{side}Format", "AVRO")
            kind = "JSON" if format_ == "JSON_SR" else format_
            text = schema if isinstance(schema, str) and kind == "PROTOBUF" else json.dumps(schema, default=float)
            registered = RegisteredSchema(kind, text, *self.references(topic.get(f"{side}SchemaReferences", ())))
            self.registry.register(f"{name}-{side}", registered, False, id=topic.get(f"{side}SchemaId"))

    def references(self, given: Any) -> Any:
        found = []
        for reference in given:
            text = reference["schema"]
            text = text if isinstance(text, str) else json.dumps(text)
            schema = RegisteredSchema(reference.get("format", "PROTOBUF"), text)
            self.registry.register(reference["name"], schema, False)
            found.append((Reference(reference["name"], reference["name"], 1), (reference["name"], text)))
        return tuple(each for each, _ in found), tuple(text for _, text in found)

    def feed(self) -> None:
        for record in self.case.inputs:
            source = self.source_of(record["topic"])
            self.pipe(self.encoded(record, source))

    def pipe(self, first: Produced) -> None:
        """Feed a record to all queries that read its topic, and then what they write, in order."""
        waiting = deque([first])
        for _ in range(MAX_RECORDS):
            if not waiting:
                return
            record = waiting.popleft()
            for driver in self.drivers:
                if record.topic not in driver.task.readers:
                    continue
                driver.pipe(record.topic, record.key, record.value, record.timestamp, record.headers)
                waiting.extend(self.collected(driver))
        raise Mismatch(f"more than {MAX_RECORDS} records")

    def collected(self, driver: TopologyTestDriver) -> Iterator[Produced]:
        sinks = {source.topic for source in self.engine.catalogue.sources.values()}
        for topic, records in driver.outputs.items():
            self.written.setdefault(topic, []).extend(records)
            if topic in sinks:
                yield from records
            records.clear()

    def source_of(self, topic: str) -> Source:
        """Return the source of a topic; statements may have dropped or replaced it."""
        known = [source for source in self.engine.catalogue.sources.values() if source.topic == topic]
        if not known:
            known = [source for source in self.declared() if source.topic == topic]
        if not known:
            raise Mismatch(f"no statement names the topic {topic}")
        return known[0]

    def declared(self) -> Iterator[Source]:
        """Yield the sources that statements created, also those that were dropped later."""
        engine = Engine(infer=inferring(self.registry))
        for statement in parse(self.case.text):
            if isinstance(statement, CreateSource):
                engine.execute(replace(statement, name=f"S{len(engine.catalogue.sources)}"))
        yield from engine.catalogue.sources.values()

    def encoded(self, record: dict[str, Any], source: Source) -> Produced:
        key_columns, value_columns = source.schema.key, source.stored_value
        key = self.encode(source.key_format, key_columns, record.get("key"), source.topic, True)
        if (window := record.get("window")) is not None and key is not None:
            key += _suffix(window)
        value = self.encode(source.value_format, value_columns, record.get("value"), source.topic, False)
        headers = tuple((h["KEY"], _bytes(h.get("VALUE"))) for h in record.get("headers") or ())
        return Produced(source.topic, None, key, value, int(record.get("timestamp", 0)), headers)

    def encode(self, format_: Format, columns: Columns, node: Any, topic: str, key: bool) -> bytes | None:
        return formats.encode_case(format_, columns, node, key=key, topic=topic, name=topic, registry=self.registry)

    def compare(self) -> None:
        """Compare the records of each topic that the case names."""
        topics = list(dict.fromkeys(record["topic"] for record in self.case.outputs))
        for topic in topics:
            wanted = [record for record in self.case.outputs if record["topic"] == topic]
            actual = self.written.get(topic, [])
            source = self.source_of(topic)
            decoded = [self.decoded(record, source) for record in actual]
            for at, (expected, got) in enumerate(zip(wanted, decoded, strict=False)):
                self.compare_record(source, at, expected, got)
            if len(wanted) != len(decoded):
                more = shown(decoded[len(wanted) :][:2] or wanted[len(decoded) :][:2])
                raise Mismatch(f"{topic} has {len(decoded)} records instead of {len(wanted)}: {more}")

    def decoded(self, record: Produced, source: Source) -> dict[str, Any]:
        key, window = record.key, None
        if source.window is not None and key is not None:
            key, window = _split(key, source)
        place = {"topic": source.topic, "name": source.name, "registry": self.registry}
        return {
            "key": formats.decode_case(source.key_format, source.schema.key, key, **place, key=True),
            "value": formats.decode_case(source.value_format, source.stored_value, record.value, **place, key=False),
            "timestamp": record.timestamp,
            "window": window,
            "headers": record.headers,
        }

    def compare_record(self, source: Source, at: int, expected: dict[str, Any], got: dict[str, Any]) -> None:
        where = f"record {at} of {source.topic}"
        for part, columns in (("key", source.schema.key), ("value", source.stored_value)):
            if not same_row(expected.get(part), got[part], columns):
                raise Mismatch(f"{where}: {part} {shown(got[part])} instead of {shown(expected.get(part))}")
        if "timestamp" in expected and expected["timestamp"] != got["timestamp"]:
            raise Mismatch(f"{where}: timestamp {got['timestamp']} instead of {expected['timestamp']}")
        window = expected.get("window")
        if window is not None:
            found = got["window"]
            ends = window["end"] if str(window["type"]).lower() == "session" else found and found.end
            if found is None or (found.start, found.end) != (window["start"], ends):
                raise Mismatch(f"{where}: window {found} instead of {shown(window)}")
        if expected.get("headers") is not None:
            wanted: Headers = tuple((h["KEY"], _bytes(h.get("VALUE"))) for h in expected["headers"])
            if wanted != tuple(got["headers"]):
                raise Mismatch(f"{where}: headers {got['headers']} instead of {wanted}")

    def check_sources(self) -> None:
        """Compare the sources that the case describes."""
        for wanted in self.case.post.get("sources", ()):
            source = self.engine.catalogue.sources.get(wanted["name"])
            if source is None:
                raise Mismatch(f"there is no source {wanted['name']}")
            if source.kind.lower() != str(wanted["type"]).lower():
                raise Mismatch(f"{source.name} is a {source.kind}")
            if "schema" in wanted:
                self.check_schema(source, wanted["schema"])
            for side, format_ in (("keyFormat", source.key_format), ("valueFormat", source.value_format)):
                if side in wanted:
                    _check_format(source, side, wanted[side], format_)
            if "isSource" in wanted and wanted["isSource"] != source.read_only:
                raise Mismatch(f"{source.name}: isSource is {source.read_only}")
        self.check_topics()

    def check_schema(self, source: Source, text: str) -> None:
        kind = "TABLE" if "PRIMARY KEY" in text.upper() else "STREAM"
        statement = parse(f"CREATE {kind} X ({text}) WITH (KAFKA_TOPIC='x');")[0]
        assert isinstance(statement, CreateSource)
        resolve = self.engine.catalogue.resolve
        wanted = [(c.name, resolve(c.type), c.role != "VALUE") for c in statement.columns]
        actual = [(n, t, True) for n, t in source.schema.key] + [(n, t, False) for n, t in source.schema.value]
        if sorted(wanted, key=str) != sorted(actual, key=str):
            raise Mismatch(f"{source.name} has the schema {source.schema.text()} instead of {text}")

    def check_topics(self) -> None:
        pattern = self.case.post.get("topics", {}).get("blacklist")
        if pattern is None:
            return
        for driver in self.drivers:
            for topic in driver.produced_topic_names:
                if re.fullmatch(pattern, topic):
                    raise Mismatch(f"the topic {topic} was written, which must not be there")


def _check_format(source: Source, side: str, wanted: Any, actual: Format) -> None:
    name = wanted if isinstance(wanted, str) else wanted["format"]
    if name != actual.name:
        raise Mismatch(f"{source.name}: {side} is {actual.name} instead of {name}")
    if isinstance(wanted, dict) and "features" in wanted and set(wanted["features"]) != set(actual.features):
        raise Mismatch(f"{source.name}: features of {side} are {sorted(actual.features)}")


def _bytes(text: str | None) -> bytes | None:
    import base64

    return None if text is None else base64.b64decode(text)


def _suffix(window: dict[str, Any]) -> bytes:
    if str(window["type"]).lower() == "session":
        return END_AND_START.pack(window["end"], window["start"])
    return START.pack(window["start"])


def _split(key: bytes, source: Source) -> tuple[bytes, Windowed]:
    assert source.window is not None
    if source.window.kind == "SESSION":
        end, start = END_AND_START.unpack(key[-16:])
        return key[:-16], Windowed(None, start, end)
    (start,) = START.unpack(key[-8:])
    return key[:-8], Windowed(None, start, start + (source.window.size_ms or 0))
