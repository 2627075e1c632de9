"""What stands between a connector and a topic: converters, transforms and predicates, as a connector's settings say.

Each step of a record that fails goes to the task's handler, which tries it again, leaves the record out (`Tolerated`)
or fails the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message

from moldau.connect.chain import make_links, make_straight
from moldau.connect.converters import converter_class, make_converter, settings_of
from moldau.connect.converters.kinds import Converter
from moldau.connect.data import Header, Record, SchemaAndValue, TimestampType
from moldau.connect.errors import ConfigError
from moldau.connect.handling import HEADER, KEY, TRANSFORM, VALUE, Handler

T = TypeVar("T")
Converted = tuple[SchemaAndValue, SchemaAndValue, tuple[Header, ...]]  # key, value and headers
Headers = Sequence[tuple[str, bytes | None]]
# A record as it is produced: topic, partition, key, value, headers and timestamp.
Outgoing = tuple[str, int | None, bytes | None, bytes | None, Headers, int | None]
Read = Callable[[str, bytes | None], SchemaAndValue]
Write = Callable[[str, Any, Any], bytes | None]
TIMES = {
    TIMESTAMP_CREATE_TIME: TimestampType.CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME: TimestampType.LOG_APPEND_TIME,
}


@dataclass(frozen=True, slots=True)
class Step:
    """A converter or transform, and the class that errors name."""

    class_name: str
    run: Any


class Pipeline:
    """The converters and transforms of one task."""

    def __init__(
        self,
        key: Step,
        value: Step,
        header: Step,
        chain: Sequence[Step],
        handler: Handler,
        straight: Callable[[Record], Record | None] | None = None,
    ) -> None:
        self._converters = (KEY, key), (VALUE, value), (HEADER, header)
        self._reads = [step.run.read for _, step in self._converters]
        self._writes = [step.run.write for _, step in self._converters]
        self._chain, self._handler = chain, handler
        self._straight = straight  # the whole chain, for the records that it serves

    @staticmethod
    def of(worker: Mapping[str, str], config: Mapping[str, str], handler: Handler) -> Pipeline:
        key, value, header = (_converter(worker, config, role) for role in ("key", "value", "header"))
        links = make_links(config)
        chain = [Step(link.class_name, link.run) for link in links]  # one by one: an error names the one that failed
        return Pipeline(key, value, header, chain, handler, make_straight(links))

    def outgoing(self, record: Record) -> list[Outgoing]:
        """Transform and convert a record of a source."""
        if not self._chain:
            return [self._produced(record)]
        return [self._produced(one) for one in self._transformed(record, None)]

    def _produced(self, record: Record) -> Outgoing:
        try:
            return _written(record, *self._writes)
        except Exception:  # the handler decides at each step
            return _written(record, *(partial(self._run, stage, step, _write) for stage, step in self._converters))

    def incoming(self, message: Message) -> list[Record]:
        """Convert and transform a record of a topic."""
        topic: Any = message.topic()
        key, value, headers = self._converted(topic, message)
        partition, offset = message.partition(), message.offset()
        kind, timestamp = message.timestamp()
        kind = TIMES.get(kind, TimestampType.NO_TIMESTAMP_TYPE)
        record = Record(
            topic,
            partition,
            key.schema,
            key.value,
            value.schema,
            value.value,
            None if kind is TimestampType.NO_TIMESTAMP_TYPE else timestamp,
            headers,
            None,
            None,
            offset,
            kind,
            topic,
            partition,
            offset,
        )
        return self._transformed(record, message) if self._chain else [record]

    def _converted(self, topic: str, message: Message) -> Converted:
        try:
            return _read_all(topic, message, *self._reads)
        except Exception:  # the handler decides at each step
            run = partial(self._run, raw=message)
            return _read_all(topic, message, *(partial(run, stage, step, _read) for stage, step in self._converters))

    def _transformed(self, record: Record, raw: Any) -> list[Record]:
        if self._straight is not None and (made := self._straight(record)) is not None:
            return [made]
        records = [record]
        for step in self._chain:
            if len(records) == 1:  # as nearly always
                records = self._run(TRANSFORM, step, _apply, records[0], raw=raw)
            else:
                records = [made for one in records for made in self._run(TRANSFORM, step, _apply, one, raw=raw)]
        return records

    def _run(self, stage: str, step: Step, function: Callable[..., T], *given: Any, raw: Any = None) -> T:
        """Run a step; one that fails is run again by the handler, which decides what becomes of it."""
        try:
            return function(step.run, *given)
        except Exception:
            return self._handler.run(stage, step.class_name, lambda: function(step.run, *given), raw)


def _written(record: Record, write_key: Write, write_value: Write, write_header: Write) -> Outgoing:
    topic, found = record.topic, record.headers
    headers = [(one.name, write_header(topic, one.schema, one.value)) for one in found] if found else ()
    key = write_key(topic, record.key_schema, record.key)
    value = write_value(topic, record.value_schema, record.value)
    return topic, record.partition, key, value, headers, record.timestamp


def _read_all(topic: str, message: Any, read_key: Read, read_value: Read, read_header: Read) -> Converted:
    key, value = read_key(topic, message.key()), read_value(topic, message.value())
    given = message.headers()
    return key, value, tuple([_header(name, read_header(topic, data)) for name, data in given]) if given else ()


def _header(name: str, found: SchemaAndValue) -> Header:
    return Header(name, found.schema, found.value)


def _write(converter: Converter, *given: Any) -> bytes | None:
    return converter.write(*given)


def _read(converter: Converter, *given: Any) -> Any:
    return converter.read(*given)


def _apply(transform: Callable[[Record], list[Record]], record: Record) -> list[Record]:
    return transform(record)


def _converter(worker: Mapping[str, str], config: Mapping[str, str], role: str) -> Step:
    """Make the converter of a connector, or that of its worker with the worker's settings."""
    name = f"{role}.converter"
    given = config if config.get(name) else worker
    text = given.get(name, "")
    row = converter_class(text)
    if row is None:
        raise ConfigError(f"Invalid value {text} for configuration {name}: Class {text} could not be found.")
    return Step(row.class_name, make_converter(text, role, settings_of(given, f"{name}.")))
