"""Groups in lists and forms: their lag, and where to reset their offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from moldau.admin import TopicPartition, resets
from moldau.admin.groups import Lag, ListedGroup
from moldau.console.model.problems import Refused

LONGEST = 100  # characters of a field
ALL_TOPICS = "All topics"


class Place(NamedTuple):
    """A target of a reset: a hint for the text that must be typed with it, and the function that reads the text."""

    hint: str
    read: Callable[[str], resets.Wanted]


def _number(text: str, pattern: str) -> int:
    if not re.fullmatch(pattern, text):
        raise Refused(f"{text!r} is not a number." if text else "Type a number.")
    return int(text)


PLACES = {
    "The earliest record": Place("", lambda text: resets.Earliest()),
    "After the latest record": Place("", lambda text: resets.Latest()),
    "An offset": Place("Offset, 0 or more", lambda text: resets.To(_number(text, r"\d+"))),
    "A time": Place("2026-11-15T10:00:00 (UTC), or ms since 1970", lambda text: resets.At(resets.moment_ms(text))),
    "A time ago": Place("90m, 2h30m or 7d", lambda text: resets.At(resets.moment_ms(f"-{text}"))),
    "Forward or back by": Place("Records: 10, or -10", lambda text: resets.Shift(_number(text, r"[+-]?\d+"))),
}


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in the list; `lag` is None if it is unknown."""

    name: str
    type: str
    state: str
    lag: int | None


def rows(listed: Iterable[ListedGroup], lags: Mapping[str, int]) -> list[GroupRow]:
    """Return all groups, those with the largest lag first."""
    found = [GroupRow(one.id, one.type or "classic", one.state or "–", lags.get(one.id)) for one in listed]
    return sorted(found, key=lambda row: (-(row.lag or 0), row.name))


def total(lags: Iterable[Lag]) -> int | None:
    """Return the lag of all partitions; None if none is known."""
    known = [row.lag for row in lags if row.lag is not None]
    return sum(known) if known else None


def wanted(place: str, text: str) -> resets.Wanted:
    """Return what a form asks for; Refused or ResetError if it makes no sense."""
    text = text.strip()
    if len(text) > LONGEST:
        raise Refused(f"That is longer than {LONGEST} characters.")
    if place not in PLACES:
        raise Refused("Choose where to reset the offsets to.")
    return PLACES[place].read(text)


def chosen(committed: Mapping[TopicPartition, int], topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic, or of all topics; Refused if there are none."""
    places = [place for place in sorted(committed) if topic in (ALL_TOPICS, place[0])]
    if not places:
        raise Refused("The group has committed nothing there, so there is nothing to reset.")
    return places
