"""Code of flows: a zip of Python files, kept in pieces in a compacted topic under the hash of its content.

What is packed is the file that was named and those beside it that it has imported. A zip is unpacked only within
bounds, and only into its own folder.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from moldau.client import Client, Record, build
from moldau.flows.definition import FlowError
from moldau.flows.packages import files_of
from moldau.flows.topics import make
from moldau.topicstore import Reader, append, exists
from moldau.topicstore.reader import LATEST, offset_of
from moldau.topicstore.store import Replayed

TOPIC = "__moldau_flow_code"
MOST_BYTES = 16 << 20  # of a zip
MOST_UNPACKED = 64 << 20
MOST_FILES = 2000
PIECE = 512 << 10
WRITE_S = 60.0
EPOCH = (1980, 1, 1, 0, 0, 0)  # a zip of the same files is the same


def modules_beside(file: Path, names: Iterable[str]) -> list[Path]:
    """Return the files of modules that lie in the folder of a file, or below it: those that it has imported."""
    folder = file.resolve().parent
    found = (Path(path).resolve() for name in names if (path := getattr(sys.modules.get(name), "__file__", None)))
    return sorted({path for path in found if path.suffix == ".py" and folder in path.parents and path.exists()})


def pack(file: Path, more: Iterable[Path] = (), packages: Path | None = None) -> bytes:
    """Return a zip of a file, of others beside it, and of a folder of packages; FlowError if it is too large."""
    folder, out = file.resolve().parent, io.BytesIO()
    own = [(path.relative_to(folder).as_posix(), path) for path in sorted({file.resolve(), *more})]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, path in (*own, *files_of(packages)):
            info = zipfile.ZipInfo(name, EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(info, path.read_bytes())
        list(checked(made.infolist()))
    if len(data := out.getvalue()) > MOST_BYTES:
        raise FlowError(f"The code has {len(data):,} bytes as a zip; {MOST_BYTES:,} are allowed.")
    return data


def version_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of a zip into a folder, unless somebody else does so; FlowError for what is no such zip."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as made:
            for info in checked(made.infolist()):
                target = partial / info.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(made.read(info))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FlowError(f"The code is no zip that can be read: {error}.") from None
    else:
        if not folder.exists():
            with suppress(OSError):  # somebody else was quicker
                partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def checked(files: list[zipfile.ZipInfo]) -> Iterator[zipfile.ZipInfo]:
    if len(files) > MOST_FILES or sum(info.file_size for info in files) > MOST_UNPACKED:
        raise FlowError(f"The code has more than {MOST_FILES} files or {MOST_UNPACKED:,} bytes.")
    for info in files:
        parts = Path(info.filename).parts
        if not parts or Path(info.filename).is_absolute() or ".." in parts or info.is_dir():
            raise FlowError(f"The code has a file with the name {info.filename[:100]!r}.")
        yield info


class Kept(NamedTuple):
    """A zip in the topic: its version, its size, and the offset from which its pieces are found."""

    version: str
    size: int
    at: int = 0


def put(client: Client, data: bytes) -> Kept:
    """Keep a zip."""
    make(client, TOPIC)
    version, offsets = version_of(data), list[int]()
    for number in range(0, len(data), PIECE):
        row = Record(
            0, time.time_ns() // 1_000_000, f"{version}/{number // PIECE}".encode(), data[number : number + PIECE]
        )
        offsets.append(append(client, TOPIC, 0, build([row]), WRITE_S)[0])
    return Kept(version, len(data), offsets[0])


def get(client: Client, kept: Kept) -> bytes | None:
    """Return a zip; None if it is not there whole. The topic is read from where the zip is to where it ends."""
    if not exists(client, TOPIC):
        return None
    pieces: dict[int, bytes] = {}

    def apply(record: Record) -> None:
        name, _, number = bytes(record.key or b"").decode(errors="replace").partition("/")
        if name != kept.version or not number.isdecimal():
            return
        pieces.pop(int(number), None)
        if record.value is not None:
            pieces[int(number)] = bytes(record.value)

    def begin(_: int, start: int) -> Replayed:
        is_other = kept.at > offset_of(client, TOPIC, 0, LATEST)  # the topic was deleted and made again
        return Replayed(start if is_other else max(start, kept.at), apply)

    reader = Reader(client, TOPIC, begin, partitions=lambda: (0,))
    reader.begin()
    while sum(map(len, pieces.values())) < kept.size and not reader.states[0].loaded:
        reader.read()
    data = b"".join(pieces[number] for number in sorted(pieces))
    return data if version_of(data) == kept.version else None


def forget(client: Client, kept: Kept) -> None:
    """Let a zip go."""
    for number in range(0, kept.size, PIECE):
        append(client, TOPIC, 0, build([Record(0, 0, f"{kept.version}/{number // PIECE}".encode(), None)]), WRITE_S)


def forget_unused(client: Client, zips: Iterable[Kept], used: Callable[[], Container[str]]) -> None:
    """Let zips go that no definition refers to. Whoever defines a flow checks afterwards that its zip is there, and
    what was defined before that is put back here: so no zip is lost to somebody who deploys it at the same time.
    """
    for kept in zips:
        if kept.version not in used() and (data := get(client, kept)) is not None:
            forget(client, kept)
            if kept.version in used():
                put(client, data)
