"""Topologies by name, each also written in Java for Kafka Streams: what it made of the same records is in
windowed_scenarios.txt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.streams import (
    BufferConfig,
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    String,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)
from moldau.streams.stores import in_memory_window_store
from moldau.streams.stores import persistent_versioned_key_value_store as versioned_store

Build = Callable[[StreamsBuilder], None]
TOPOLOGIES: dict[str, Build] = {}
TEXT = {"key": String(), "value": String()}


def topology(build: Build) -> Build:
    TOPOLOGIES[build.__name__] = build
    return build


def both(build: Callable[[StreamsBuilder, dict[str, Any]], None]) -> None:
    """With its store on disk, and in memory."""
    TOPOLOGIES[build.__name__] = lambda builder: build(builder, {})
    TOPOLOGIES[f"{build.__name__}_mem"] = lambda builder: build(builder, {"store_type": "in_memory"})


def grouped(builder: StreamsBuilder, topic: str = "in") -> Any:
    return builder.stream(topic, **TEXT).group_by_key()


def out(table: Any) -> None:
    shown = table.to_stream().map(lambda key, value: (str(key), None if value is None else str(value)))
    shown.to("out", **TEXT)


def text_out(table: Any) -> None:
    table.to_stream().to("out", **TEXT)


def add(key: str, value: str | None, aggregate: str) -> str | None:
    return None if value == "!" else f"{aggregate}{'null' if value is None else value}"


def concat(one: str | None, other: str | None) -> str:
    return f"{'null' if one is None else one}{'null' if other is None else other}"


def merge(key: str, one: str, other: str) -> str:
    return f"({one}{other})"


def empty() -> str:
    return ""


ON_CLOSE = EmitStrategy.on_window_close()


@both
def tumbling_count(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(TimeWindows.of(10)).count(key=String(), **store))


@both
def tumbling_reduce(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(TimeWindows.of(10, grace=5)).reduce(concat, **store))


@both
def hopping_aggregate(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(TimeWindows.of(10, advance=4, grace=3))
    out(windowed.aggregate(empty, add, value=String(), **store))


@both
def sliding_count(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(SlidingWindows.of(10, grace=5)).count(key=String(), **store))


@both
def sliding_aggregate(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(SlidingWindows.of(10, grace=20))
    out(windowed.aggregate(empty, add, value=String(), **store))


@both
def sliding_reduce(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(SlidingWindows.of(10)).reduce(concat, **store))


@both
def session_count(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(SessionWindows.of(5, grace=3)).count(key=String(), **store))


@both
def session_aggregate(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of(5, grace=20))
    out(windowed.aggregate(empty, add, merge, value=String(), **store))


@both
def session_reduce(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(SessionWindows.of(5)).reduce(concat, **store))


@both
def tumbling_final(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    out(grouped(builder).windowed_by(TimeWindows.of(10, grace=2)).emit_strategy(ON_CLOSE).count(key=String(), **store))


@both
def hopping_final(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(TimeWindows.of(10, advance=4, grace=3)).emit_strategy(ON_CLOSE)
    out(windowed.aggregate(empty, add, value=String(), **store))


@both
def sliding_final(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(SlidingWindows.of(10, grace=5)).emit_strategy(ON_CLOSE)
    out(windowed.aggregate(empty, add, value=String(), **store))


@both
def session_final(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of(5, grace=3)).emit_strategy(ON_CLOSE)
    out(windowed.aggregate(empty, add, merge, value=String(), **store))


@both
def tumbling_final_minutes(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windows = TimeWindows.of("100 seconds", grace="20 s")
    out(grouped(builder).windowed_by(windows).emit_strategy(ON_CLOSE).count(key=String(), **store))


@both
def session_final_minutes(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of("50 s", grace="30 s")).emit_strategy(ON_CLOSE)
    out(windowed.aggregate(empty, add, merge, value=String(), **store))


@both
def session_minutes(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of("50 s", grace="30 s"))
    out(windowed.aggregate(empty, add, merge, value=String(), **store))


@both
def hopping_minutes_retained(builder: StreamsBuilder, store: dict[str, Any]) -> None:
    windows = TimeWindows.of("1 minute", advance="30 s", grace="1 minute")
    out(grouped(builder).windowed_by(windows).emit_strategy(ON_CLOSE).count(key=String(), retention=200_000, **store))


@topology
def unlimited_count(builder: StreamsBuilder) -> None:
    out(grouped(builder).windowed_by(UnlimitedWindows.of(5)).count(key=String()))


def taken(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}+{value}"


def left(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}-{value}"


def regrouped(table: Any) -> None:
    groups = table.group_by(lambda key, value: (key.key if isinstance(key, Windowed) else "all", value), **TEXT)
    text_out(groups.aggregate(empty, taken, left, **TEXT))


@topology
def tumbling_regroup(builder: StreamsBuilder) -> None:
    counts = grouped(builder).windowed_by(TimeWindows.of(10, grace=5)).count(key=String())
    groups = counts.group_by(lambda key, value: (key.key, value), key=String(), value="long")
    sums = groups.reduce(lambda one, other: one + other * 100, lambda one, other: one - other)
    sums.to_stream().map_values(str).to("out", **TEXT)


@topology
def sliding_regroup(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SlidingWindows.of(10, grace=5))
    regrouped(windowed.aggregate(empty, add, value=String()))


@topology
def session_regroup(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of(5, grace=10))
    regrouped(windowed.aggregate(empty, add, merge, value=String()))


@topology
def tumbling_filter_map(builder: StreamsBuilder) -> None:
    table = grouped(builder).windowed_by(TimeWindows.of(10, grace=5)).reduce(concat)
    out(table.filter(lambda key, value: len(value) % 2 == 0).map_values(lambda value: f"{value}!"))


def bracket(key: str, value: str | None, aggregate: str) -> str:
    return f"{aggregate}[{'null' if value is None else value}]"


@topology
def cogroup_tumbling(builder: StreamsBuilder) -> None:
    both_ = grouped(builder).cogroup(add).cogroup(grouped(builder, "right"), bracket)
    out(both_.windowed_by(TimeWindows.of(10, grace=5)).aggregate(empty, **TEXT))


@topology
def cogroup_sliding(builder: StreamsBuilder) -> None:
    both_ = grouped(builder).cogroup(add).cogroup(grouped(builder, "right"), bracket)
    out(both_.windowed_by(SlidingWindows.of(10, grace=5)).aggregate(empty, **TEXT))


@topology
def cogroup_session(builder: StreamsBuilder) -> None:
    both_ = grouped(builder).cogroup(add).cogroup(grouped(builder, "right"), bracket)
    out(both_.windowed_by(SessionWindows.of(5, grace=10)).aggregate(empty, merge, **TEXT))


CLOSED = Suppressed.until_window_closes(BufferConfig.unbounded())


@topology
def suppress_tumbling(builder: StreamsBuilder) -> None:
    out(grouped(builder).windowed_by(TimeWindows.of(10, grace=5)).count(key=String()).suppress(CLOSED))


@topology
def suppress_hopping(builder: StreamsBuilder) -> None:
    table = grouped(builder).windowed_by(TimeWindows.of(10, advance=5, grace=5)).reduce(concat)
    out(table.filter(lambda key, value: len(value) > 1).suppress(CLOSED))


@topology
def suppress_sliding(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SlidingWindows.of(10, grace=5))
    out(windowed.aggregate(empty, add, value=String()).suppress(CLOSED))


@topology
def suppress_session(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of(5, grace=3))
    out(windowed.aggregate(empty, add, merge, value=String()).suppress(CLOSED))


@topology
def suppress_bounded(builder: StreamsBuilder) -> None:
    bounded = Suppressed.until_window_closes(BufferConfig.max_records(3).shut_down_when_full())
    out(grouped(builder).windowed_by(TimeWindows.of(10, grace=5)).count(key=String()).suppress(bounded))


@topology
def suppress_time(builder: StreamsBuilder) -> None:
    text_out(builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(10, BufferConfig.unbounded())))


@topology
def suppress_records(builder: StreamsBuilder) -> None:
    text_out(builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(20, BufferConfig.max_records(2))))


@topology
def suppress_bytes(builder: StreamsBuilder) -> None:
    text_out(builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(20, BufferConfig.max_bytes(150))))


@topology
def suppress_regroup(builder: StreamsBuilder) -> None:
    regrouped(builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(10, BufferConfig.max_records(2))))


def pair(one: str | None, other: str | None) -> str:
    return f"{'null' if one is None else one},{'null' if other is None else other}"


@topology
def suppress_join(builder: StreamsBuilder) -> None:
    held = builder.table("in", **TEXT).suppress(Suppressed.until_time_limit(10, BufferConfig.unbounded()))
    text_out(held.left_join(builder.table("right", **TEXT), pair))


def keyed_pair(key: str | None, one: str | None, other: str | None) -> str:
    return f"{'null' if key is None else key}:{pair(one, other)}"


def stream_join(name: str, method: str, windows: JoinWindows, **options: Any) -> None:
    def build(builder: StreamsBuilder) -> None:
        one, other = builder.stream("left", **TEXT), builder.stream("right", **TEXT)
        getattr(one, method)(other, keyed_pair, window=windows, **options).to("out", **TEXT)

    TOPOLOGIES[name] = build


GRACE = JoinWindows.of(10, grace=5)
UNEVEN = JoinWindows.of(before=3, after=12, grace=4)
stream_join("ss_inner", "join", GRACE)
stream_join("ss_left", "left_join", GRACE)
stream_join("ss_outer", "outer_join", GRACE)
stream_join("ss_inner_nograce", "join", JoinWindows.of(4))
stream_join("ss_left_nograce", "left_join", JoinWindows.of(4))
stream_join("ss_outer_nograce", "outer_join", JoinWindows.of(4))
stream_join("ss_left_uneven", "left_join", UNEVEN)
stream_join("ss_outer_uneven", "outer_join", UNEVEN)
stream_join("ss_outer_after", "outer_join", JoinWindows.of(after=9, grace=2))
stream_join("ss_outer_negative", "outer_join", JoinWindows.of(before=-3, after=9, grace=2))
stores = {name: in_memory_window_store(name, 25, 20, retain_duplicates=True) for name in "lr"}
stream_join("ss_inner_mem", "join", GRACE, store=stores["l"], other_store=stores["r"])
stream_join("ss_outer_mem", "outer_join", GRACE, store=stores["l"], other_store=stores["r"])


@topology
def ss_self(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", **TEXT)
    stream.join(stream, pair, window=GRACE).to("out", **TEXT)


def by_prefix(value: str) -> str | None:
    return value.split("/")[0] if "/" in value else None


def by_key(key: str, value: str) -> str | None:
    return None if key == "c" else key


def table_joins(kind: str, method: str) -> None:
    def st_grace(builder: StreamsBuilder) -> None:
        table = builder.table("right", store=versioned_store("v", 100), **TEXT)
        getattr(builder.stream("in", **TEXT), method)(table, pair, grace=10, name="joined").to("out", **TEXT)

    def st_versioned(builder: StreamsBuilder) -> None:
        table = builder.table("right", store=versioned_store("v", 30), **TEXT)
        getattr(builder.stream("in", **TEXT), method)(table, pair).to("out", **TEXT)

    def fk(builder: StreamsBuilder) -> None:
        one, other = builder.table("left", **TEXT), builder.table("right", **TEXT)
        text_out(getattr(one, method)(other, pair, foreign_key=by_prefix, **TEXT))

    def fk_versioned(builder: StreamsBuilder) -> None:
        one = builder.table("left", store=versioned_store("a", 50), **TEXT)
        other = builder.table("right", store=versioned_store("o", 50), **TEXT)
        text_out(getattr(one, method)(other, pair, foreign_key=by_prefix, **TEXT))

    def fk_keyed(builder: StreamsBuilder) -> None:
        one, other = builder.table("left", **TEXT), builder.table("right", **TEXT)
        text_out(getattr(one, method)(other, pair, foreign_key=by_key, **TEXT))

    def tt_versioned(builder: StreamsBuilder) -> None:
        one = builder.table("left", store=versioned_store("a", 30), **TEXT)
        other = builder.table("right", store=versioned_store("o", 30), **TEXT)
        text_out(getattr(one, method)(other, pair, **TEXT))

    for build in (st_grace, st_versioned, fk, fk_versioned, fk_keyed, tt_versioned):
        TOPOLOGIES[f"{build.__name__}_{kind}"] = build


table_joins("inner", "join")
table_joins("left", "left_join")


@topology
def versioned_table(builder: StreamsBuilder) -> None:
    text_out(builder.table("in", store=versioned_store("v", 30), **TEXT))


@topology
def versioned_filter(builder: StreamsBuilder) -> None:
    table = builder.table("in", store=versioned_store("v", 30), **TEXT)
    text_out(table.filter(lambda key, value: len(value) > 1))


@topology
def versioned_regroup(builder: StreamsBuilder) -> None:
    regrouped(builder.table("in", store=versioned_store("v", 30), **TEXT))


def counts(builder: StreamsBuilder, topic: str, grace: int = 5) -> Any:
    return grouped(builder, topic).windowed_by(TimeWindows.of(10, grace=grace)).count(key=String())


@topology
def x_windowed_join(builder: StreamsBuilder) -> None:
    out(counts(builder, "left").left_join(counts(builder, "right"), lambda one, other: nullable_pair(one, other)))


def nullable_pair(one: Any, other: Any) -> str:
    return pair(None if one is None else str(one), None if other is None else str(other))


@topology
def x_windowed_outer_suppress(builder: StreamsBuilder) -> None:
    one, other = counts(builder, "left", 2), counts(builder, "right", 7)
    out(one.outer_join(other, nullable_pair, value=String()).suppress(CLOSED))


def initial(key: str | None, value: str | None) -> str | None:
    return value[0] if value else None


@topology
def x_rekeyed_count(builder: StreamsBuilder) -> None:
    rekeyed = builder.stream("in", **TEXT).select_key(initial).group_by_key(**TEXT)
    out(rekeyed.windowed_by(TimeWindows.of(10, grace=5)).count(key=String()))


@topology
def x_rekeyed_join(builder: StreamsBuilder) -> None:
    one, other = (builder.stream(topic, **TEXT).select_key(initial) for topic in ("left", "right"))
    joined = one.left_join(other, keyed_pair, window=GRACE, name="mine", store="kept", other_value=String(), **TEXT)
    joined.to("out", **TEXT)


@topology
def x_fk_chain(builder: StreamsBuilder) -> None:
    one, other = builder.table("left", **TEXT), builder.table("right", **TEXT)
    joined = one.join(other, pair, foreign_key=by_prefix, **TEXT)
    again = joined.left_join(
        other,
        lambda value, found: f"{value};{'null' if found is None else found}",
        foreign_key=lambda value: value[value.index(",") + 1 :],
        **TEXT,
    )
    text_out(again)


@topology
def x_fk_filtered(builder: StreamsBuilder) -> None:
    one = builder.table("left", **TEXT).filter(lambda key, value: not value.endswith("1"))
    marked = one.map_values(lambda value: value + "m")
    other = builder.table("right", **TEXT).filter(lambda key, value: not value.startswith("z"))
    named = other.map_values(lambda value: value + "n")
    text_out(marked.left_join(named, pair, foreign_key=by_prefix, **TEXT))


@topology
def x_fk_named(builder: StreamsBuilder) -> None:
    one, other = builder.table("left", **TEXT), builder.table("right", **TEXT)
    regrouped(one.join(other, pair, foreign_key=by_prefix, name="mine", store="kept", **TEXT))


@topology
def x_suppress_early(builder: StreamsBuilder) -> None:
    windowed = grouped(builder).windowed_by(SessionWindows.of(5, grace=10))
    buffer = BufferConfig.max_records(3).with_max_bytes(400).emit_early_when_full()
    held = Suppressed.until_time_limit(8, buffer).with_name("held")
    out(windowed.aggregate(empty, add, merge, value=String()).suppress(held))


@topology
def x_final_then_count(builder: StreamsBuilder) -> None:
    first = grouped(builder).windowed_by(TimeWindows.of(5, grace=2)).emit_strategy(ON_CLOSE).count(key=String())
    shown = first.to_stream().map(lambda key, value: (key.key, str(value))).group_by_key(**TEXT)
    out(shown.windowed_by(TimeWindows.of(20, grace=5)).emit_strategy(ON_CLOSE).reduce(concat))


@topology
def x_grace_computed(builder: StreamsBuilder) -> None:
    table = builder.table("right", store=versioned_store("v", 100), **TEXT)
    computed = table.filter(lambda key, value: not value.startswith("z")).map_values(lambda value: value + "m")
    builder.stream("in", **TEXT).join(computed, pair, grace=10, name="joined").to("out", **TEXT)


@topology
def x_suppress_windowed_join(builder: StreamsBuilder) -> None:
    out(counts(builder, "left").suppress(CLOSED).join(counts(builder, "right"), nullable_pair))


@topology
def x_sliding_cogroup_suppress(builder: StreamsBuilder) -> None:
    both_ = grouped(builder).cogroup(add).cogroup(grouped(builder, "right"), bracket)
    out(both_.windowed_by(SlidingWindows.of(10, grace=5)).aggregate(empty, **TEXT).suppress(CLOSED))


@topology
def x_join_then_window(builder: StreamsBuilder) -> None:
    one, other = builder.stream("left", **TEXT), builder.stream("right", **TEXT)
    joined = one.outer_join(other, pair, window=JoinWindows.of(5, grace=5)).group_by_key(**TEXT)
    out(joined.windowed_by(SessionWindows.of(5, grace=10)).count(key=String()))


@topology
def x_windows_to_table(builder: StreamsBuilder) -> None:
    table = builder.table("right", **TEXT)
    rekeyed = counts(builder, "in").to_stream(lambda key, value: key.key)
    counted = rekeyed.map_values(lambda value: None if value is None else str(value)).to_table(**TEXT)
    text_out(table.join(counted, pair))
