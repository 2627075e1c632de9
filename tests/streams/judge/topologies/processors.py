"""The Processor API: stores of every kind, punctuators, headers, children by name, global stores, plain topologies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.operators.stores.key_value import key_value, timestamped_key_value
from moldau.operators.stores.spec import StoreSpec
from moldau.streams import Record, StreamsBuilder, Topology
from tests.streams.judge.functions import both, even, text
from tests.streams.judge.topologies.sources import NUMBER, TEXT, Build, left, stream


class Texts:
    """A processor of texts."""

    context: Any

    def init(self, context: Any) -> None:
        self.context = context

    def send(self, like: Record, value: str) -> None:
        self.context.forward(like.with_value(value))


class Counter(Texts):
    """Counts in a store; what is empty deletes, "a" asks for all that is stored, from both ends."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store = self.context.store("counts")
        before = store.get(record.key)
        store.put(record.key, None if record.value == "" else (before or 0) + 1)
        self.send(record, both(before, store.get(record.key)))
        if record.value == "a":
            self.send(record, rows(store.all()) + rows(store.all(reverse=True)))
            self.send(record, rows(store.range("b", "c")) + rows(store.range(None, "b", reverse=True)))
            self.send(record, both(store.put_if_absent("z", 7), store.delete("y")))


def rows(found: Iterable[tuple[str, int]]) -> str:
    return "[" + "".join(f"{key}{value}" for key, value in found) + "]"


class Labels(Texts):
    """What a record carries: its metadata, stream time, and one header more."""

    def process(self, record: Record) -> None:
        place = self.context.metadata
        where = f"{place.topic}{place.partition}{place.offset}" if place else "nowhere"
        time = f"@{self.context.stream_time}@{self.context.system_time}"
        headers = (*record.headers, ("label", text(record.key).encode()))
        self.context.forward(Record(record.key, where + time, record.timestamp + 1, headers))


class FixedLabels(Texts):
    def process(self, record: Record) -> None:
        if even(record.value):
            self.send(record, f"{text(record.key)}1")
            self.send(record, f"{text(record.key)}2")


class Punctual(Texts):
    """Tells at each punctuation what was counted since; where it is more than three, that was the last one."""

    kind = "stream_time"

    def init(self, context: Any) -> None:
        super().init(context)
        self.schedule = context.schedule(10_000, self.kind, self.tell)

    def tell(self, time: int) -> None:
        store = self.context.store("counts")
        found = list(store.all())
        self.context.forward(Record("tick", str(self.context.stream_time), time))
        for key, count in found:
            self.context.forward(Record(key, str(count), time))
            store.delete(key)
            if count > 3:
                self.schedule.cancel()

    def process(self, record: Record) -> None:
        store = self.context.store("counts")
        if record.key is not None:
            store.put(record.key, (store.get(record.key) or 0) + 1)


class WallPunctual(Punctual):
    kind = "wall_clock"


class Latest(Texts):
    """Keeps the latest by timestamp in a timestamped store."""

    def process(self, record: Record) -> None:
        if record.key is None:
            return
        store = self.context.store("latest")
        before = store.get(record.key)
        if before is None or before.timestamp <= record.timestamp:
            store.put(record.key, record.value, record.timestamp)
        self.send(record, "~" if before is None else f"{before.value}@{before.timestamp}")


class Forker(Texts):
    """The key a goes to one child, the rest to both."""

    def process(self, record: Record) -> None:
        self.context.forward(record, "left-sink" if record.key == "a" else None)


class Asker(Texts):
    """Looks the key up in a global store."""

    def process(self, record: Record) -> None:
        found = None if record.key is None else self.context.store("lengths").get(record.key)
        self.send(record, both(record.value, found))


class Lengths(Texts):
    """Fills a global store with something else than what the topic holds."""

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.context.store("lengths").put(record.key, None if record.value is None else len(record.value))


def bringing(store: StoreSpec, processor: type) -> type:
    """A processor that brings its own store."""
    return type(processor.__name__, (processor,), {"stores": [store]})


COUNTS = key_value("counts", TEXT, NUMBER)


def process_store(b: StreamsBuilder) -> None:
    b.add_state_store(COUNTS)
    stream(b).process(Counter, stores=["counts"]).to("out")


def process_with(b: StreamsBuilder, store: StoreSpec, processor: type) -> None:
    stream(b).process(bringing(store, processor)).to("out")


def global_store(b: StreamsBuilder) -> None:
    b.add_global_store(key_value("lengths", TEXT, NUMBER, logged=False), "right", Lengths, key=TEXT, value=TEXT)
    left(b).process(Asker).to("out")


def topology_forks(b: StreamsBuilder) -> Topology:
    return (
        Topology()
        .add_source("source", "in")
        .add_processor("fork", Forker, "source")
        .add_sink("left-sink", "left-out", "fork")
        .add_sink("right-sink", "right-out", "fork")
    )


def topology_store(b: StreamsBuilder) -> Topology:
    return (
        Topology()
        .add_source("one", "left")
        .add_source("two", "right")
        .add_processor("count", Counter, ["one", "two"])
        .add_state_store(COUNTS, "count")
        .add_processor("label", Labels, "count")
        .add_sink("sink", "out", "label")
    )


def topology_read_only(b: StreamsBuilder) -> Topology:
    lengths = key_value("lengths", TEXT, NUMBER)
    return (
        Topology()
        .add_read_only_state_store(lengths, "filling", "right", "fill", Lengths, key=TEXT, value=TEXT)
        .add_source("asking", "left")
        .add_processor("ask", Asker, "asking")
        .connect_processor_and_state_stores("ask", "lengths")
        .add_sink("sink", "out", "ask")
    )


TOPOLOGIES: dict[str, Build] = {
    "process_store": process_store,
    "process_connected": lambda b: stream(b).process(bringing(COUNTS, Counter), name="counter").to("out"),
    "process_labels": lambda b: stream(b).map_values(lambda v: text(v) + "!").process(Labels).to("out"),
    "process_values": lambda b: stream(b).process_values(FixedLabels).group_by_key().count().to_stream().to("out"),
    "process_group": lambda b: stream(b).process(Labels).group_by_key().count().to_stream().to("out"),
    "process_latest": lambda b: process_with(b, timestamped_key_value("latest", TEXT, TEXT), Latest),
    "punctuate_stream_time": lambda b: process_with(b, COUNTS, Punctual),
    "punctuate_wall_clock": lambda b: process_with(b, COUNTS, WallPunctual),
    "topology_forks": topology_forks,
    "topology_store": topology_store,
    "topology_read_only": topology_read_only,
    "global_store": global_store,
}
