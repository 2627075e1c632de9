"""Common shapes of bodies, known at a glance: what has one need not be held against its schema, which takes long.

Whatever is not known here may still be right: its schema decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_record(found: Any) -> bool:
    """Say whether this is a record of version 3 with plain data."""
    return type(found) is dict and all(name in _RECORD and _RECORD[name](part) for name, part in found.items())


def are_records(found: Any) -> bool:
    """Say whether these are records of version 2 without schemas."""
    if type(found) is not dict or found.keys() != _RECORDS or not found["records"]:
        return False
    return _are_all(found["records"], _is_v2_record)


def _are_all(rows: Any, fits: Callable[[Any], bool]) -> bool:
    return type(rows) is list and all(map(fits, rows))


def _is_v2_record(row: Any) -> bool:
    return type(row) is dict and row.keys() <= _DATA and _is_number(row.get("partition", 0))


def _is_data(part: Any) -> bool:
    return type(part) is dict and part.keys() == _TYPED and part["type"] in _TYPES


def _is_header(part: Any) -> bool:
    if type(part) is not dict or part.keys() != _HEADER:
        return False
    return type(part["name"]) is str and "\0" not in part["name"] and type(part["value"]) is str


def _is_number(part: Any) -> bool:
    return type(part) is int and 0 <= part < 2**31


_RECORDS, _DATA, _TYPED, _HEADER = {"records"}, {"key", "value", "partition"}, {"type", "data"}, {"name", "value"}
_TYPES = ("BINARY", "JSON", "STRING")
_RECORD: dict[str, Callable[[Any], bool]] = {
    "key": _is_data,
    "value": _is_data,
    "headers": lambda part: _are_all(part, _is_header),
    "partition_id": _is_number,
    "timestamp": lambda part: type(part) is str,
}
KNOWN: dict[str, Callable[[Any], bool]] = {"NewRecord": is_record, "V2Records": are_records}
