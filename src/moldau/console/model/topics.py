"""Topics in lists and forms."""

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
    """A topic in the list. `size` is that of all its replicas; None if it is unknown."""

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


def with_sizes(known: Iterable[TopicRow], sizes: Mapping[TopicPartition, Mapping[int, int]]) -> list[TopicRow]:
    """Return the rows with their sizes."""
    by_topic: dict[str, int] = {}
    for (topic, _), replicas in sizes.items():
        by_topic[topic] = by_topic.get(topic, 0) + sum(replicas.values())
    return [replace(row, size=by_topic.get(row.name, 0)) for row in known]


def rows(listed: Iterable[TopicState], rates: Mapping[str, float]) -> list[TopicRow]:
    """Return a row for each topic."""
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
    """A page of the list: its rows, its number from 0, and the number of all pages and of all rows."""

    rows: Sequence[TopicRow]
    page: int
    pages: int
    found: int


def choose(known: Sequence[TopicRow], search: str, internal: bool, sort: str, page: int, most: int) -> Chosen:
    """Return a page of the topics whose names contain all words of the search, sorted."""
    words = search.lower().split()
    found = [row for row in known if (internal or not row.internal) and all(word in row.name.lower() for word in words)]
    found.sort(key=SORTS.get(sort, SORTS["name"]))
    pages = max(1, -(-len(found) // most))
    page = min(max(page, 0), pages - 1)
    return Chosen(found[page * most : (page + 1) * most], page, pages, len(found))


def settings_of(text: str) -> dict[str, str]:
    """Parse settings, one name=value per line; Refused names a line that is not a setting."""
    if len(text) > LARGEST_TEXT:
        raise Refused(f"Settings may have at most {LARGEST_TEXT} characters.")
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        try:
            name, value = assignment(line)
        except SettingError:
            raise Refused(f"{line!r:.80} is not a setting: write one name=value per line.") from None
        found[name] = value
    return found


def new_topic(name: str, partitions: float | None, replication: float | None, settings: str) -> NewTopic:
    """Return the topic of a form; empty fields take the cluster's defaults."""
    name = name.strip()
    if not name or len(name) > LONGEST_NAME:
        raise Refused(f"A topic needs a name of 1 to {LONGEST_NAME} characters.")
    return NewTopic(name, int(partitions or -1), int(replication or -1), settings_of(settings) or None)


@dataclass(frozen=True, slots=True)
class Reading:
    """A group that reads a topic: its lag there, and in how many partitions."""

    group: str
    partitions: int
    lag: int


def readings(
    topic: str, committed: Mapping[str, Mapping[TopicPartition, Committed]], ends: Mapping[TopicPartition, int]
) -> list[Reading]:
    """Return the groups that have committed offsets in a topic, the largest lag first."""
    found = []
    for group, offsets in committed.items():
        mine = {place: one.offset for place, one in offsets.items() if place[0] == topic}
        if mine:
            lag = sum(max(0, ends[place] - offset) for place, offset in mine.items() if place in ends)
            found.append(Reading(group, len(mine), lag))
    return sorted(found, key=lambda one: (-one.lag, one.group))
