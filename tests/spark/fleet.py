"""Many flows over one feed, and a judge of their outputs: for the programs that deploy them under load.

A feed (`chaos.Feed`) writes numbers to the topics `in` and `right`, with the key `number % KEYS`. Each flow has an
output of its own, in which the values of a key must be 1, 2, 3, ... by the count of their kind: one that is lost,
doubled, out of order or made from older state is a wrong one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from moldau.client import Client
from moldau.flows import deploying
from moldau.flows.catalog import Catalog
from moldau.flows.definition import Definition
from moldau.flows.lanes import LANE, OWN
from moldau.flows.loading import builder_of
from tests.spark.chaos import KEYS, PARTITIONS

INPUTS = ("in", "right")
APP = """
from pathlib import Path

from moldau.streams import JoinWindows, Long, StreamsBuilder, String

BROKEN = Path({broken!r})
VERSION = {version!r}


def check(value):
    if BROKEN.exists():
        raise ValueError("broken on purpose")
    return value


text = {{"key": String(), "value": String()}}
builder = StreamsBuilder({name!r}, {{"statestore.cache.max.bytes": 0}})
source = builder.stream("in", **text)
{body}.to({target!r}, **text)
"""
DAY_MS = 24 * 60 * 60 * 1000


def itself(number: int) -> str:
    return str(number % KEYS)


def by_value(text: str) -> int:
    """The how manieth of its key a number is."""
    return int(text) // KEYS + 1


@dataclass(frozen=True)
class Kind:
    """An operator: how it is written, the key of a number in its output, and the count that a value says."""

    body: str
    key: Callable[[int], str] = itself
    count: Callable[[str], int] = int


KINDS = {
    "map": Kind("source.map_values(check)", count=by_value),
    "count": Kind("source.group_by_key().count(store='s').to_stream().map_values(lambda n: str(check(n)))"),
    "filter": Kind("source.filter(lambda key, value: check(True))", count=by_value),
    "aggregate": Kind(
        "source.group_by_key().aggregate(lambda: 0, lambda key, value, n: check(n + 1), store='s', value=Long())"
        ".to_stream().map_values(str)"
    ),
    "other key": Kind(
        "source.select_key(lambda key, value: str(check(int(key) % 7))).group_by_key(**text).count(store='s')"
        ".to_stream().map_values(str)",
        key=lambda number: str(number % KEYS % 7),
    ),
    "flat map": Kind("source.flat_map_values(lambda value: [check(value)])", count=by_value),
    "table": Kind("source.to_table(store='s').to_stream().map_values(check)", count=by_value),
    "join": Kind(
        "source.join(builder.stream('right', **text), lambda one, other: check(one), "
        f"window=JoinWindows.of(0, grace={DAY_MS}))",
        count=by_value,
    ),
    "two levels": Kind(
        "source.group_by_key().count(store='s').to_stream().map(lambda key, n: (str(int(key) % 5), str(n)))"
        ".group_by_key(**text).count(store='t').to_stream().map_values(lambda n: str(check(n)))",
        key=lambda number: str(number % KEYS % 5),
    ),
}


@dataclass(frozen=True)
class Flow:
    """A flow of the fleet."""

    name: str
    kind: str
    own: bool = False  # whether it has a lane to itself

    @property
    def target(self) -> str:
        return f"out-{self.name}"

    def broken(self, folder: Path) -> Path:
        """While this file is there, its code raises."""
        return folder / f"{self.name}.broken"


def fleet(count: int, first: int = 0) -> list[Flow]:
    """So many flows of all kinds; each tenth has a lane to itself."""
    names = list(KINDS)
    return [Flow(f"f{n}", names[n % len(names)], own=n % 10 == 9) for n in range(first, first + count)]


def written(flow: Flow, folder: Path, version: str = "1") -> Path:
    """Write the file of a flow."""
    home = folder / f"{flow.name}-{version}"
    home.mkdir(parents=True, exist_ok=True)
    given = {"name": flow.name, "version": version, "broken": str(flow.broken(folder)), "target": flow.target}
    (home / "app.py").write_text(APP.format(body=KINDS[flow.kind].body, **given))
    return home / "app.py"


def deploy(catalog: Catalog, client: Client, flow: Flow, folder: Path, version: str = "1") -> Definition:
    """Deploy or upgrade a flow as the command does."""
    file = written(flow, folder, version)
    settings = {LANE: OWN} if flow.own else {}
    place = {"bootstrap.servers": str(client.config["bootstrap.servers"])}
    made = deploying.packed(builder_of(str(file)).build(), {**place, **settings}, file)
    known = catalog.flows.get(flow.name)
    new, kept = deploying.defined(made, settings, client, known)
    deploying.refuse_loss(flow.name, kept)
    return deploying.deploy(catalog, client, replace(new, rollback=False), made.data)


class Tally:
    """What flows have written so far."""

    def __init__(self) -> None:
        self.last: dict[str, Counter[str]] = {}  # counts of keys, by flow
        self.wrong: Counter[str] = Counter()  # counts that are not the one before and one more, by flow

    def note(self, flow: Flow, key: str, value: str) -> None:
        last, count = self.last.setdefault(flow.name, Counter()), KINDS[flow.kind].count(value)
        self.wrong[flow.name] += count != last[key] + 1
        last[key] = count

    def written(self, flow: Flow) -> int:
        return self.last.get(flow.name, Counter()).total()

    def mistakes(self, flows: Iterable[Flow], fed: int) -> dict[str, str]:
        """What is wrong with flows that should have written all that so many numbers make."""
        found: dict[str, str] = {}
        for flow in flows:
            wanted = Counter(KINDS[flow.kind].key(number) for number in range(fed))
            if self.wrong[flow.name] or self.last.get(flow.name) != wanted:
                missing = fed - self.written(flow)
                found[flow.name] = f"{flow.kind}: {self.wrong[flow.name]} wrong, {missing} missing"
        return found


class Judge:
    """Reads the outputs of flows, committed records only."""

    def __init__(self, bootstrap: str, flows: Iterable[Flow]) -> None:
        self.flows: dict[str, Flow] = {}
        self.tally = Tally()
        settings = {"group.id": "judge", "isolation.level": "read_committed", "log_level": 0}
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "enable.auto.commit": False, **settings}
        )
        self.add(flows)

    def add(self, flows: Iterable[Flow]) -> None:
        """Judge more flows, whose output topics are there."""
        for flow in flows:
            self.flows[flow.target] = flow
            places = [TopicPartition(flow.target, number, 0) for number in range(PARTITIONS)]
            self._consumer.incremental_assign(places)

    def read(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for message in self._consumer.consume(1000, 0.2):
                if not message.error():
                    key, value = ((data or b"").decode() for data in (message.key(), message.value()))
                    self.tally.note(self.flows[message.topic() or ""], key, value)

    def until_all(self, flows: Sequence[Flow], fed: int, longest_s: float, meanwhile: Callable[[], None]) -> None:
        """Read until flows have written all, or for so long."""
        until = time.monotonic() + longest_s
        while any(self.tally.written(flow) < fed for flow in flows) and time.monotonic() < until:
            meanwhile()
            self.read(1.0)

    def close(self) -> None:
        self._consumer.close()
