"""The levels of a plan, cut into micro-batches in any way, do as the test driver does record by record."""

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from moldau.operators.record import Produced, Raw
from moldau.operators.stores.pages import PagedBytes
from moldau.plan.page_cache import HotPages
from moldau.streams import Long, StreamsBuilder, String, TopologyTestDriver
from moldau.wire.numbers import murmur2
from tests.operators.kept import Kept
from tests.streams.judge.ours import SETTINGS, built

from .in_memory import Conveyor

EVERY_CHANGE = {"statestore.cache.max.bytes": 0, "default.key.serde": String(), "default.value.serde": String()}
Inputs = list[tuple[str, str | None, str | None, int]]


def word_count() -> StreamsBuilder:
    builder = StreamsBuilder("app")
    lines = builder.stream("left", key=String(), value=String())
    words = lines.flat_map_values(lambda line: (line or "").split())
    words.group_by(lambda key, word: word).count(store="counts").to_stream().to("out", key=String(), value=Long())
    return builder


def table_join() -> StreamsBuilder:
    builder = StreamsBuilder("app")
    left = builder.stream("left", key=String(), value=String())
    table = builder.table("right", key=String(), value=String())
    left.left_join(table, lambda value, other: f"{value}+{other}").to("out", key=String(), value=String())
    return builder


def two_levels() -> StreamsBuilder:
    builder = StreamsBuilder("app")
    table = builder.table("left", key=String(), value=String())
    counts = table.group_by(lambda key, value: (value, key), key=String(), value=String()).count(store="per-value")
    other = builder.stream("right", key=String(), value=String()).select_key(lambda key, value: value or "")
    other.join(counts, lambda value, count: f"{value}:{count}").to("out", key=String(), value=String())
    return builder


def aggregate() -> StreamsBuilder:
    builder = StreamsBuilder("app")
    stream = builder.stream("left", key=String(), value=String())
    grouped = stream.filter(lambda key, value: value is not None).group_by_key()
    table = grouped.aggregate(lambda: "", lambda key, value, seen: (seen + value)[-20:], value=String(), store="texts")
    table.map_values(str.upper).to_stream().to("out", key=String(), value=String())
    return builder


TOPOLOGIES: dict[str, Callable[[], StreamsBuilder]] = {
    made.__name__: made for made in (word_count, table_join, two_levels, aggregate)
}
INPUTS = st.lists(
    st.tuples(
        st.sampled_from(["left", "right"]),
        st.sampled_from(["a", "b", "c"]),
        st.none() | st.sampled_from(["x", "y", "x y", "z z z"]),
        st.integers(0, 20),
    ),
    max_size=25,
)


def by_the_driver(build: Callable[[], StreamsBuilder], inputs: Inputs) -> list[Produced]:
    with TopologyTestDriver(build(), EVERY_CHANGE) as driver:
        for topic, key, value, time in inputs:
            driver.pipe(topic, encoded(key), encoded(value), time)
        return list(driver.outputs.get("out", ()))


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def raws(inputs: Inputs) -> list[Raw]:
    offsets: dict[str, int] = {}
    found = []
    for topic, key, value, time in inputs:
        offset = offsets[topic] = offsets.get(topic, -1) + 1
        found.append(Raw(topic, 0, offset, encoded(key), encoded(value), time))
    return found


