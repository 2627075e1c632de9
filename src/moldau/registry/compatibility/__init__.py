"""Whether a schema may follow others: the seven levels, and messages that say where and why not.

`check` compares as the level asks, newest first, and stops at the first schema that does not fit. A message is
`{errorType:'...', description:'...'}` with the path in the schema; the version and text of the older schema and the
level follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moldau.serdes.schemas import Parsed

from . import avro_check, protobuf_check
from .differences import TooLarge
from .reserved import check_reserved

__all__ = ["LEVELS", "check", "check_reserved"]

# Level -> (the new schema reads the old one, the old one reads the new, all older schemas count or just the newest).
LEVELS = {
    "NONE": (False, False, False),
    "BACKWARD": (True, False, False),
    "BACKWARD_TRANSITIVE": (True, False, True),
    "FORWARD": (False, True, False),
    "FORWARD_TRANSITIVE": (False, True, True),
    "FULL": (True, True, False),
    "FULL_TRANSITIVE": (True, True, True),
}
LONGEST_SHOWN = 10 * 1024  # characters of an older schema in a message


def check_json(*given: Any) -> list[str]:
    from . import json_check  # loads jsonschema

    return json_check.messages(*given)


# (reader, writer, lenient, what the reader is called, what the writer is called) -> messages
Check = Callable[[Parsed, Parsed, bool, str, str], list[str]]
CHECKS: dict[str, Check] = {
    "AVRO": avro_check.messages,
    "JSON": check_json,
    "PROTOBUF": protobuf_check.messages,
}


def check(level: str, new: Parsed, previous: Sequence[Parsed], *, lenient: bool = False) -> list[str]:
    """Return what makes `new` incompatible with `previous`, which come oldest first; nothing if it is compatible.

    `lenient` is Confluent's compatibility policy LENIENT: JSON Schema properties may come and go in open models.
    """
    reads, is_read, every = LEVELS[level]
    if not (reads or is_read):
        return []
    newest_first = list(reversed(previous))
    for old in newest_first if every else newest_first[:1]:
        found = compare(new, old, reads=reads, is_read=is_read, lenient=lenient)
        if found:
            return [*found, f"{{compatibility: '{level}'}}"]
    return []


def compare(new: Parsed, old: Parsed, *, reads: bool, is_read: bool, lenient: bool) -> list[str]:
    if new.type != old.type:
        return [f"a schema of type {new.type} cannot follow one of type {old.type}"]
    compared = CHECKS[new.type]
    try:
        found = compared(old, new, lenient, "old", "new") if is_read else []
        if reads:
            found = found + compared(new, old, lenient, "new", "old")
    except (TooLarge, RecursionError):
        found = ["the schemas are too large, or nest too deeply, to be compared"]
    return [*found, *about(old)] if found else []


def about(old: Parsed) -> list[str]:
    version = [f"{{oldSchemaVersion: {old.version}}}"] if old.version is not None else []
    if len(old.text) <= LONGEST_SHOWN:
        return [*version, f"{{oldSchema: '{old.text}'}}"]
    return [*version, f"{{oldSchema: <truncated> '{old.text[:LONGEST_SHOWN]}...'}}"]
