"""The Processor API: processors with stores and punctuators, in the DSL and in topologies built node by node."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from moldau.streams import (
    Context,
    Long,
    Record,
    StreamsBuilder,
    StreamsError,
    String,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from moldau.streams.stores import in_memory_key_value_store, persistent_timestamped_key_value_store

TEXTS = {"default.key.serde": "string", "default.value.serde": "string"}


class Counting:
    """Counts in a store, forwards each count, and the sum when a minute of stream time is over."""

    def init(self, context: Context) -> None:
        self.context = context
        self.store = context.store("counts")
        context.schedule(60_000, "stream_time", self.sum_up)

    def process(self, record: Record) -> None:
        count = (self.store.get(record.key) or 0) + 1
        self.store.put(record.key, count)
        self.context.forward(record.with_value(count))

    def sum_up(self, timestamp: int) -> None:
        assert self.context.metadata is None
        total = sum(count for _, count in self.store.all())
        self.context.forward(Record("sum", total, timestamp))


def counting() -> StreamsBuilder:
    builder = StreamsBuilder("app", TEXTS)
    builder.add_state_store(in_memory_key_value_store("counts", key=String(), value=Long()))
    builder.stream("in").process(Counting, stores=["counts"]).to("out", value=Long())
    return builder


def test_a_processor_counts_and_sums_up_by_stream_time() -> None:
    with TopologyTestDriver(counting()) as driver:
        topic = driver.create_input_topic("in")
        for key, timestamp in (("a", 10), ("a", 59_999), ("b", 60_000), ("b", 200_000)):
            topic.pipe_input(key, "x", timestamp)
        records = driver.create_output_topic("out").read_records_to_list()
        changelog = driver.create_output_topic("app-counts-changelog", String(), Long()).read_records_to_list()
    assert [(r.key, r.value, r.timestamp) for r in records] == [
        ("a", 1, 10),
        ("sum", 1, 10),
        ("a", 2, 59_999),
        ("b", 1, 60_000),
        ("sum", 3, 60_000),
        ("b", 2, 200_000),
        ("sum", 4, 200_000),
    ]
    assert [(r.key, r.value, r.timestamp) for r in changelog][-1] == ("b", 2, 200_000)


def test_wall_clock_punctuators_go_by_the_drivers_clock_and_can_be_cancelled() -> None:
    class Ticking:
        def init(self, context: Context) -> None:
            self.context, self.ticks = context, 0
            self.handle = context.schedule(1_000, "wall_clock", self.tick)

        def process(self, record: Record) -> None:
            return

        def tick(self, now: int) -> None:
            self.ticks += 1
            self.context.forward(Record("tick", str(now), now))
            if self.ticks == 2:
                self.handle.cancel()

    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").process(Ticking).to("out")
    with TopologyTestDriver(builder, initial_wall_clock_ms=500) as driver:
        for _ in range(5):
            driver.advance_wall_clock_time("700ms")
        assert driver.create_output_topic("out").read_values_to_list() == ["1900", "2600"]


def test_a_processor_sees_where_the_record_came_from() -> None:
    seen: list[Any] = []

    class Looking:
        def init(self, context: Context) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            seen.append((self.context.metadata, self.context.stream_time, self.context.application_id))

    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").process(Looking)
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("k", "a"), ("k", "b")], start=5)
    assert [(m.topic, m.partition, m.offset, time, app) for m, time, app in seen] == [
        ("in", 0, 0, 5, "app"),
        ("in", 0, 1, 5, "app"),
    ]


def test_process_values_must_keep_the_key() -> None:
    class Renaming:
        def init(self, context: Context) -> None:
            self.context = context

        def process(self, record: Record) -> None:
            self.context.forward(record.with_key("other") if record.value == "x" else record.with_value("same"))

    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").process_values(Renaming).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in")
        topic.pipe_input("k", "v")
        assert driver.create_output_topic("out").read_key_value() == ("k", "same")
        with pytest.raises(StreamsError, match=r"process_values must keep the key; use process\(\)"):
            topic.pipe_input("k", "x")


def test_a_processor_has_only_the_stores_that_it_names() -> None:
    class Curious:
        def init(self, context: Context) -> None:
            context.store("s")

        def process(self, record: Record) -> None:
            return

    builder = StreamsBuilder("app", TEXTS)
    builder.add_state_store(in_memory_key_value_store("s"))
    builder.stream("in").process(Curious, name="curious")
    builder.stream("other").process(Counting, stores=["s"])
    with pytest.raises(TopologyError, match=r"curious has no access to the store 's': it needs stores=\['s'\]"):
        TopologyTestDriver(builder)


def test_an_unknown_store_and_an_instance_are_refused_when_the_topology_is_built() -> None:
    builder = StreamsBuilder("app", TEXTS)
    with pytest.raises(TopologyError, match="give its class, or lambda: Counting"):
        builder.stream("in").process(Counting())
    builder.stream("in").process(Counting, stores=["nowhere"], name="p")
    with pytest.raises(TopologyError, match="p uses the store 'nowhere', which is not there"):
        builder.build()


class Splitting:
    """Sends each record to the child whose name is its value."""

    def init(self, context: Context) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.forward(record, record.value)


def test_a_topology_node_by_node() -> None:
    topology = Topology("app")
    topology.add_source("source", "in", key=String(), value=String())
    topology.add_processor("split", Splitting, "source")
    topology.add_sink("a", "out-a", "split", key=String(), value=String())
    topology.add_sink("b", "out-b", "split", key=String(), value=String())
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_value_list(["a", "b", "b"])
        assert driver.create_output_topic("out-a").queue_size == 1
        assert driver.create_output_topic("out-b").queue_size == 2
        with pytest.raises(StreamsError, match="split has no child 'c': forward to one of a, b"):
            driver.create_input_topic("in").pipe_input("c")
    assert topology.describe() == (
        "Topologies:\n   Sub-topology: 0\n"
        "    Source: source (topics: [in])\n      --> split\n"
        "    Processor: split (stores: [])\n      --> a, b\n      <-- source\n"
        "    Sink: a (topic: out-a)\n      <-- split\n"
        "    Sink: b (topic: out-b)\n      <-- split\n\n"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: t.add_source("s", "other"), "there is a node 's' already"),
        (lambda t: t.add_source("s2", "in"), "s2 reads the topic in, which s reads already"),
        (lambda t: t.add_source("s2"), "the source s2 reads nothing"),
        (lambda t: t.add_source("s2", "x", reset="never"), "reset= of the source s2 must be one of earliest"),
        (lambda t: t.add_sink("k", "out", "nobody"), "k has the parent 'nobody', which is not there"),
        (lambda t: t.add_sink("k", "out", []), "k has no parent"),
        (lambda t: t.add_sink("k", "no spaces", "s"), "the topic of the sink k is 'no spaces'"),
        (lambda t: t.add_sink("k", "out", "s").add_sink("l", "out", "k"), "'k', which is a sink"),
        (lambda t: t.connect_processor_and_state_stores("s", "x"), "there is no processor 's'"),
        (lambda t: t.add_source("x", "x", timestamp="Nonsense"), "timestamp= of x is 'Nonsense'"),
    ],
)
def test_a_mistake_in_a_topology_is_refused_with_a_sentence(wrong: Any, message: str) -> None:
    topology = Topology("app").add_source("s", "in")
    with pytest.raises(TopologyError, match=message):
        wrong(topology)


def test_a_global_store_is_filled_by_its_processor_and_read_by_all() -> None:
    class Filling:
        def init(self, context: Context) -> None:
            self.store = context.store("g")

        def process(self, record: Record) -> None:
            self.store.put(record.key, record.value.upper())

    class Reading:
        def init(self, context: Context) -> None:
            self.context, self.store = context, context.store("g")

        def process(self, record: Record) -> None:
            self.context.forward(record.with_value(self.store.get(record.value) or "?"))

    builder = StreamsBuilder("app", TEXTS)
    builder.add_global_store(in_memory_key_value_store("g"), "globals", Filling)
    builder.stream("in").process(Reading).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("globals").pipe_input("x", "found")
        driver.create_input_topic("in").pipe_value_list(["x", "y"])
        assert driver.create_output_topic("out").read_values_to_list() == ["FOUND", "?"]


def test_stores_have_ranges_and_prefixes_in_the_order_of_bytes() -> None:
    builder = StreamsBuilder("app", TEXTS)
    builder.add_state_store(in_memory_key_value_store("plain"))
    builder.add_state_store(persistent_timestamped_key_value_store("timed"))

    class Both:
        def init(self, context: Context) -> None:
            self.plain, self.timed = context.store("plain"), context.store("timed")

        def process(self, record: Record) -> None:
            self.plain.put(record.key, record.value)
            self.timed.put(record.key, record.value, record.timestamp)

    builder.stream("in").process(Both, stores=["plain", "timed"])
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list([(key, key) for key in ("b", "ab", "a", "c")], start=7)
        plain, timed = driver.store("plain"), driver.store("timed")
        assert [key for key, _ in plain.range("ab", "b")] == ["ab", "b"]
        assert [key for key, _ in plain.all(reverse=True)] == ["c", "b", "ab", "a"]
        assert [key for key, _ in plain.prefix_scan("a")] == ["a", "ab"]
        assert [(key, found.timestamp) for key, found in timed.prefix_scan("b")] == [("b", 7)]
        assert plain.put_if_absent("a", "z") == "a" and plain.put_if_absent("z", "z") is None
        assert plain.delete("z") == "z" and plain.get("z") is None
        assert timed.delete("a") == ("a", 7) and timed.get("a") is None
        assert (plain.approximate_count(), timed.approximate_count()) == (4, 3)
        with pytest.raises(ValueError, match="the key of an entry of the store plain must not be None"):
            plain.put(None, "x")


@pytest.mark.parametrize("kind", ["wall_clock", "wall_clock_time"])
@pytest.mark.parametrize("interval", ["10s", 10_000, timedelta(seconds=10)])
def test_the_interval_of_a_punctuator_is_a_duration(kind: Any, interval: Any) -> None:
    told: list[int] = []

    class Told:
        def init(self, context: Context) -> None:
            context.schedule(interval, kind, told.append)

        def process(self, record: Record) -> None:
            return

    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").process(Told)
    with TopologyTestDriver(builder) as driver:
        driver.advance_wall_clock_time("25s")
        driver.advance_wall_clock_time("5s")
    assert told == [25_000, 30_000]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ((0, "stream_time", print), "interval of a punctuator must be at least 1 ms, not 0"),
        (("soon", "stream_time", print), "the interval of a punctuator is 'soon': write it as"),
        (("1s", "sometimes", print), "goes by 'stream_time' or by 'wall_clock', not by 'sometimes'"),
        (("1s", "stream_time", None), "a punctuator is a function of the time, not None"),
    ],
)
def test_a_wrong_punctuator_is_told(wrong: tuple[Any, Any, Any], sentence: str) -> None:
    class Wrong:
        def init(self, context: Context) -> None:
            context.schedule(*wrong)

        def process(self, record: Record) -> None:
            return

    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").process(Wrong, name="wrong")
    with pytest.raises(ValueError, match=f"wrong: .*{sentence}"):
        TopologyTestDriver(builder)
