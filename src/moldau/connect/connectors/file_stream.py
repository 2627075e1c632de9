"""FileStream: the lines of a file into a topic, and the values of topics into a file, as Kafka's example connectors.

The offset of a source is `{"position": bytes}` after the last line that was sent; the last line of a file counts when
it has ended. Beyond Kafka: positions are bytes also where a line is not ASCII, a file that was replaced or truncated is
read from its start, and one whose name ends in .gz is decompressed.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, non_empty
from moldau.connect.connector import SINK, SOURCE, Config, Offsets, SinkContext, SourceContext, TopicPartition
from moldau.connect.data import STRING, Record
from moldau.connect.errors import ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.values import to_string

PACKAGE = "org.apache.kafka.connect.file."
FILENAME, POSITION = "filename", "position"
READ_BYTES, MOST_BYTES = 1 << 18, 1 << 22  # at a time, and for one poll, which long lines may need
LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n)")
FIRST_S, IDLE_S = 0.03, 0.3  # between looks at a file that has nothing new: twice as long each time, up to so long


class FileStreamSource:
    """Lines of a file, one task."""

    kind = SOURCE
    task_class = PACKAGE + "FileStreamSourceTask"
    exactly_once = True
    config = ConfigDef(
        [
            Key(
                "file",
                default=None,
                importance=Importance.HIGH,
                doc="The file to read; standard input if none is named.",
            ),
            Key("topic", importance=Importance.HIGH, doc="The topic that gets the lines.", validator=non_empty),
            Key("batch.size", Kind.INT, 2000, Importance.LOW, "The most lines that one poll returns."),
        ]
    )

    def supports_exactly_once(self, config: Config) -> bool:
        """Standard input cannot be read again."""
        return bool(self.config.parse(config)["file"])

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if not config.get("file"):
            raise ConnectError("Offsets cannot be modified if the 'file' configuration is unspecified.")
        if offset is None:
            return
        if POSITION not in offset:
            raise ConnectError("Offset objects should either be null or contain the key 'position'")
        position = offset[POSITION]
        if not isinstance(position, int) or isinstance(position, bool):
            raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
        if position < 0:
            raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")
        if FILENAME not in partition:
            raise ConnectError("Partition objects should contain the key 'filename'")

    def open(self, context: SourceContext) -> LineReader:
        return LineReader(context)


class LineReader:
    """The task of the source."""

    def __init__(self, context: SourceContext) -> None:
        config = FileStreamSource.config.parse(context.config)
        self._context = context
        self._name: str | None = config["file"]
        self._topic, self._most = config["topic"], config["batch.size"]
        self._partition: Mapping[str, Any] | None = {FILENAME: self._name} if self._name else None
        self._position = self._stored()
        self._file: IO[bytes] | None = None
        self._rest = b""  # of a line that has not ended
        self._pause_s = FIRST_S
        self._portion = READ_BYTES
        self._waits_for_nothing = False  # to read on does not mean to wait for others, as from a pipe

    def _stored(self) -> int:
        offset = self._context.offset(self._partition) if self._partition else None
        position = (offset or {}).get(POSITION, 0)
        if not isinstance(position, int):
            raise ConnectError(f"Offset position is the incorrect type: {position!r}")
        return position

    def poll(self) -> Sequence[Record]:
        file = self._opened()
        if file is None:
            return ()
        lines, size = cut(self._rest, self._most)
        while not lines or (len(lines) < self._most and len(self._rest) < MOST_BYTES and self._waits_for_nothing):
            data = self._read(file)
            if not data:
                break
            self._rest += data
            lines, size = cut(self._rest, self._most)
            if lines:  # so much has the next poll
                self._portion = min(max(READ_BYTES, self._most * size // len(lines)), MOST_BYTES)
        if lines:
            self._pause_s = FIRST_S
        else:
            self._idle(file)
        return self._records(lines, size)

    def _read(self, file: Any) -> bytes:
        return file.read1(self._portion) if self._name is None else file.read(self._portion)

    def _records(self, lines: list[tuple[bytes, int]], size: int) -> list[Record]:
        now, topic, partition = time.time_ns() // 1_000_000, self._topic, self._partition
        records = []
        for line, length in lines:
            self._position += length
            offset = {POSITION: self._position} if partition else None
            text = line.decode("utf-8", "replace")
            records.append(Record(topic, None, None, None, STRING, text, now, (), partition, offset))
        self._rest = self._rest[size:]
        return records

    def _opened(self) -> IO[bytes] | None:
        if self._file is None:
            try:
                self._file = self._open()
            except FileNotFoundError:
                self._wait()
        return self._file

    def _open(self) -> IO[bytes]:
        if self._name is None:
            return sys.stdin.buffer
        is_packed = self._name.endswith(".gz")
        if not is_packed and os.path.getsize(self._name) < self._position:
            self._position = 0  # it was truncated, or is another one
        file: Any = gzip.open(self._name, "rb") if is_packed else open(self._name, "rb", buffering=0)  # noqa: SIM115
        file.seek(self._position)
        self._rest = b""
        self._waits_for_nothing = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        return file

    def _wait(self) -> bool:
        """Wait for the task's end; what was written to a while ago has to wait longer for the next look."""
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, IDLE_S)
        return self._context.wait(pause_s)

    def _idle(self, file: IO[bytes]) -> None:
        """Wait a little, and find out whether the file was replaced or truncated."""
        if self._wait() or self._name is None:
            return
        try:
            now, then = os.stat(self._name), os.fstat(file.fileno())
        except FileNotFoundError:
            return  # it may come back
        if (now.st_ino, now.st_dev) != (then.st_ino, then.st_dev):
            self._begin_anew(file, 0)
        elif self._name.endswith(".gz"):
            self._begin_anew(file, self._position)  # it may have grown by another member
        elif now.st_size < self._position:
            self._begin_anew(file, 0)

    def _begin_anew(self, file: IO[bytes], position: int) -> None:
        file.close()
        self._file, self._position, self._rest = None, position, b""

    def close(self) -> None:
        if self._file is not None and self._name is not None:
            self._file.close()


