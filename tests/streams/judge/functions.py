"""What the topologies are made of: small functions and spans of time. java/Functions.java says the same in Java."""

from __future__ import annotations

from typing import Any

SIZE, ADVANCE, GRACE, ZERO = "10 seconds", "4 seconds", "5 seconds", 0

SEEN: list[str] = []  # what foreach and its like saw: part of the answer


def text(value: Any) -> str:
    return "~" if value is None else str(value)


def both(left: Any, right: Any) -> str:
    return f"({text(left)}+{text(right)})"


def three(key: Any, left: Any, right: Any) -> str:
    return text(key) + both(left, right)


def first(value: str | None) -> str | None:
    return value[0] if value else None


def even(value: str | None) -> bool:
    return value is not None and len(value) % 2 == 0


def add(key: str, value: str | None, aggregate: str) -> str:
    """Joins in order, so that the order of the calls is seen."""
    return aggregate + text(value)


def subtract(key: str | None, value: str | None, aggregate: str) -> str:
    """The first place where the value stands is taken out."""
    before, found, after = aggregate.partition(text(value)) if text(value) else ("", "", aggregate)
    return before + after if found or not text(value) else aggregate + "?"


def joined(aggregate: str, value: str | None) -> str:
    """As add, for reducers."""
    return aggregate + text(value)


def listed(aggregate: str, value: str) -> str:
    return f"{aggregate},{value}"


def see(key: Any, value: Any) -> None:
    SEEN.append(both(key, value))
