"""All windows of a key are in the partition where the key itself would be, as Kafka Streams writes them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.operators.context import Context, Shard
from moldau.operators.record import Produced, Record
from moldau.operators.topics import Sink
from moldau.operators.windowed import Windowed
from moldau.plan.nodes import SinkNode
from moldau.streams import Json, SessionWindows, StreamsBuilder, String, TimeWindows
from moldau.streams.windowed_partitions import ByInnerKey
from moldau.wire.numbers import murmur2

TEXTS = {"default.key.serde": "string", "default.value.serde": "string"}


def sink(builder: StreamsBuilder) -> SinkNode:
    return next(node for node in builder.build().plan(TEXTS).nodes if isinstance(node, SinkNode))


@pytest.mark.parametrize("windows", [TimeWindows.of("1 minute"), SessionWindows.of("1 minute")])
def test_windows_go_where_their_key_goes(windows: TimeWindows | SessionWindows) -> None:
    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").group_by_key().windowed_by(windows).count().to_stream().to("out")
    choose = sink(builder).partitioner
    assert isinstance(choose, ByInnerKey)
    for key in ("a", "bob", "key-17"):
        places = {choose("out", Windowed(key, start, start + 60_000), 1, 4) for start in (0, 60_000, 120_000)}
        assert places == {murmur2(key.encode()) % 4}


def test_a_topic_that_is_not_known_yet_is_left_to_the_sink() -> None:
    assert ByInnerKey()("out", Windowed("a", 0, 1), 1, 1) is None


def test_what_was_given_is_kept() -> None:
    builder = StreamsBuilder("app", TEXTS)
    windowed = builder.stream("in").group_by_key().windowed_by(TimeWindows.of("1 minute")).count().to_stream()
    windowed.to("out", partitioner=lambda topic, key, value, count: 3)
    choose = sink(builder).partitioner
    assert choose is not None
    assert choose("out", Windowed("a", 0, 1), 1, 4) == 3


def test_keys_without_windows_are_left_to_the_sink() -> None:
    builder = StreamsBuilder("app", TEXTS)
    builder.stream("in").to("out")
    assert sink(builder).partitioner is None


@pytest.mark.parametrize("value", [String(), Json()])
@pytest.mark.parametrize(
    ("answer", "partitions"), [(1, [1]), (None, [None]), ({2, 0}, [0, 2]), ((), []), (range(3), [0, 1, 2])]
)
def test_a_partitioner_may_name_several_partitions_or_none(
    value: Any, answer: Any, partitions: list[int | None]
) -> None:
    written: list[Produced] = []
    shard = Shard()
    out = Sink("out", String(), value, written.append, lambda *about: answer, lambda topic: 3)
    out.init(Context("sink", shard, frozenset(), {}))
    out.process(Record("k", "v", 5))
    assert [record.partition for record in written] == partitions
    assert shard.dropped == ({} if partitions else {("sink", "no partition"): 1})
