"""JSON files that tools read."""

from __future__ import annotations

import json
from typing import Any

from moldau.cli.kafka.running import Terse

MOST_BYTES = 64 << 20


def read_json(path: str) -> Any:
    """Read a file; None if it is not JSON."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError:
        raise Terse(f"Unable to read file {path}") from None
    if len(data) > MOST_BYTES:
        raise Terse(f"{path}: a file of JSON has at most {MOST_BYTES} bytes here")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
