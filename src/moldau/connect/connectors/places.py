"""Where files appear that a source reads: a folder of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from moldau.connect.errors import ConfigError


class Found(NamedTuple):
    """A file of a folder, with the time of its last change in milliseconds."""

    name: str
    modified: int
    size: int


class Place(Protocol):
    """A folder with files to read. What goes wrong raises OSError, or RetriableError if that may pass."""

    def files(self) -> list[Found]:
        """Return the files by name."""
        ...

    def open(self, name: str) -> IO[bytes]: ...

    def move(self, name: str, folder: str, within: str = "") -> None:
        """Move a file into a folder, or into one `within` it, which is made if need be."""
        ...

    def delete(self, name: str) -> None: ...
    def close(self) -> None: ...


class LocalFolder:
    """A folder of this machine, or one that is mounted."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path = Path(config["input.path"])

    def files(self) -> list[Found]:
        with os.scandir(self._path) as found:
            there = [(one.name, one.stat()) for one in found if one.is_file()]
        return sorted(Found(name, about.st_mtime_ns // 1_000_000, about.st_size) for name, about in there)

    def open(self, name: str) -> IO[bytes]:
        return (self._path / name).open("rb")

    def move(self, name: str, folder: str, within: str = "") -> None:
        target = Path(folder) / within
        if within:
            target.mkdir(exist_ok=True)
        shutil.move(self._path / name, target / name)

    def delete(self, name: str) -> None:
        (self._path / name).unlink()

    def close(self) -> None:
        """There is nothing to close."""


def check_folders(config: Mapping[str, Any], names: list[str]) -> None:
    """Refuse settings that name no folder of this machine."""
    for name in names:
        if not os.path.isdir(config[name]):
            raise ConfigError(f"Invalid value {config[name]} for configuration {name}: it is not a folder.")
