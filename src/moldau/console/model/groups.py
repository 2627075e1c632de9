"""Groups as lists and forms have them: lag, and where offsets shall be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.admin import TopicPartition, resets
from moldau.admin.groups import Lag, ListedGroup
from moldau.console.model.problems import Refused

LONGEST = 100  # characters of a field
ALL_TOPICS = "All topics"
# What a form offers, and what has to be typed with it.
PLACES = {
    "The first record there is": "",
    "Behind the last record": "",
    "An offset": "Offset, 0 or more",
    "A time": "2026-11-15T10:00:00 (UTC), or ms since 1970",
    "So long ago": "90m, 2h30m or 7d",
    "On or back by": "Records: 10, or -10",
}


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in the list; `lag` is None where it is not known."""

    name: str
    type: str
    state: str
    lag: int | None


def rows(listed: Iterable[ListedGroup], lags: Mapping[str, int]) -> list[GroupRow]:
    """All groups, those that are furthest behind first."""
    found = [GroupRow(one.id, one.type or "classic", one.state or "–", lags.get(one.id)) for one in listed]
    return sorted(found, key=lambda row: (-(row.lag or 0), row.name))


def total(lags: Iterable[Lag]) -> int | None:
    """The lag of all partitions; None where none is known."""
    known = [row.lag for row in lags if row.lag is not None]
    return sum(known) if known else None


def wanted(place: str, text: str) -> resets.Wanted:
    """What a form says; Refused or ResetError where it makes no sense."""
    text = text.strip()
    if len(text) > LONGEST:
        raise Refused(f"That is longer than {LONGEST} characters.")
    match list(PLACES).index(place) if place in PLACES else -1:
        case 0:
            return resets.Earliest()
        case 1:
            return resets.Latest()
        case 2 if text.isdecimal():
            return resets.To(int(text))
        case 3:
            return resets.At(resets.moment_ms(text))
        case 4:
            return resets.At(resets.moment_ms(f"-{text}"))
        case 5 if text.lstrip("+-").isdecimal():
            return resets.Shift(int(text))
    raise Refused(f"{text!r} is no number." if text else "Say where to.")


def chosen(committed: Mapping[TopicPartition, int], topic: str) -> list[TopicPartition]:
    """The partitions that a form means; Refused where there are none."""
    places = [place for place in sorted(committed) if topic in (ALL_TOPICS, place[0])]
    if not places:
        raise Refused("The group has committed nothing there, so there is nothing to set.")
    return places
