"""PRINT: the records of a topic as lines of text, with the formats that their bytes may have.

Which format a topic has is not known, so every format that can read all keys (or values) so far is named, and the
first of them shows the bytes. Formats are tried in the order of CANDIDATES.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from moldau.operators.record import Raw
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.formats import serde
from moldau.serdes.framing import unframe
from moldau.sql.errors import ParseError
from moldau.sql.parser import parse
from moldau.sql.server.access import uses_of
from moldau.sql.server.errors import BAD_STATEMENT, ServerError
from moldau.sql.server.topics import Positions, Topics
from moldau.sql.tree import PrintTopic

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service

Field: TypeAlias = Literal["key", "value"]
NOTHING_YET = "¯\\_(ツ)_/¯ - no data processed"
NULL = "<null>"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REGISTERED = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}
_PRINTS = re.compile(r"\s*PRINT\b", re.IGNORECASE)
UNREADABLE = (ValueError, struct.error, SerdeError)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A format: `read` returns the text of some bytes, or raises one of UNREADABLE."""

    name: str
    read: Callable[[bytes], str]


@dataclass(slots=True)
class Guess:
    """The formats that all bytes so far may have."""

    left: list[Candidate]
    seen: bool = False

    def text(self, data: bytes | None) -> str:
        if data is None:
            return NULL
        self.seen = True
        texts = [(candidate, text) for candidate in self.left if (text := _attempt(candidate, data)) is not None]
        self.left = [candidate for candidate, _ in texts]
        return texts[0][1] if texts else _bytes_text(data)

    @property
    def names(self) -> str:
        if not self.seen:
            return NOTHING_YET
        return " or ".join(candidate.name for candidate in self.left) or "UNRECOGNIZED_BYTES"


def _attempt(candidate: Candidate, data: bytes) -> str | None:
    try:
        return candidate.read(data)
    except UNREADABLE:
        return None


def _bytes_text(data: bytes) -> str:
    return "".join(f"\\x{byte:02X}" for byte in data)


def _registered(registry: Any, kind: str, field_: Field) -> Callable[[bytes], str]:
    """Read bytes with the schema that they name, if it is of this kind."""

    def read(data: bytes) -> str:
        context = Context("", field_)
        schema = registry.schema(unframe(data, context)[0])
        if schema.type != kind:
            raise SerdeError(f"the schema is {schema.type}")
        value = serde(REGISTERED[kind], registry).from_bytes(data, context)
        if kind == "PROTOBUF":
            from google.protobuf.json_format import MessageToDict

            value = MessageToDict(value, preserving_proto_field_name=True)
        return json.dumps(value, ensure_ascii=False, default=str)

    return read


def _json(data: bytes) -> str:
    text = data.decode()
    if not isinstance(json.loads(text), dict | list):
        raise ValueError("a plain value is taken for another format")
    return text


def _number(layout: str) -> Callable[[bytes], str]:
    return lambda data: str(struct.unpack(layout, data)[0])


def _windowed(times: int) -> Callable[[bytes], str]:
    """Read a string with a window's start after it; a session has its end before that."""

    def read(data: bytes) -> str:
        text, tail = data[: -8 * times].decode(), data[-8 * times :]
        if len(tail) < 8 * times or not text:
            raise ValueError("it is too short")
        numbers = struct.unpack(f">{times}q", tail)
        if any(not 0 < number < 1 << 45 for number in numbers):  # a time until about the year 3000
            raise ValueError("it has no time")
        return f"[{text}@{numbers[-1]}/{numbers[0] if times == 2 else '-'}]"

    return read


def candidates(registry: Any, field_: Field) -> list[Candidate]:
    """Return all formats, in the order in which they are tried."""
    found = []
    if registry is not None:
        names = (("AVRO", "AVRO"), ("PROTOBUF", "PROTOBUF"), ("JSON_SR", "JSON"))
        found = [Candidate(name, _registered(registry, kind, field_)) for name, kind in names]
    return [
        *found,
        Candidate("JSON", _json),
        Candidate("KAFKA_INT", _number(">i")),
        Candidate("KAFKA_BIGINT", _number(">q")),
        Candidate("KAFKA_DOUBLE", _number(">d")),
        Candidate("SESSION(KAFKA_STRING)", _windowed(2)),
        Candidate("HOPPING(KAFKA_STRING)", _windowed(1)),
        Candidate("TUMBLING(KAFKA_STRING)", _windowed(1)),
        Candidate("KAFKA_STRING", bytes.decode),
    ]


def prints(request: Request) -> bool:
    """Whether a request begins with PRINT."""
    return _PRINTS.match(request.text) is not None


def requested(service: Service, request: Request) -> Printing | None:
    """Begin the PRINT of a request; None if it is another statement."""
    if not prints(request):
        return None
    try:
        found = parse(request.text, request.variables)
    except ParseError as error:
        raise ServerError(BAD_STATEMENT, str(error), request.text) from None
    if len(found) != 1 or not isinstance(found[0], PrintTopic):
        raise ServerError(BAD_STATEMENT, "Expected exactly one KSQL statement: PRINT.", request.text)
    request.access(uses_of(found[0], service.engine.catalogue))
    topic = found[0].topic
    if service.topics.partitions(topic) == 0:
        raise ServerError(
            BAD_STATEMENT,
            f"Could not find topic '{topic}', or the KSQL user does not have permissions to list the topic. "
            "Topic names are case-sensitive.",
            request.text,
        )
    return Printing.of(found[0], service.topics, service.registry)


@dataclass(slots=True)
class Printing:
    """A PRINT that runs. `poll` returns the lines that are there now, `done` says that there will be no more."""

    statement: PrintTopic
    topics: Topics
    keys: Guess
    values: Guess
    positions: Positions
    said: dict[str, str] = field(default_factory=dict)
    count: int = 0
    printed: int = 0
    done: bool = False

    @classmethod
    def of(cls, statement: PrintTopic, topics: Topics, registry: Any) -> Printing:
        where = topics.starts if statement.from_beginning else topics.ends
        keys, values = Guess(candidates(registry, "key")), Guess(candidates(registry, "value"))
        return cls(statement, topics, keys, values, where(statement.topic))

    def poll(self) -> list[str]:
        found = [line for raw in self._read() for line in self._lines(raw)]
        self.done = self.statement.limit is not None and self.printed >= self.statement.limit
        return found

    def _read(self) -> Iterator[Raw]:
        """Yield the records to print: each one, or each n-th."""
        for raw in sorted(self.topics.read(self.statement.topic, self.positions), key=lambda raw: raw.timestamp):
            if self.statement.limit is not None and self.printed >= self.statement.limit:
                return
            self.positions[raw.partition] = max(self.positions.get(raw.partition, 0), raw.offset + 1)
            if self.count % (self.statement.interval or 1) == 0:
                self.printed += 1
                yield raw
            self.count += 1

    def _lines(self, raw: Raw) -> Iterator[str]:
        key, value = self.keys.text(raw.key), self.values.text(raw.value)
        for part, names in (("Key", self.keys.names), ("Value", self.values.names)):
            if self.said.get(part) != names:
                self.said[part] = names
                yield f"{part} format: {names}"
        time = (EPOCH + timedelta(milliseconds=raw.timestamp)).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        yield f"rowtime: {time} Z, key: {key}, value: {value}, partition: {raw.partition}"
