"""The printer of records of the console consumers, with the properties of Kafka's DefaultMessageFormatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.cli.kafka.deserializers import Deserializer, deserializer
from moldau.cli.kafka.java_text import log

NAME = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
TIMESTAMP_TYPES = {1: b"CreateTime", 2: b"LogAppendTime"}
SEPARATORS = {"key.separator": b"\t", "line.separator": b"\n", "headers.separator": b",", "null.literal": b"null"}
PRINTED = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")


class Shown(NamedTuple):
    """A record to print."""

    timestamp_type: int
    timestamp: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    epoch: int | None = None
    delivery: int | None = None


@dataclass(frozen=True, slots=True)
class Formatter:
    """The parts of a record that are printed, and the separators."""

    printed: frozenset[str] = frozenset({"value"})
    separators: Mapping[str, bytes] = field(default_factory=lambda: SEPARATORS)
    deserializers: Mapping[str, Deserializer] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Return whether values are printed as they are, one a line."""
        return self.printed == {"value"} and not self.deserializers

    def line(self, record: Shown) -> bytes:
        """Return the line of a record, with its end."""
        parts = [PARTS[name](self, record) for name in PRINTED if name in self.printed]
        return self.separators["key.separator"].join(parts) + (self.separators["line.separator"] if parts else b"")

    def text(self, what: str, data: bytes | None) -> bytes:
        """Decode bytes by the deserializer, if there is one; null becomes a word."""
        given = self.separators["null.literal"] if data is None else data
        decode = self.deserializers.get(what)
        return decode(given) if decode else given


def _timestamp(form: Formatter, record: Shown) -> bytes:
    kind = TIMESTAMP_TYPES.get(record.timestamp_type)
    return b"%b:%d" % (kind, record.timestamp) if kind else b"NO_TIMESTAMP"


def _headers(form: Formatter, record: Shown) -> bytes:
    texts = [name.encode() + b":" + form.text("headers", value) for name, value in record.headers]
    return form.separators["headers.separator"].join(texts) or b"NO_HEADERS"


def _number(label: bytes, value: int | None) -> bytes:
    return label + (b"NOT_PRESENT" if value is None else b"%d" % value)


PARTS = {
    "timestamp": _timestamp,
    "partition": lambda form, record: _number(b"Partition:", record.partition),
    "offset": lambda form, record: _number(b"Offset:", record.offset),
    "delivery": lambda form, record: _number(b"Delivery:", record.delivery),
    "epoch": lambda form, record: _number(b"Epoch:", record.epoch),
    "headers": _headers,
    "key": lambda form, record: form.text("key", record.key),
    "value": lambda form, record: form.text("value", record.value),
}


def formatter(properties: Mapping[str, str]) -> Formatter:
    """Make the formatter that properties describe."""
    printed = {name for name in PRINTED if _is_true(properties.get(f"print.{name}", str(name == "value")))}
    separators = {name: properties[name].encode() if name in properties else SEPARATORS[name] for name in SEPARATORS}
    found = {}
    for what in ("key", "value", "headers"):
        if name := properties.get(f"{what}.deserializer"):
            decode = deserializer(name)
            if decode is None:
                log("ERROR", f"Unable to instantiate a deserializer from {name}", NAME)
            else:
                found[what] = decode
    return Formatter(frozenset(printed), separators, found)


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
