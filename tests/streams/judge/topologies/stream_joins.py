"""Joins of two streams."""

from __future__ import annotations

from moldau.streams import JoinWindows, StreamsBuilder
from tests.streams.judge.functions import GRACE, SIZE, ZERO, both, first, text, three
from tests.streams.judge.topologies.sources import Build, left, right, stream

NO_GRACE = JoinWindows.of(SIZE)
WITH_GRACE = JoinWindows.of(SIZE, grace=GRACE)
BEFORE = JoinWindows.of(SIZE, after=ZERO, grace=GRACE)
AFTER = JoinWindows.of(SIZE, before=ZERO, grace=GRACE)
PAST = JoinWindows.of(SIZE, after=-2000, grace=GRACE)
FUTURE = JoinWindows.of(SIZE, before=-2000, grace=GRACE)

STREAMS: dict[str, Build] = {
    "stream_join": lambda b: left(b).join(right(b), both, window=NO_GRACE).to("out"),
    "stream_join_grace": lambda b: left(b).join(right(b), three, window=WITH_GRACE).to("out"),
    "stream_left_join": lambda b: left(b).left_join(right(b), both, window=NO_GRACE).to("out"),
    "stream_left_join_grace": lambda b: (
        left(b).left_join(right(b), three, window=WITH_GRACE, name="meet", store="met").to("out")
    ),
    "stream_outer_join": lambda b: left(b).outer_join(right(b), both, window=NO_GRACE).to("out"),
    "stream_outer_join_grace": lambda b: left(b).outer_join(right(b), three, window=WITH_GRACE).to("out"),
    "stream_join_before": lambda b: left(b).join(right(b), both, window=BEFORE).to("out"),
    "stream_join_after": lambda b: left(b).join(right(b), both, window=AFTER).to("out"),
    "stream_outer_join_before": lambda b: left(b).outer_join(right(b), both, window=BEFORE).to("out"),
    "stream_outer_join_after": lambda b: left(b).outer_join(right(b), both, window=AFTER).to("out"),
    "stream_left_join_past": lambda b: left(b).left_join(right(b), both, window=PAST).to("out"),
    "stream_left_join_future": lambda b: left(b).left_join(right(b), both, window=FUTURE).to("out"),
    "stream_join_zero": lambda b: left(b).join(right(b), both, window=JoinWindows.of(ZERO, grace=GRACE)).to("out"),
    "stream_outer_join_zero": lambda b: left(b).outer_join(right(b), both, window=JoinWindows.of(ZERO)).to("out"),
}


def self_join(b: StreamsBuilder) -> None:
    source = stream(b)
    source.join(source, both, window=WITH_GRACE).to("out")


def left_self_join(b: StreamsBuilder) -> None:
    source = stream(b)
    source.left_join(source.map_values(lambda v: text(v) + "r"), both, window=WITH_GRACE).to("out")


CHAINS: dict[str, Build] = {
    "stream_self_join": self_join,
    "stream_left_self_join": left_self_join,
    "stream_join_rekeyed": lambda b: (
        left(b)
        .select_key(lambda k, v: first(v))
        .join(right(b).select_key(lambda k, v: first(v)), both, window=WITH_GRACE)
        .to("out")
    ),
    "stream_left_join_rekeyed": lambda b: (
        left(b)
        .select_key(lambda k, v: first(v))
        .left_join(right(b), both, window=WITH_GRACE, store="kept", name="meet")
        .to("out")
    ),
    "stream_join_three": lambda b: (
        left(b).join(right(b), both, window=NO_GRACE).left_join(stream(b), both, window=WITH_GRACE).to("out")
    ),
    "stream_join_count": lambda b: (
        left(b).outer_join(right(b), both, window=WITH_GRACE).group_by_key().count().to_stream().to("out")
    ),
}

TOPOLOGIES: dict[str, Build] = {**STREAMS, **CHAINS}
