"""Printing of streams: the I/O of `KStream.print`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO


def pair_text(key: Any, value: Any) -> str:
    return f"{key}, {value}"


class Printer:
    """A printer to an open file, to the path of one, or to what is standard output at that time."""

    def __init__(self, label: str, text: Callable[[Any, Any], str], file: TextIO | Path | str | None = None) -> None:
        self.label, self.text, self.file = label, text, file

    def __call__(self, key: Any, value: Any) -> None:
        line = f"[{self.label}]: {self.text(key, value)}\n"
        if isinstance(self.file, str | Path):
            with open(self.file, "a", encoding="utf-8") as out:
                out.write(line)
        else:
            (self.file or sys.stdout).write(line)
