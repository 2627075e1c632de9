"""Crumbs: which flow a Python worker is busy with, left in a file before its code is called.

A process that exits or is killed in the middle of it can tell nobody; its crumb does. On a cluster the files are on
other machines, where nobody looks for them. Where all machines share the folder, each minds its own processes alone: a
process has its number on its machine only.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "crumbs"
LONGEST_S = 600.0  # that code of a flow may take for the rows of one shard in a batch
_open: dict[tuple[int, str], int] = {}  # files by process, since processes are forked


@contextmanager
def crumb(folder: str, serial: int, attempt: int) -> Generator[None]:
    """Say that a flow's code runs, for the length of a `with`."""
    file = _file(folder)
    if file is None:
        yield
        return
    os.pwrite(file, f"{serial} {attempt}\n".encode(), 0)
    try:
        yield
    finally:
        os.ftruncate(file, 0)


def _file(folder: str) -> int | None:
    key = (os.getpid(), folder)
    if key not in _open:
        if not os.path.isdir(folder):  # of another machine
            return None
        os.makedirs(f"{folder}/{FOLDER}", exist_ok=True)
        _open[key] = os.open(f"{folder}/{FOLDER}/{key[0]}@{socket.gethostname()}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    return _open[key]


def left(folder: Path) -> list[tuple[int, int]]:
    """Return the flows (serial, attempt) whose processes are gone; what is not of use any more is removed."""
    found: list[tuple[int, int]] = []
    for path, pid in _here(folder):
        if not is_alive(pid):
            words = path.read_text().split()
            found += [(int(words[0]), int(words[1]))] if len(words) == 2 else []
            path.unlink(missing_ok=True)
    return found


def stuck(folder: Path, now: float) -> list[int]:
    """Return the processes that have been busy with one call for too long."""
    files = [(pid, path.stat()) for path, pid in _here(folder)]
    return [pid for pid, status in files if status.st_size and now - status.st_mtime > LONGEST_S]


def _here(folder: Path) -> list[tuple[Path, int]]:
    """Return the files of processes of this machine."""
    found = (folder / FOLDER).glob(f"*@{socket.gethostname()}")
    return [(path, int(path.name.partition("@")[0])) for path in found]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
