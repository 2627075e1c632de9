"""Batches in columns do what records do one by one: all topologies of the judge."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.operators.coders import short_writer
from moldau.operators.errors import StreamsError
from moldau.operators.record import Raw, Record
from moldau.operators.windowed import Windowed
from moldau.operators.windowed_serdes import TimeWindowedSerde
from moldau.plan.columns import InColumns, written
from moldau.plan.input_order import Inbox, in_order, runs
from moldau.serdes.primitive import BYTES, LONG, STRING, Plain
from moldau.streams import Json, Long, StreamsBuilder, String, TimeWindows
from tests.streams.judge.topologies import TOPOLOGIES

from .in_memory import Conveyor
from .test_restoring import batches, conveyor

PARTITIONS = 2
TEXTS = {"default.key.serde": String(), "default.value.serde": String()}
IN_COLUMNS = {
    "count", "reduce", "group_by_count", "tumbling_grace", "hopping_count", "stream_table_join",
    "stream_table_left_join", "table_join", "table_filter", "map", "flat_map",
}  # fmt: skip


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether batches were taken in columns."""
    found: list[bool] = []
    take: Callable[..., object] = InColumns.take

    def watched(self: InColumns, *given: Any) -> object:
        done = take(self, *given)
        found.append(done is not None)
        return done

    monkeypatch.setattr(InColumns, "take", watched)
    return found


@pytest.mark.parametrize("name", sorted(TOPOLOGIES.keys() - {"pattern", "foreign_self_join"}))
def test_a_batch_in_columns_does_what_its_records_do_one_by_one(name: str, taken: list[bool]) -> None:
    for cache_bytes in (0, 1_000_000):
        chance, settings = random.Random(f"{name} {cache_bytes}"), {"statestore.cache.max.bytes": cache_bytes}
        in_columns, in_rows = (conveyor(name, settings, PARTITIONS, in_rows=rows) for rows in (False, True))
        schedule = in_rows.conveyed.schedule
        topics = sorted(topic for topic in schedule.reader if topic not in schedule.internal)
        places = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
        for batch in batches(topics, chance, PARTITIONS):
            unread = [one for one in places if chance.random() < 0.2]
            in_columns.batch(batch, unread)
            in_rows.batch(batch, unread)
            assert in_columns.written() == in_rows.written()
        assert in_columns.outputs == in_rows.outputs
    assert any(taken) or name not in IN_COLUMNS


TIMES = st.lists(st.integers(0, 30), max_size=12)


@given(st.lists(st.tuples(TIMES, st.integers(-1, 20), st.booleans()), min_size=1, max_size=3))
def test_runs_are_the_order_of_single_records(given: list[tuple[list[int], int, bool]]) -> None:
    inboxes: dict[str, Inbox] = {}
    for place, (times, latest, _) in enumerate(given):
        inbox = inboxes[str(place)] = Inbox(lambda raw, time: Record(None, None, raw.timestamp), latest)
        inbox.waiting.extend(Raw(str(place), 0, offset, None, None, time) for offset, time in enumerate(times))
    unread = frozenset(str(place) for place, (_, _, more) in enumerate(given) if more)
    expected = [(raw.topic, raw.offset) for raw, _ in in_order(inboxes, unread)]
    latest = [time for _, time, _ in given]
    found = runs([np.array(times, np.int64) for times, _, _ in given], latest, [more for _, _, more in given])
    assert [(str(run.inbox), at) for run in found for at in range(run.first, run.end)] == expected
    assert latest == [inbox.partition_time for inbox in inboxes.values()]


def failing(builder: StreamsBuilder) -> StreamsBuilder:
    counts = builder.stream("in").map_values(lambda text: text + "!").group_by_key().count()
    counts.to_stream().map_values(lambda count: 6 // (3 - count)).to("out", value=Long())
    return builder


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_a_record_that_fails_is_named_as_if_it_had_come_alone(cache_bytes: int) -> None:
    settings = {**TEXTS, "statestore.cache.max.bytes": cache_bytes}
    found = Conveyor(failing(StreamsBuilder("app", TEXTS)), {"in": 1}, settings)
    found.batch([Raw("in", 0, 0, b"a", b"x", 0), Raw("in", 0, 1, b"b", b"x", 0)])
    before = found.written()
    with pytest.raises(StreamsError, match=r"KSTREAM-MAPVALUES-\d+ at in-0 offset 3: .*by zero"):
        found.batch([Raw("in", 0, 2, b"a", b"x", 1), Raw("in", 0, 3, b"a", b"x", 2)])
    assert found.written() == before


def test_records_with_schemas_or_headers_go_in_columns_too(taken: list[bool]) -> None:
    builder = StreamsBuilder("app", TEXTS)
    orders = builder.stream("in", value=Json()).filter(lambda key, order: order["amount"] > 1)
    orders.map_values(lambda order: {"half": order["amount"] // 2}).to("out", value=Json())
    carried = (("trace", b"1"),)
    found = Conveyor(builder, {"in": 1}, TEXTS)
    found.batch([Raw("in", 0, n, b"k", b'{"amount":%d}' % n, n, carried if n % 2 else ()) for n in range(5)])
    assert any(taken)
    written = [(one.value, one.timestamp, one.headers) for one in found.outputs["out"]]
    assert written == [(b'{"half":1}', 2, ()), (b'{"half":1}', 3, carried), (b'{"half":2}', 4, ())]


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_headers_of_the_last_record_of_a_window_go_with_it(cache_bytes: int, taken: list[bool]) -> None:
    settings, found = {**TEXTS, "statestore.cache.max.bytes": cache_bytes}, []
    for in_rows in (False, True):
        builder = StreamsBuilder("app", TEXTS)
        counts = builder.stream("in").group_by_key().windowed_by(TimeWindows.of(10, advance=5, grace=100)).count()
        counts.to_stream().to("out")
        one = Conveyor(builder, {"in": 1}, settings, in_rows=in_rows)
        for first, headed in ((0, 3), (12, 0), (24, 2)):  # the second batch has none, and follows one that has
            some = [(n, (("n", b"%d" % n),) if headed and n % headed == 0 else ()) for n in range(first, first + 12)]
            one.batch([Raw("in", 0, n, b"k%d" % (n % 3), b"v", n * 7 % 40, headers) for n, headers in some])
        found.append(one.outputs["out"])
    assert any(taken)
    assert found[0] == found[1] and any(one.headers for one in found[0])


@pytest.mark.parametrize(("inner", "keys"), [(STRING, ["a", "", "ä", None]), (LONG, [0, -1]), (BYTES, [b"", b"\0"])])
@pytest.mark.parametrize("changelog", [False, True])
def test_windowed_keys_are_written_at_once_as_one_by_one(inner: Plain, keys: list[Any], changelog: bool) -> None:
    serde = TimeWindowedSerde(inner, 10, changelog)
    windows = [Windowed(key, start, start + 10) for start in (0, 255, 2**62) for key in keys]
    one_by_one = short_writer(serde)
    assert one_by_one is not None
    assert written(windows, serde, one_by_one).to_pylist() == [one_by_one(window) for window in windows]
