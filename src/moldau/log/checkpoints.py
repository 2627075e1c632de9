"""The small text files of a log directory and of a partition, in Kafka's formats.

An offset checkpoint holds an offset for each partition; an epoch checkpoint the first offset of each leader epoch:
version, number of entries, one entry a line. `partition.metadata` and `meta.properties` are key and value lines.
"""

import base64
import os
from collections.abc import Callable, Mapping

from moldau.log.disk import Disk

Partition = tuple[str, int]

ID_BYTES = 16
RESERVED_IDS = bytes(ID_BYTES), bytes(ID_BYTES - 1) + b"\x01"


class Damaged(Exception):
    """A file that cannot be what it should be; the text is a sentence for the operator."""


def _entries(disk: Disk, path: str) -> list[list[str]]:
    """Return the lines after the head. Kafka makes such files empty before it writes them."""
    try:
        lines = disk.read(path).decode().splitlines()
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise Damaged(f"{path} is not text") from error
    if not lines:
        return []
    if len(lines) < 2 or lines[0] != "0" or not lines[1].isdigit() or len(lines) - 2 != int(lines[1]):
        raise Damaged(f"{path} is not a checkpoint of version 0 with as many entries as it says")
    return [line.split() for line in lines[2:]]


def _write(disk: Disk, path: str, entries: list[str], *, sync: bool) -> None:
    disk.write_atomic(path, "\n".join(["0", str(len(entries)), *entries, ""]).encode(), sync=sync)


def read_offsets(disk: Disk, path: str) -> dict[Partition, int]:
    """Lines of topic, partition and offset. A topic's name has no spaces."""
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in _entries(disk, path)}
    except ValueError as error:
        raise Damaged(f"{path} has a line that is not topic, partition and offset") from error


def write_offsets(disk: Disk, path: str, offsets: Mapping[Partition, int]) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    _write(disk, path, lines, sync=True)


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    """Lines of epoch and start offset. Kafka leaves an empty file for a partition that nobody has written to."""
    try:
        return [(int(epoch), int(start)) for epoch, start in _entries(disk, path)]
    except ValueError as error:
        raise Damaged(f"{path} has a line that is not epoch and offset") from error


def write_epochs(disk: Disk, path: str, entries: list[tuple[int, int]], *, sync: bool = True) -> None:
    _write(disk, path, [f"{epoch} {start}" for epoch, start in entries], sync=sync)


def encode_id(value: bytes) -> str:
    """Return a 16-byte id as Kafka prints it: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def random_id(randbytes: Callable[[int], bytes] = os.urandom) -> str:
    """Make an id of a cluster or a directory: not a reserved one, nor one that begins like a flag, as Kafka does."""
    while True:
        raw = randbytes(ID_BYTES)
        text = encode_id(raw)
        if raw not in RESERVED_IDS and not text.startswith("-"):
            return text


def decode_id(text: str) -> bytes:
    value = base64.urlsafe_b64decode(text + "==")
    if len(value) != ID_BYTES:
        raise ValueError(f"{text} is not a 16-byte id")
    return value


def read_topic_id(disk: Disk, path: str) -> bytes | None:
    """Return the topic id of `partition.metadata`, or None when there is no such file."""
    try:
        lines = disk.read(path).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    try:
        return decode_id(fields["topic_id"])
    except (KeyError, ValueError) as error:
        raise Damaged(f"{path} has no topic_id") from error


def write_topic_id(disk: Disk, path: str, topic_id: bytes) -> None:
    disk.write_atomic(path, f"version: 0\ntopic_id: {encode_id(topic_id)}\n".encode(), sync=False)


def read_properties(disk: Disk, path: str) -> dict[str, str] | None:
    """Return a Java properties file of plain `name=value` lines, or None when it is missing."""
    try:
        lines = disk.read(path).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    pairs = (line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith(("#", "!")))
    return {name.strip(): value.strip() for name, _, value in pairs}


def write_properties(disk: Disk, path: str, values: Mapping[str, str]) -> None:
    disk.write_atomic(path, "".join(f"{name}={value}\n" for name, value in values.items()).encode())