def essence(records: list[Produced]) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(record.key, record.value, record.timestamp) for record in records]


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(inputs=INPUTS, cuts=st.sets(st.integers(0, 25)), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_batches_of_one_record_each_do_as_the_driver(name: str, inputs: Inputs, cuts: set[int], seed: int) -> None:
    """Fed one by one, both see the same order."""
    build = TOPOLOGIES[name]
    read = {topic for topic in ("left", "right") if topic in str(build().describe())}
    inputs = [one for one in inputs if one[0] in read]
    conveyor = Conveyor(build(), dict.fromkeys(read, 1), EVERY_CHANGE, seed)
    for raw in raws(inputs):
        conveyor.batch([raw])
    assert essence(conveyor.outputs.get("out", [])) == essence(by_the_driver(build, inputs))


@pytest.mark.parametrize("name", ["word_count", "aggregate"])
@given(inputs=INPUTS, cuts=st.sets(st.integers(0, 25)), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_with_one_input_the_cut_into_batches_does_not_matter(
    name: str, inputs: Inputs, cuts: set[int], seed: int
) -> None:
    build = TOPOLOGIES[name]
    inputs = [("left", key, value, time) for _, key, value, time in inputs]
    conveyor = Conveyor(build(), {"left": 1}, EVERY_CHANGE, seed)
    records = raws(inputs)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    for first, last in itertools.pairwise(bounds):
        conveyor.batch(records[first:last])
    assert essence(conveyor.outputs.get("out", [])) == essence(by_the_driver(build, inputs))


@example(inputs=[("left", "a", None, 0), ("left", "b", "x", 1), ("right", "b", "x", 1)], size=1, seed=0)
@given(inputs=INPUTS, size=st.integers(1, 6), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_a_table_and_a_stream_read_bit_by_bit_join_as_if_read_at_once(inputs: Inputs, size: int, seed: int) -> None:
    """What is newer than what was read of the other input waits for it."""
    records = raws(inputs)
    whole = Conveyor(table_join(), {"left": 1, "right": 1}, EVERY_CHANGE)
    whole.batch(records)
    parts = Conveyor(table_join(), {"left": 1, "right": 1}, EVERY_CHANGE, seed)
    left = {topic: [raw for raw in records if raw.topic == topic] for topic in ("left", "right")}
    while any(left.values()):
        taken = {topic: waiting[:size] for topic, waiting in left.items()}
        left = {topic: waiting[size:] for topic, waiting in left.items()}
        parts.batch(
            [raw for some in taken.values() for raw in some], [(t, 0) for t, waiting in left.items() if waiting]
        )
    parts.batch([])
    assert essence(parts.outputs.get("out", [])) == essence(whole.outputs.get("out", []))


@given(inputs=INPUTS, first=st.integers(0, 99), second=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_batch_with_its_blobs_in_another_order_gives_equal_output_and_state(
    inputs: Inputs, first: int, second: int
) -> None:
    records = raws(inputs)
    one, other = (Conveyor(two_levels(), {"left": 1, "right": 1}, EVERY_CHANGE, seed) for seed in (first, second))
    for conveyor in (one, other):
        conveyor.batch(records)
    assert one.outputs == other.outputs
    assert one.written() == other.written()


@given(inputs=INPUTS)
@settings(max_examples=20, deadline=None)
def test_a_repartition_topic_with_a_name_is_written_for_others_and_not_read_back(inputs: Inputs) -> None:
    def build() -> StreamsBuilder:
        builder = StreamsBuilder("app")
        stream = builder.stream("left").filter(lambda key, value: value is not None)
        by_value = stream.select_key(lambda key, value: value)
        for name in ("shown", None):
            by_value.repartition(name=name, partitions=3).group_by_key().count(store=f"counts-{name}")
        return builder

    inputs = [("left", key, value, time) for _, key, value, time in inputs]
    conveyor = Conveyor(build(), {"left": 1}, EVERY_CHANGE)
    conveyor.batch(raws(inputs))
    with TopologyTestDriver(build(), {**EVERY_CHANGE, "application.id": "app"}) as driver:
        for topic, key, value, time in inputs:
            driver.pipe(topic, encoded(key), encoded(value), time)
        expected = driver.outputs.get("app-shown-repartition", ())
    written = conveyor.outputs.get("app-shown-repartition", [])
    assert essence(written) == essence(list(expected))
    assert [one.partition for one in written] == [murmur2(one.key or b"") % 3 for one in written]
    repartitions = [topic for topic in conveyor.outputs if topic.endswith("-repartition")]
    assert repartitions in ([], ["app-shown-repartition"])


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(inputs=INPUTS, cuts=st.lists(st.integers(1, 9), max_size=6), lost=st.sets(st.integers(0, 5)))
@settings(max_examples=25, deadline=None)
def test_pages_that_a_worker_keeps_make_no_difference_also_after_batches_that_were_lost(
    name: str, inputs: Inputs, cuts: list[int], lost: set[int]
) -> None:
    build = TOPOLOGIES[name]
    read = {topic for topic in ("left", "right") if topic in str(build().describe())}
    left = raws([one for one in inputs if one[0] in read])
    cold = Conveyor(build(), dict.fromkeys(read, 1), EVERY_CHANGE)
    warm = Conveyor(build(), dict.fromkeys(read, 1), EVERY_CHANGE, hot=HotPages())
    for number, cut in enumerate(cuts):
        some, left = left[:cut], left[cut:]
        before, outputs = warm.written(), {topic: list(out) for topic, out in warm.outputs.items()}
        if number in lost:  # another batch was tried here, and failed when its shards were done
            warm.batch([*some, *left[:1]])
            warm.put_back(before)
            warm.outputs = outputs
        for conveyor in (cold, warm):
            conveyor.batch(some)
        assert warm.written() == cold.written()
    assert warm.outputs == cold.outputs


AT_ONCE = (
    "count", "reduce", "reduce_to_null", "aggregate_to_null", "group_by_count", "hopping_count", "tumbling_to_null",
    "tumbling_grace",
)  # fmt: skip


@pytest.mark.parametrize("name", AT_ONCE)
@pytest.mark.parametrize("cache_bytes", [0, 300, 1_000_000])
def test_records_that_are_taken_in_columns_do_as_one_by_one(name: str, cache_bytes: int) -> None:
    chance, settings = random.Random(name), {**SETTINGS, "statestore.cache.max.bytes": cache_bytes}
    in_columns, in_rows = (Conveyor(built(name, {}), {"in": 2}, settings, in_rows=rows) for rows in (False, True))
    for first in range(0, 400, 50):
        batch = [
            Raw("in", chance.randrange(2), first + n, *pair(chance), 400 * first + chance.randrange(30_000))
            for n in range(50)
        ]
        in_columns.batch(batch)
        in_rows.batch(batch)
        assert in_columns.written() == in_rows.written()
        if cache_bytes != 300:  # else it hangs on when there is no more room
            assert in_columns.outputs == in_rows.outputs


def pair(chance: random.Random) -> tuple[bytes | None, bytes | None]:
    return chance.choice([b"a", b"b", b"c", b"d", b"e", None]), chance.choice([b"a", b"", b"ab", b"x1", None])


def test_shards_that_were_away_for_longest_are_forgotten_first() -> None:
    pages = HotPages(most_bytes=130)
    stores = {name: PagedBytes(Kept()) for name in "abc"}
    for name, store in stores.items():
        store.put(name.encode() * 10, bytes(30))
        pages.keep(name, "v", {"store": store})
    assert [name in pages for name in stores] == [False, True, True]
    assert pages.take("b", "another version") == {}
    assert pages.take("c", "v") == {"store": stores["c"]}
    assert "c" not in pages
