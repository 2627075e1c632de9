"""Topics as lists and forms have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from moldau.admin import TopicPartition
from moldau.admin.groups import Committed
from moldau.admin.topics import NewTopic, TopicState
from moldau.console.model.problems import Refused
from moldau.settings import SettingError, assignment

LONGEST_NAME = 249  # of a topic
LARGEST_TEXT = 64 << 10  # of a form


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic in the list. `size` is of all its replicas; None where the brokers did not tell."""

    name: str
    partitions: int
    replication: int
    internal: bool
    is_well: bool
    size: int | None
    rate: float | None = None


SORTS = {
    "name": lambda row: row.name,
    "size": lambda row: (-(row.size or 0), row.name),
    "partitions": lambda row: (-row.partitions, row.name),
    "rate": lambda row: (-(row.rate or 0.0), row.name),
}


def weighed(known: Iterable[TopicRow], sizes: Mapping[TopicPartition, Mapping[int, int]]) -> list[TopicRow]:
    """The rows with their sizes."""
    by_topic: dict[str, int] = {}
    for (topic, _), replicas in sizes.items():
        by_topic[topic] = by_topic.get(topic, 0) + sum(replicas.values())
    return [replace(row, size=by_topic.get(row.name, 0)) for row in known]


def rows(listed: Iterable[TopicState], rates: Mapping[str, float]) -> list[TopicRow]:
    """All topics, by name."""
    return [
        TopicRow(
            one.name,
            len(one.partitions),
            one.replication_factor,
            one.internal or one.name.startswith("_"),
            all(part.leader >= 0 and not part.is_under_replicated for part in one.partitions),
            None,
            rates.get(one.name),
        )
        for one in listed
    ]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A page of the list: its rows, its number from 0, how many pages and how many rows there are in all."""

    rows: Sequence[TopicRow]
    page: int
    pages: int
    found: int


def choose(known: Sequence[TopicRow], search: str, internal: bool, sort: str, page: int, most: int) -> Chosen:
    """Those whose names have all words of the search, sorted, cut into pages."""
    words = search.lower().split()
    found = [row for row in known if (internal or not row.internal) and all(word in row.name.lower() for word in words)]
    found.sort(key=SORTS.get(sort, SORTS["name"]))
    pages = max(1, -(-len(found) // most))
    page = min(max(page, 0), pages - 1)
    return Chosen(found[page * most : (page + 1) * most], page, pages, len(found))


def settings_of(text: str) -> dict[str, str]:
    """Settings as they are typed, name=value, a line each; Refused where a line is none."""
    if len(text) > LARGEST_TEXT:
        raise Refused(f"Settings of more than {LARGEST_TEXT} characters are not taken.")
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            name, value = assignment(line)
        except SettingError:
            raise Refused(f"{line!r:.80} is no setting: write name=value, one a line.") from None
        found[name] = value
    return found


def new_topic(name: str, partitions: float | None, replication: float | None, settings: str) -> NewTopic:
    """What a form says; what is left empty is as the cluster is set."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME:
        raise Refused(f"A topic needs a name of 1 to {LONGEST_NAME} characters.")
    return NewTopic(name, int(partitions or -1), int(replication or -1), settings_of(settings) or None)


@dataclass(frozen=True, slots=True)
class Reading:
    """A group that reads a topic: how far it is there in all, and in how many partitions."""

    group: str
    partitions: int
    lag: int


def readings(
    topic: str, committed: Mapping[str, Mapping[TopicPartition, Committed]], ends: Mapping[TopicPartition, int]
) -> list[Reading]:
    """The groups that have committed offsets in a topic, the furthest behind first."""
    found = []
    for group, offsets in committed.items():
        mine = {place: one.offset for place, one in offsets.items() if place[0] == topic}
        if mine:
            lag = sum(max(0, ends[place] - offset) for place, offset in mine.items() if place in ends)
            found.append(Reading(group, len(mine), lag))
    return sorted(found, key=lambda one: (-one.lag, one.group))
