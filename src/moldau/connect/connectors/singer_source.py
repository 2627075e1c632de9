"""Singer source: any tap as a child process. What it writes as STATE is the source offset.

A tap is started with the state that was committed last. Records are kept back until the STATE that covers them has
come, so that both are in one transaction: after a crash nothing is lost or doubled. A tap that writes more than
`tap.buffer.bytes` between two STATEs has its records passed on before; those can come twice after a crash. If a tap
fails, what it wrote after its last STATE is dropped, and the task fails with the tap's last words.

`Tap` is what a connector starts: others whose programs speak Singer's lines have one of their own (dlt, Airbyte).
"""

from __future__ import annotations

import json
import logging
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, Password, between, key, non_empty
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.connectors.singer_child import Child
from moldau.connect.connectors.singer_messages import Described, Row, State, fitted, read, widened
from moldau.connect.data import Record, Schema, Struct, struct
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape

log = logging.getLogger(__name__)
POLL_S = 0.5
SCHEMAS_CACHED = 64
MOST_RECORDS = 5000  # of a poll; those up to one STATE stay together, however many they are
DISCOVERY_S = 600.0
END_S = 60.0  # between a tap's last line and its end
STATE = "state"


COMMON = (
    key("topic.name.format", "${stream}", "The topic of a stream; ${stream} is replaced.", validator=non_empty),
    key("tap.interval.ms", 60_000, "The pause between two runs.", Kind.LONG, validator=between(0)),
    key("tap.line.max.bytes", 10_000_000, "The longest line.", Kind.INT, validator=between(100)),
    key("tap.buffer.bytes", 64_000_000, "The most that is kept back for a STATE.", Kind.LONG, validator=between(0)),
)


@dataclass(frozen=True, slots=True)
class Tap:
    """A source whose program writes Singer's lines. `command` writes what the program wants to read into a folder, the
    state among it, and returns the command.
    """

    task_class: str
    name: str
    config: ConfigDef
    command: Callable[[Mapping[str, Any], Any, Path], list[str]]
    check: Callable[[Mapping[str, Any]], None]
    kind: str = SOURCE
    exactly_once: bool = True

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        self.check(self.config.parse(config))
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if partition != {"tap": self.name}:
            raise ConnectError(f'The only partition is {{"tap": "{self.name}"}}.')
        if offset is not None and STATE not in offset:
            raise ConnectError(f"Offset objects should either be null or contain the key '{STATE}'")

    def open(self, context: SourceContext) -> Reading:
        return Reading(self, context)