def cut(data: bytes, most: int) -> tuple[list[tuple[bytes, int]], int]:
    """Return complete lines, each with its length including its end (\\n, \\r\\n or \\r), and the length of all."""
    if b"\r" not in data:
        lines = [(line, len(line) + 1) for line in data.split(b"\n", most)[:-1]]
        return lines, sum(length for _, length in lines)
    lines, start = [], 0
    last = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1  # the pattern would search what has no end at each byte
    for match in LINE.finditer(data, 0, last):
        if len(lines) == most or (match.end() == len(data) and match[2] == b"\r"):
            break  # enough, or a \\n may follow
        lines.append((match[1], match.end() - start))
        start = match.end()
    return lines, start


class FileStreamSink:
    """Values of topics, a line each, appended to a file."""

    kind = SINK
    task_class = PACKAGE + "FileStreamSinkTask"
    exactly_once = False
    config = ConfigDef(
        [
            Key(
                "file",
                default=None,
                importance=Importance.HIGH,
                doc="The file to write; standard output if none is named.",
            )
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> LineWriter:
        return LineWriter(context.config.get("file") or None)


class LineWriter:
    """The task of the sink."""

    def __init__(self, name: str | None) -> None:
        try:
            self._file: IO[bytes] = open(name, "ab") if name else sys.stdout.buffer  # noqa: SIM115
        except OSError as error:
            raise ConnectError(f"Couldn't find or create file '{name}' for FileStreamSinkTask") from error
        self._owned = name is not None

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return {}

    def put(self, records: Sequence[Record]) -> None:
        self._file.write("".join([f"{text_of(record)}\n" for record in records]).encode())
        self._file.flush()

    def flush(self, offsets: Offsets) -> Offsets:
        self._file.flush()
        return offsets

    def close(self) -> None:
        if self._owned:
            self._file.close()
        else:
            self._file.flush()


def text_of(record: Record) -> str:
    value = record.value
    if type(value) is str:  # as nearly always
        return value
    return "null" if value is None else to_string(record.value_schema, value)
