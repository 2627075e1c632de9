"""Resets of a group's offsets: `plan` computes the new offset of each partition, `apply` commits them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from moldau.admin import TopicPartition, groups, offsets
from moldau.client import Client

FIELDS_OF_ONE, FIELDS_OF_MANY = 3, 4  # topic,partition,offset with or without the group in front
UNITS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604_800}

_ISO = re.compile(r"(-)?P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)
_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first record."""


@dataclass(frozen=True, slots=True)
class Latest:
    """After the last record."""


@dataclass(frozen=True, slots=True)
class Current:
    """The committed offset; the end where nothing is committed."""


@dataclass(frozen=True, slots=True)
class At:
    """The first record of this time in ms or later; the end where there is none."""

    time_ms: int


@dataclass(frozen=True, slots=True)
class To:
    """This offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Shift:
    """So many records after the committed offset, or before it."""

    by: int


@dataclass(frozen=True, slots=True)
class Given:
    """An offset for each partition, from a file."""

    offsets: Mapping[TopicPartition, int]


Wanted = Earliest | Latest | Current | At | To | Shift | Given


class ResetError(ValueError):
    """A reset that is not possible: one sentence."""


def plan(
    client: Client, wanted: Wanted, places: Iterable[TopicPartition], committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the new offset of each partition, always within the partition."""
    asked = list(wanted.offsets) if isinstance(wanted, Given) else list(places)
    bounds = offsets.ends(client, asked)
    match wanted:
        case Earliest():
            return {place: first for place, (first, _) in bounds.items()}
        case Latest():
            return {place: last for place, (_, last) in bounds.items()}
        case Current():
            return {place: committed.get(place, last) for place, (_, last) in bounds.items()}
        case At(time_ms=time):
            found = offsets.one_time(client, asked, time)
            return {place: found[place] if found[place] >= 0 else bounds[place][1] for place in asked}
        case To(offset=offset):
            raw = dict.fromkeys(asked, offset)
        case Given(offsets=named):
            raw = dict(named)
        case Shift(by=by):
            unknown = [f"{topic}-{part}" for topic, part in asked if (topic, part) not in committed]
            if unknown:
                raise ResetError(f"Nothing is committed in {', '.join(unknown)}, so there is nothing to shift from.")
            raw = {place: committed[place] + by for place in asked}
    return {place: min(max(offset, bounds[place][0]), bounds[place][1]) for place, offset in raw.items()}


def apply(client: Client, name: str, new: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group; ResetError while it has members."""
    found = next((one for one in groups.listed(client) if one.id == name), None)
    if found is not None:
        described = groups.described(client, name, found.type)
        if described.members:
            clients = ", ".join(sorted({member.client_id for member in described.members}))
            raise ResetError(f"Group {name} is {described.state.lower()}: stop its members first ({clients}).")
    groups.commit(client, name, new)


def from_csv(text: str, group: str) -> dict[TopicPartition, int]:
    """Read lines `topic,partition,offset`, or with the group in front, as Kafka's tool exports them."""
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        fields = [field.strip() for field in row]
        if not any(fields):
            continue
        if len(fields) == FIELDS_OF_MANY:
            if fields[0] != group:
                continue
            fields = fields[1:]
        if len(fields) != FIELDS_OF_ONE or not (fields[1].isdecimal() and fields[2].isdecimal()):
            raise ResetError(f"Line {number} is not topic,partition,offset: {','.join(row)[:80]}")
        found[fields[0], int(fields[1])] = int(fields[2])
    return found


def to_csv(group: str | None, new: Mapping[TopicPartition, int]) -> str:
    """Write a plan as lines that `from_csv` reads."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    for (topic, partition), offset in new.items():
        writer.writerow([*([group] if group else []), topic, partition, offset])
    return out.getvalue()


def duration(text: str) -> timedelta:
    """Parse `PT1H30M` as Kafka's tools take it, or `90m`, `2h30m`, `7d`."""
    match = _ISO.fullmatch(text)
    if match and any(match.groups()[1:]):
        sign = -1 if match[1] else 1
        weeks, days, hours, minutes = (int(found or 0) for found in match.groups()[1:5])
        return sign * timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=float(match[6] or 0))
    parts = _SHORT.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        return timedelta(seconds=sum(float(number) * UNITS[unit] for number, unit in parts))
    raise ResetError(f"{text!r} is no duration: write 90m, 2h30m or 7d, or PT1H30M.")


def moment_ms(text: str, now: datetime | None = None) -> int:
    """Parse a time to ms since 1970: `2026-11-15T10:00:00` (UTC by default), ms, or `-1h` before now."""
    if text.isdecimal():
        return int(text)
    if text == "now" or text.startswith("-"):
        present = now or datetime.now(UTC)
        return _ms(present - (duration(text[1:]) if text != "now" else timedelta()))
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ResetError(
            f"{text!r} is no time: write 2026-11-15T10:00:00, milliseconds since 1970, or -1h for an hour ago."
        ) from None
    return _ms(found if found.tzinfo else found.replace(tzinfo=UTC))


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
