"""The order of a map: that of a Java HashMap, which results and texts of ksqlDB show."""

from __future__ import annotations

from typing import Any

from moldau.wire.numbers import hash_order, java_hash

WORD = 0xFFFFFFFF


def _hash(key: Any) -> int:
    if isinstance(key, str):
        return java_hash(key)
    if isinstance(key, bool):
        return 1231 if key else 1237
    if isinstance(key, int):
        return key & WORD if -(1 << 31) <= key < 1 << 31 else (key ^ key >> 32) & WORD
    return 0


def items(map: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the entries of a map in Java's order, of a HashMap made for just as many."""
    if len(map) < 2:
        return list(map.items())
    return [(key, map[key]) for key in hash_order(map, _hash, len(map))]
