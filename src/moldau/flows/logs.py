"""The log of each flow: a file under the worker's folder, with what became of the flow and why.

A file that has grown to its limit becomes the one before, whose place it takes: a flow never has more than two. The
log is for people at the machine of the worker; the last state, with its error and trace, can be read from anywhere.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from moldau.flows.states import FlowState

MOST_BYTES = 1 << 20
BEFORE = ".1"
LOOK_S = 0.2
log = logging.getLogger(__name__)


class FlowLogs:
    """The logs that a worker writes. One that cannot be written (the disk is full) holds nothing up."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self._most_bytes = folder, most_bytes

    def write(self, name: str, text: str) -> None:
        """Add lines about a flow; the first gets the time."""
        path = path_of(self.folder, name)
        data = f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text.rstrip()}\n".encode(errors="replace")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size + len(data) > self._most_bytes:
                os.replace(path, f"{path}{BEFORE}")
            with path.open("ab") as file:
                file.write(data[-self._most_bytes :])
        except OSError as error:
            log.warning("the log of %s cannot be written: %s", name, error)

    def forget(self, name: str) -> None:
        for suffix in ("", BEFORE):
            Path(f"{path_of(self.folder, name)}{suffix}").unlink(missing_ok=True)


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.log"


def text_of(state: FlowState, version: str) -> str:
    """Return a state as lines of a log."""
    error = f": {state.error}" if state.error else ""
    trace = "".join(f"\n  {line}" for line in (state.trace or "").strip().splitlines())
    return f"{state.state} on {state.worker}, version {version[:12]}, revision {state.revision}{error}{trace}"


def tail(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log, also those of the file before it."""
    files = [Path(f"{path}{BEFORE}"), path]
    text = "".join(file.read_text(errors="replace") for file in files if file.exists())
    return text.splitlines()[-lines:] if lines else []


def follow(
    path: Path, is_stopped: Callable[[float], bool] = lambda pause_s: bool(time.sleep(pause_s))
) -> Iterator[str]:
    """Yield the lines that are added from now on, through changes of files."""
    position, number = (path.stat().st_size, path.stat().st_ino) if path.exists() else (0, -1)
    rest = b""
    while not is_stopped(LOOK_S):
        for file in (Path(f"{path}{BEFORE}"), path):
            if not file.exists() or (file != path and file.stat().st_ino != number):
                continue
            if file == path and file.stat().st_ino != number:
                position, number = 0, file.stat().st_ino
            with file.open("rb") as opened:
                opened.seek(position)
                data = opened.read()
            position += len(data)
            *complete, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in complete)
