"""Files of a partition on disk, read without a broker: batches, indexes, and checks of both.

Names and formats are Kafka's: NNN.log has batches, NNN.index pairs of offset and position, NNN.timeindex pairs of time
and offset. All offsets in indexes are relative to the number in the name.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moldau.admin.mistakes import Mistake
from moldau.wire.errors import WireError
from moldau.wire.records import HEADER_SIZE, Batch, records

LOG, INDEX, TIME_INDEX = ".log", ".index", ".timeindex"
OFFSET_ENTRY, TIME_ENTRY = struct.Struct(">ii"), struct.Struct(">qi")


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a file."""

    file: Path
    position: int
    what: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A batch and its position in its file."""

    position: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Checked:
    """The sizes of a segment, and the problems in it."""

    file: Path
    batches: int
    records: int
    size: int
    problems: tuple[Problem, ...]


def base_offset(file: Path) -> int:
    """Return the number in a file's name; Mistake if there is none."""
    if not file.stem.isdecimal():
        raise Mistake(f"{file} is not a file of a log: its name must be a number.")
    return int(file.stem)


def find_files(path: Path, *suffixes: str) -> list[Path]:
    """Return a file itself, or all files of these kinds in a directory and those below it."""
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in suffixes and file.stem.isdecimal())
    if not path.exists():
        raise Mistake(f"There is no file {path}.")
    return [path]


def batches(file: Path) -> Iterator[Placed]:
    """Read the batches of a segment; WireError for bytes that are not a batch, or a torn one."""
    with file.open("rb") as source:
        size = source.seek(0, 2)
        if size == 0:
            return
        view = memoryview(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ))
        position = 0
        while position < size:
            if not any(view[position : position + HEADER_SIZE]):
                return  # the zeros of a preallocated file
            batch = Batch(view, position)
            if not batch.is_whole:
                raise WireError(f"a batch of {batch.size} bytes is torn: {size - position} are left")
            yield Placed(position, batch)
            position += batch.size


def offset_index(file: Path) -> Iterator[tuple[int, int]]:
    """Read offset and position of each entry."""
    base = base_offset(file)
    return ((base + relative, position) for relative, position in _entries(file, OFFSET_ENTRY))


def time_index(file: Path) -> Iterator[tuple[int, int]]:
    """Read timestamp and offset of each entry."""
    base = base_offset(file)
    return ((timestamp, base + relative) for timestamp, relative in _entries(file, TIME_ENTRY))


def _entries(file: Path, form: struct.Struct) -> Iterator[tuple[int, ...]]:
    data = file.read_bytes()
    for number, entry in enumerate(form.iter_unpack(data[: len(data) - len(data) % form.size])):
        if number and not any(entry):
            return  # the zeros of a preallocated index
        yield entry


def check(file: Path, *, deep: bool = True) -> Checked:
    """Check a segment and its indexes: CRCs, the order of offsets, records, and entries that point at batches."""
    problems: list[Problem] = []
    positions: dict[int, Batch] = {}
    count, end, expected = 0, 0, base_offset(file)
    try:
        for placed in batches(file):
            batch, end = placed.batch, placed.position + placed.batch.size
            positions[placed.position] = batch
            problems += [Problem(file, placed.position, what) for what in _wrong(batch, expected, deep)]
            expected, count = batch.next_offset, count + max(0, batch.count)
    except WireError as error:
        problems.append(Problem(file, end, f"from here on it cannot be read: {error}"))
    problems += _check_index(file.with_suffix(INDEX), positions)
    problems += _check_time_index(file.with_suffix(TIME_INDEX), expected)
    return Checked(file, len(positions), count, file.stat().st_size, tuple(problems))


def _wrong(batch: Batch, expected: int, deep: bool) -> Iterator[str]:
    if not batch.is_valid():
        yield f"the batch at offset {batch.base_offset} has a wrong CRC"
        return
    if batch.base_offset < expected:
        yield f"the batch begins at offset {batch.base_offset}, behind {expected} is expected"
    if deep:
        try:
            offsets = [record.offset for record in records(batch)]
        except WireError as error:
            yield f"the batch at offset {batch.base_offset} has a right CRC and wrong records: {error}"
            return
        if offsets != sorted(set(offsets)) or (offsets and not batch.base_offset <= offsets[0]):
            yield f"the offsets of the batch at {batch.base_offset} do not rise"


def _check_index(file: Path, positions: dict[int, Batch]) -> Iterator[Problem]:
    if not file.exists():
        return
    for number, (offset, position) in enumerate(offset_index(file)):
        batch = positions.get(position)
        at = number * OFFSET_ENTRY.size
        if batch is None:
            if positions or position:
                yield Problem(file, at, f"the entry for offset {offset} points at {position}, where no batch begins")
        elif not batch.base_offset <= offset <= batch.last_offset:
            yield Problem(file, at, f"the entry for offset {offset} points at the batch of {batch.base_offset}")


def _check_time_index(file: Path, end: int) -> Iterator[Problem]:
    if not file.exists():
        return
    last = -1
    for number, (timestamp, offset) in enumerate(time_index(file)):
        if timestamp < last:
            yield Problem(file, number * TIME_ENTRY.size, f"the time {timestamp} comes behind {last}")
        if offset >= end and end:
            yield Problem(file, number * TIME_ENTRY.size, f"offset {offset} lies behind the end, {end}")
        last = timestamp
