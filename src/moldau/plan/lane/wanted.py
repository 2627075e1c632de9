"""What the driver of a lane wants of its flows: a file on its machine, which the process that plans batches reads.

It is only news. What counts is what the position of a batch says, which Spark keeps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RUNNING, HELD, REMOVED, MOVED = "running", "held", "removed", "moved"
FILE = "wanted.json"


@dataclass(frozen=True, slots=True)
class Want:
    """A flow as it is wanted: what it runs, and where it begins if the lane does not know it yet."""

    name: str
    parcel: str
    attempt: int
    state: str  # RUNNING, HELD, REMOVED, or MOVED: removed, and its position is told
    begin: dict[str, Any]

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING


def write(folder: Path, wants: Mapping[int, Want]) -> None:
    text = json.dumps({str(serial): asdict(want) for serial, want in wants.items()})
    put(folder / FILE, text.encode())


def put(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


class Wants:
    """What is wanted, read again when it has changed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._seen: tuple[int, int] | None = None
        self._wants: dict[int, Want] = {}

    def now(self) -> dict[int, Want]:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return self._wants
        if (seen := (status.st_ino, status.st_mtime_ns)) != self._seen:
            document = json.loads(self._path.read_bytes())
            self._wants = {int(serial): Want(**row) for serial, row in document.items()}
            self._seen = seen
        return self._wants
