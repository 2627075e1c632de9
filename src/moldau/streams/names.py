"""Names of nodes, stores and topics, by Kafka's rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from moldau.operators.context import TopologyError

LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
MAX_LENGTH = 249


def checked_name(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise TopologyError(f"{what} must be a text, not {name!r}")
    if name in ("", ".", "..") or len(name) > MAX_LENGTH or not LEGAL.fullmatch(name):
        raise TopologyError(
            f"{what} is {name[:60]!r}: it must have 1 to {MAX_LENGTH} of the characters a-z A-Z 0-9 . _ - "
            "and must not be '.' or '..'"
        )
    return name


def listed(given: Any, what: str) -> tuple[Any, ...]:
    """Return a tuple of the given names, or of one name."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        return tuple(given)
    raise TopologyError(f"{what} must be a name, or a list of names, not {given!r}")
