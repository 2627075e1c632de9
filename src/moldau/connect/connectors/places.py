"""Where files appear that a source reads: a folder of this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from moldau.connect.errors import ConfigError


class Place(Protocol):
    """A folder with files to read. What goes wrong raises OSError, or RetriableError if that may pass."""

    def files(self) -> list[tuple[str, int]]:
        """Return the files by name, each with the time of its last change in milliseconds."""
        ...

    def open(self, name: str) -> IO[bytes]: ...
    def move(self, name: str, folder: str) -> None: ...
    def delete(self, name: str) -> None: ...
    def close(self) -> None: ...


class LocalFolder:
    """A folder of this machine, or one that is mounted."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path = Path(config["input.path"])

    def files(self) -> list[tuple[str, int]]:
        with os.scandir(self._path) as found:
            return sorted((one.name, one.stat().st_mtime_ns // 1_000_000) for one in found if one.is_file())

    def open(self, name: str) -> IO[bytes]:
        return (self._path / name).open("rb")

    def move(self, name: str, folder: str) -> None:
        shutil.move(self._path / name, Path(folder) / name)

    def delete(self, name: str) -> None:
        (self._path / name).unlink()

    def close(self) -> None:
        """There is nothing to close."""


def check_folders(config: Mapping[str, Any], names: list[str]) -> None:
    """Refuse settings that name no folder of this machine."""
    for name in names:
        if not os.path.isdir(config[name]):
            raise ConfigError(f"Invalid value {config[name]} for configuration {name}: it is not a folder.")
