"""Transforms that decide where a record goes: RegexRouter, TimestampRouter and Filter."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key
from moldau.connect.data import Record
from moldau.connect.errors import ArgumentError, ConfigError, DataError, invalid
from moldau.connect.java.dates import PatternError, SimpleDateFormat
from moldau.connect.transforms.kinds import Settings, Side, Transform, TransformClass
from moldau.connect.transforms.straight import Shape, Writer, ruled
from moldau.java.regex import RegexError, compile_regex, replace_first

TOPICS_CACHED = 64


def check_regex(name: str, value: Any) -> None:
    if value is None:
        raise invalid(name, "null", "Invalid regex: null")
    try:
        compile_regex(value)
    except RegexError as error:
        raise invalid(name, value, f"Invalid regex: {error}") from None


def make_regex_router(settings: Settings, _side: Side) -> Transform:
    regex, replacement = compile_regex(settings["regex"]), settings["replacement"]

    @lru_cache(TOPICS_CACHED)
    def route(topic: str) -> str:
        if not regex.fullmatch(topic):
            return topic
        try:
            return replace_first(regex, topic, replacement)
        except RegexError as error:
            raise ArgumentError(str(error)) from None

    def apply(record: Record) -> Record:
        return record.but(topic=route(record.topic))

    def rule(shape: Shape, writer: Writer) -> Shape:
        return shape.but(topic=f"{writer.bind(route)}({shape.topic})")

    return ruled(apply, rule)


def make_timestamp_router(settings: Settings, _side: Side) -> Transform:
    try:
        moments = SimpleDateFormat(settings["timestamp.format"])
    except PatternError as error:
        raise ConfigError(f"timestamp.format is not a pattern of SimpleDateFormat: {error}") from None

    def apply(record: Record) -> Record:
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record: {record}")
        return record.but(topic=route(record.topic, record.timestamp))

    def route(topic: str, timestamp: int) -> str:
        named = settings["topic.format"].replace("${topic}", topic)
        return named.replace("${timestamp}", moments.format(timestamp))

    def rule(shape: Shape, writer: Writer) -> Shape:
        writer.unless("record.timestamp is not None")
        return shape.but(topic=f"{writer.bind(route)}({shape.topic}, record.timestamp)")

    return ruled(apply, rule)


def make_filter(_settings: Settings, _side: Side) -> Transform:
    return lambda _record: None


REGEX_ROUTER = TransformClass(
    "RegexRouter",
    "Renames the topic by a regular expression of Java, if it matches the whole name.",
    ConfigDef(
        [
            Key("regex", importance=Importance.HIGH, validator=check_regex, doc="The regular expression."),
            Key("replacement", importance=Importance.HIGH, doc="The new name, with $1 for the first group, and so on."),
        ]
    ),
    make_regex_router,
    sides=False,
)
TIMESTAMP_ROUTER = TransformClass(
    "TimestampRouter",
    "Makes the topic from the original topic and the record's timestamp.",
    ConfigDef(
        [
            Key(
                "topic.format",
                default="${topic}-${timestamp}",
                importance=Importance.HIGH,
                doc="The new name, with ${topic} and ${timestamp} for those of the record.",
            ),
            Key(
                "timestamp.format",
                default="yyyyMMdd",
                importance=Importance.HIGH,
                doc="A pattern of Java's SimpleDateFormat, in UTC.",
            ),
        ]
    ),
    make_timestamp_router,
    sides=False,
)
FILTER = TransformClass("Filter", "Drops every record; use it with a predicate.", ConfigDef(), make_filter, sides=False)
