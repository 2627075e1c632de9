"""Keys and values as JSON has them, and back from text: for HTTP, for the command line."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from moldau.operators.record import Stamped
from moldau.operators.stores.versioned import VersionedRecord
from moldau.operators.windowed import Windowed
from moldau.serdes.context import Serde
from moldau.serdes.primitive import BYTES, STRING, UUID_TEXT

from .errors import ViewError


def plain(value: Any) -> Any:
    """Turn a value into JSON: bytes become base64, what JSON does not know becomes text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)


def entry(key: Any, found: Any) -> dict[str, Any]:
    """Return a key and what a store has of it."""
    if isinstance(key, Windowed):
        place = {"key": plain(key.key), "window_start": key.start, "window_end": key.end}
    else:
        place = {"key": plain(key)}
    if isinstance(found, VersionedRecord):
        return {**place, "value": plain(found.value), "timestamp": found.timestamp, "valid_to": found.valid_to}
    if isinstance(found, Stamped):
        return {**place, "value": plain(found.value), "timestamp": found.timestamp}
    return {**place, "value": plain(found)}


def key_of_text(serde: Serde | None, text: str) -> Any:
    """Read a key as somebody wrote it: text as it is where keys are text, otherwise JSON."""
    if serde is STRING or serde is UUID_TEXT:
        return text
    if serde is BYTES:
        return text.encode()
    try:
        return json.loads(text)
    except ValueError:
        return text  # the serde says what is wrong with it


def position_of_text(text: str) -> dict[int, int]:
    """Read `0:120,1:44`, or `120` for a single partition."""
    try:
        pairs = [part.split(":") if ":" in part else ["0", part] for part in text.split(",")]
        return {int(partition): int(offset) for partition, offset in pairs}
    except ValueError:
        raise ViewError(f"{text!r} is not a position: write PARTITION:OFFSET, several with commas between") from None
