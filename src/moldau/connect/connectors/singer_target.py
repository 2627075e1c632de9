"""Singer sink: any target as a child process.

A target is free to keep what it read until its input ends. So a run lasts from one commit of offsets to the next: the
task closes the target's input, waits until it has ended well, and only then the offsets are committed. Each record is
written at least once; a target that knows keys (`key_properties`) replaces what comes twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors import file_formats
from moldau.connect.connectors.singer_child import Child
from moldau.connect.connectors.singer_messages import describe, row
from moldau.connect.connectors.singer_source import object_of, words_of, written
from moldau.connect.data import Record, Schema, Struct
from moldau.connect.errors import ConnectError, DataError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape, plain


class SingerSink:
    """Records of topics into a target; a topic is a stream."""

    kind = SINK
    task_class = "moldau.connect.SingerSinkTask"
    exactly_once = False
    config = ConfigDef(
        [
            Key("target.command", importance=Importance.HIGH, doc="The command that starts the target."),
            key("target.config", None, "The target's settings, a JSON object.", Kind.PASSWORD),
            key("target.key.fields", [], "Fields of the value that are its key.", Kind.LIST),
            key("target.stream.format", "${topic}", "The stream of a topic; ${topic} is replaced."),
            key("target.timeout.ms", 300_000, "How long the target may do nothing.", Kind.LONG, validator=between(1)),
            key("target.line.max.bytes", 10_000_000, "The target's longest line.", Kind.INT, validator=between(100)),
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        words_of("target.command", parsed["target.command"])
        object_of("target.config", parsed["target.config"])
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Writing:
        return Writing(context)


class Writing:
    """The task."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._config = SingerSink.config.parse(context.config)
        self._timeout_s = self._config["target.timeout.ms"] / 1000
        self._folder = tempfile.TemporaryDirectory(prefix="moldau-target-")
        config = object_of("target.config", self._config["target.config"])
        place = written(Path(self._folder.name), "config.json", config)
        self._command = [*words_of("target.command", self._config["target.command"]), "--config", place]
        self._child: Child | None = None
        self._described: dict[str, Schema] = {}  # in this run
        self._shapes: dict[str, Shape] = {}

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return {}

    def put(self, records: Sequence[Record]) -> None:
        lines: list[bytes] = []
        for record in records:
            try:
                lines += self._lines(record)
            except ConnectError as error:
                self._context.report(record, error)
        if lines:
            if self._child is None:
                longest = self._config["target.line.max.bytes"]
                self._child = Child(self._command, longest, wants_input=True)
            self._child.write(b"".join(lines), self._timeout_s)

    def _lines(self, record: Record) -> list[bytes]:
        """Return the lines of a record: itself, and its schema if the target does not know it yet."""
        record = file_formats.typed(record, self._shapes.setdefault(record.topic, Shape()))
        schema, value = record.value_schema, record.value
        if schema is None or not isinstance(value, Struct):
            raise DataError("The value is neither a struct nor a JSON object; a target takes nothing else.")
        keys: list[str] = self._config["target.key.fields"]
        if missing := next((name for name in keys if name not in schema.by_name or value.get(name) is None), None):
            raise DataError(f"The value has no field {missing}, which target.key.fields names.")
        stream = self._config["target.stream.format"].replace("${topic}", record.topic)
        line = row(stream, plain(schema, value))
        if self._described.get(stream) == schema:
            return [line]
        self._described[stream] = schema
        return [describe(stream, schema.but(optional=False), keys), line]

    def flush(self, offsets: Offsets) -> Offsets:
        """End the run: when the target has ended well it has everything."""
        self._described.clear()
        if self._child is not None:
            child, self._child = self._child, None
            if code := child.finish(self._timeout_s):
                raise ConnectError(child.failure(code))
        return offsets

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None
        self._folder.cleanup()
