"""The platforms that run on this machine: each has a file in a directory of the user, locked while it runs.

Thus `moldau status`, `down` and `logs` find them, and a second `moldau up` on the same data directory is refused. The
lock ends with the process, however that ends: a file without a lock belongs to a platform that has ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from moldau.admin.mistakes import Mistake

WAIT_S = 60.0
LOOK_EVERY_S = 0.05
READS, READ_AGAIN_S = 20, 0.01


@dataclass(frozen=True, slots=True)
class RunningPart:
    """A part, its address, its process, and whether it has said that it is ready, or waits for its first use."""

    name: str
    address: str
    pid: int
    is_ready: bool = True
    is_idle: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A running platform."""

    pid: int
    data_dir: str
    logs: str
    started: float
    parts: tuple[RunningPart, ...]


def directory() -> Path:
    """Return the directory of the files, which belongs to this user alone."""
    home = os.environ.get("XDG_RUNTIME_DIR")
    place = Path(home, "moldau") if home else Path(tempfile.gettempdir(), f"moldau-{os.getuid()}")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.stat().st_uid != os.getuid():
        raise Mistake(f"{place} belongs to somebody else: set XDG_RUNTIME_DIR to a directory of your own.")
    return place


class Record:
    """The file of the platform of this process, during a `with`."""

    def __enter__(self) -> Record:
        self.path = directory() / f"{os.getpid()}.json"
        self.file, self.size = open(self.path, "w", encoding="utf-8"), 0
        fcntl.flock(self.file, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        self.file.close()

    def write(self, run: Run) -> None:
        """Write the current state over the one before, in one piece: others may be reading it."""
        text = json.dumps(asdict(run)).ljust(self.size)
        self.size = len(text)
        os.pwrite(self.file.fileno(), text.encode(), 0)


def listed() -> list[Run]:
    """List the running platforms, the oldest first; remove the files of those that have ended."""
    found = [run for path in directory().glob("*.json") if (run := _read(path)) is not None]
    return sorted(found, key=lambda run: run.started)


def _read(path: Path) -> Run | None:
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError), open(path, encoding="utf-8") as file:
        if not _is_locked(file):
            path.unlink(missing_ok=True)
            return None
        fields = _load(file)
        parts = tuple(RunningPart(**part) for part in fields.pop("parts"))
        return Run(**fields, parts=parts)
    return None


def _load(file: Any) -> dict[str, Any]:
    """Read what a platform has written; again if that is torn. ValueError if there is nothing yet."""
    for _ in range(READS - 1):
        with contextlib.suppress(ValueError):
            file.seek(0)
            return json.load(file)
        time.sleep(READ_AGAIN_S)
    file.seek(0)
    return json.load(file)


def _is_locked(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def find(data_dir: str | None) -> Run | None:
    """Find the platform that uses a directory, or the only one that runs."""
    running = listed()
    if data_dir is not None:
        wanted = os.path.realpath(data_dir)
        return next((run for run in running if os.path.realpath(run.data_dir) == wanted), None)
    if len(running) > 1:
        places = ", ".join(run.data_dir for run in running)
        raise Mistake(f"{len(running)} platforms are running: choose one with --data-dir: {places}.")
    return running[0] if running else None


def wait_for_end(run: Run) -> bool:
    """Wait for a platform to end; return whether it did in time."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if all(other.pid != run.pid for other in listed()):
            return True
        time.sleep(LOOK_EVERY_S)
    return False


def memory(pid: int) -> int | None:
    """Return the memory of a process in bytes."""
    for line in _status(pid):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None


def _status(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        yield from file