class Reading:
    """The task."""

    def __init__(self, tap: Tap, context: SourceContext) -> None:
        self._tap, self._context = tap, context
        self._config = tap.config.parse(context.config)
        self._partition = {"tap": tap.name}
        self._offset: Mapping[str, Any] | None = context.offset(self._partition)
        self._streams: dict[str, tuple[Schema | None, tuple[str, ...]]] = {}
        self._shapes: dict[str, Shape] = {}
        self._ready: list[Record] = []
        self._held: list[Record] = []  # since the last STATE
        self._held_bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._child: Child | None = None
        self._failure: ConnectError | None = None
        self._next = 0.0

    def poll(self) -> Sequence[Record]:
        if self._child is None and self._failure is None:
            if time.monotonic() < self._next:
                self._context.wait(min(POLL_S, self._next - time.monotonic()))
                return ()
            self._start()
        try:
            self._read(time.monotonic() + POLL_S)
        except ConnectError as error:  # what came before it is whole
            self._failure = error
        if not self._ready and self._failure is not None:
            raise self._failure
        ready, self._ready = self._ready, []
        return ready

    def _read(self, end: float) -> None:
        while self._child is not None and self._failure is None and len(self._ready) < MOST_RECORDS:
            if (left := end - time.monotonic()) <= 0:
                break
            lines = self._child.read(left)
            if lines is None:
                self._end()
            for line in lines or ():
                self._take(line)

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="moldau-tap-")
        state = None if self._offset is None else self._offset[STATE]
        command = self._tap.command(self._config, state, Path(self._folder.name))
        self._child = Child(command, self._config["tap.line.max.bytes"])
        self._streams.clear()

    def _take(self, line: bytes) -> None:
        match read(line):
            case Described(stream, schema, keys):
                self._streams[stream] = schema, keys
            case Row(stream, value):
                self._held.append(self._record(stream, value))
                self._held_bytes += len(line)
                if self._held_bytes > self._config["tap.buffer.bytes"]:
                    log.warning("%s: more than tap.buffer.bytes without a STATE is passed on.", self._tap.name)
                    self._release()
            case State(value):
                self._offset = {STATE: value}
                place = {"source_partition": self._partition, "source_offset": self._offset}
                self._held = [one.but(**place) for one in self._held]
                self._release()
            case None:
                pass

    def _release(self) -> None:
        self._ready += self._held
        self._held, self._held_bytes = [], 0

    def _record(self, stream: str, value: Mapping[str, Any]) -> Record:
        if stream not in self._streams:
            raise DataError(f"The tap wrote a RECORD of {stream} before its SCHEMA.")
        schema, keys = self._streams[stream]
        if schema is None:
            schema, made = self._shapes.setdefault(stream, Shape()).take(value)
            assert schema is not None  # a row is an object
        else:
            if len(value) > len(schema.fields) or not value.keys() <= schema.by_name.keys():
                schema = widened(schema, value)
                self._streams[stream] = schema, keys
            made = fitted(schema, value, stream)
        key_schema = key_of = None
        if keys:
            if missing := next((name for name in keys if value.get(name) is None), None):
                raise DataError(f"A record of {stream} has no {missing}, which is one of its key properties.")
            key_schema = key_schema_of(schema, keys)
            key_of = Struct(key_schema, tuple(made.get(name) for name in keys))
        topic = self._config["topic.name.format"].replace("${stream}", stream)
        return Record(topic, None, key_schema, key_of, schema, made, time.time_ns() // 1_000_000)

    def _end(self) -> None:
        """Take note of the end of a run; ConnectError if the tap failed."""
        assert self._child is not None
        child, self._child = self._child, None
        code = child.finish(END_S)
        self._clean()
        if code:
            self._held, self._held_bytes = [], 0
            raise ConnectError(child.failure(code))
        if child.torn:
            self._take(child.torn)
        self._release()
        self._next = time.monotonic() + self._config["tap.interval.ms"] / 1000

    def _clean(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None
        self._clean()


@lru_cache(SCHEMAS_CACHED)
def key_schema_of(schema: Schema, keys: tuple[str, ...]) -> Schema:
    return struct({name: schema.by_name[name].schema.but(optional=False) for name in keys})


# Singer's own taps.


def written(folder: Path, name: str, value: Any) -> str:
    """Write a document that only this user can read, and return its path."""
    place = folder / name
    place.touch(0o600)
    place.write_text(json.dumps(value))
    return str(place)


def object_of(name: str, text: Password | None) -> Any:
    """Read a setting that has a JSON object."""
    try:
        found = json.loads(text.value) if text is not None else {}
    except ValueError as error:
        raise ConfigError(f"The setting {name} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"The setting {name} is not a JSON object.")
    return found


def words_of(name: str, text: str) -> list[str]:
    """Split a command as a shell does."""
    try:
        found = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"The setting {name} is not a command: {error}") from None
    if not found:
        raise ConfigError(f"The setting {name} is empty.")
    return found


def _check(config: Mapping[str, Any]) -> None:
    words_of("tap.command", config["tap.command"])
    object_of("tap.config", config["tap.config"])
    if config["tap.catalog.file"] and config["tap.streams"]:
        raise ConfigError("Set tap.catalog.file or tap.streams, not both.")


def _command(config: Mapping[str, Any], state: Any, folder: Path) -> list[str]:
    command = words_of("tap.command", config["tap.command"])
    command += ["--config", written(folder, "config.json", object_of("tap.config", config["tap.config"]))]
    catalog = config["tap.catalog.file"]
    if config["tap.streams"]:
        found = _discovered(command, config)
        catalog = written(folder, "catalog.json", chosen(found, config["tap.streams"]))
    if catalog:
        command += [config["tap.catalog.option"], catalog]
    return command if state is None else [*command, "--state", written(folder, "state.json", state)]


def _discovered(command: Sequence[str], config: Mapping[str, Any]) -> Any:
    """Ask the tap which streams it has."""
    child = Child([*command, "--discover"], config["tap.line.max.bytes"])
    end, lines = time.monotonic() + DISCOVERY_S, list[bytes]()
    try:
        while (found := child.read(max(0.0, end - time.monotonic()))) is not None:
            if time.monotonic() > end:
                raise ConnectError(f"{child.name} --discover did not end within {DISCOVERY_S:g} seconds.")
            lines += found
        if code := child.finish(END_S):
            raise ConnectError(child.failure(code))
    finally:
        child.kill()
    try:
        return json.loads(b"\n".join(lines))
    except ValueError:
        raise ConnectError(f"What {child.name} --discover wrote is not a catalog.") from None


def chosen(catalog: Any, streams: Sequence[str]) -> Any:
    """Mark the streams to read; * means all. ConnectError for one that the tap does not have."""
    rows = catalog.get("streams") if isinstance(catalog, dict) else None
    if not isinstance(rows, list):
        raise ConnectError("The tap's catalog has no streams.")
    names = {one.get("tap_stream_id") or one.get("stream") for one in rows}
    if unknown := [name for name in streams if name != "*" and name not in names]:
        raise ConnectError(f"The tap has no stream {unknown[0]}; it has {', '.join(sorted(map(str, names)))}.")
    wanted = names if "*" in streams else set(streams)
    marked = [_marked(one, (one.get("tap_stream_id") or one.get("stream")) in wanted) for one in rows]
    return {**catalog, "streams": marked}


def _marked(stream: Mapping[str, Any], is_wanted: bool) -> dict[str, Any]:
    """Mark a stream in both ways that taps know: in its metadata, and in its schema."""
    rows: list[dict[str, Any]] = stream.get("metadata") or []
    own: dict[str, Any] = next((one for one in rows if one.get("breadcrumb") == []), {"breadcrumb": []})
    marked = {**own, "metadata": {**own.get("metadata", {}), "selected": is_wanted}}
    schema = {**stream.get("schema", {}), "selected": is_wanted}
    return {**stream, "metadata": [marked, *(one for one in rows if one is not own)], "schema": schema}


SINGER = Tap(
    "moldau.connect.SingerSourceTask",
    "singer",
    ConfigDef(
        [
            Key("tap.command", importance=Importance.HIGH, doc="The command that starts the tap."),
            key("tap.config", None, "The tap's settings, a JSON object.", Kind.PASSWORD),
            key("tap.streams", [], "Streams to read, or *; the tap is asked which it has.", Kind.LIST),
            key("tap.catalog.file", "", "A catalog, where the streams are chosen in more detail."),
            key("tap.catalog.option", "--catalog", "The option for the catalog; older taps have --properties."),
            *COMMON,
        ]
    ),
    _command,
    _check,
)
