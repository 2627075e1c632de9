"""Functions of one record, branches, merges, repartitioning, sources and sinks."""

from __future__ import annotations

from typing import Any

from moldau.streams import StreamsBuilder
from tests.streams.judge.functions import both, even, first, see, text
from tests.streams.judge.topologies.sources import TEXT, Build, left, right, stream


def pairs(key: str | None, value: str | None) -> list[tuple[str, str]]:
    return [(letter, text(key)) for letter in value or ""]


def two_sinks(b: StreamsBuilder) -> None:
    source = stream(b)
    source.map_values(lambda v: text(v) + "1").to("one")
    source.map_values(lambda v: text(v) + "2").to("two", name="sink-two")


def split(b: StreamsBuilder) -> None:
    branches = (
        stream(b)
        .split(name="by-")
        .branch(lambda k, v: even(v), name="even")
        .branch(lambda k, v: v is not None and v.startswith("a"))
        .default_branch(name="rest")
    )
    branches["by-even"].to("even")
    branches["by-2"].to("second")
    branches["by-rest"].to("rest")


def split_no_default(b: StreamsBuilder) -> None:
    taken = stream(b).split().branch(lambda k, v: k == "a", lambda branch: branch.to("out"))
    taken.no_default_branch()


def split_functions(b: StreamsBuilder) -> None:
    branches = (
        stream(b)
        .split(name="way-")
        .branch(lambda k, v: even(v), lambda branch: branch.map_values(lambda v: v + "e"), name="changed")
        .branch(lambda k, v: k == "b", lambda branch: branch.to("taken"), name="gone")
        .default_branch()
    )
    branches["way-changed"].merge(branches["way-0"]).to("out")


def length_time(record: Any, partition_time: int) -> int:
    """The length of the value in seconds. Null has none: a record with a time below zero is skipped."""
    return -1 if record.value is None else len(record.value) * 1000


def partition_time_for_empty(record: Any, partition_time: int) -> int:
    """The record's own time, but that of the partition where the value is empty."""
    return partition_time if record.value == "" else record.timestamp


TOPOLOGIES: dict[str, Build] = {
    "filter": lambda b: stream(b).filter(lambda k, v: even(v)).to("out"),
    "filter_not": lambda b: stream(b).filter_not(lambda k, v: even(v), name="odd").to("out"),
    "select_key": lambda b: stream(b).select_key(lambda k, v: first(v)).to("out"),
    "map": lambda b: stream(b).map(lambda k, v: (first(v), both(k, v))).to("out"),
    "map_values": lambda b: stream(b).map_values(lambda v: text(v) + "!").to("out"),
    "map_values_with_key": lambda b: stream(b).map_values(lambda k, v: both(k, v)).to("out"),
    "flat_map": lambda b: stream(b).flat_map(pairs).to("out"),
    "flat_map_values": lambda b: stream(b).flat_map_values(lambda v: list(v or "")).to("out"),
    "flat_map_values_with_key": lambda b: stream(b).flat_map_values(lambda k, v: [text(k), text(v)]).to("out"),
    "peek": lambda b: stream(b).peek(see).to("out"),
    "foreach": lambda b: stream(b).foreach(see, name="look"),
    "merge": lambda b: left(b).merge(right(b).map_values(lambda v: text(v) + "r")).to("out"),
    "merge_named": lambda b: (
        left(b).merge(right(b), name="meet").merge(stream(b)).filter(lambda k, v: v is not None).to("out")
    ),
    "two_sinks": two_sinks,
    "many_topics": lambda b: (
        b.stream(["left", "right"], key=TEXT, value=TEXT).map_values(lambda v: text(v) + "!").to("out")
    ),
    "pattern": lambda b: b.stream(pattern="left|right", key=TEXT, value=TEXT).to("out"),
    "to_extractor": lambda b: (
        stream(b).filter(lambda k, v: v is not None).to(lambda key, value, context: "even" if even(value) else "odd")
    ),
    "split": split,
    "split_no_default": split_no_default,
    "split_functions": split_functions,
    "repartition": lambda b: stream(b).select_key(lambda k, v: first(v)).repartition().to("out"),
    "repartition_named": lambda b: (
        stream(b).repartition(name="again", partitions=1).map_values(lambda v: text(v) + "!").to("out")
    ),
    "repartition_count": lambda b: (
        stream(b)
        .select_key(lambda k, v: first(v))
        .repartition(name="once")
        .group_by_key()
        .count()
        .to_stream()
        .to("out")
    ),
    "to_table": lambda b: stream(b).to_table().to_stream().to("out"),
    "to_table_stored": lambda b: stream(b).to_table(name="rows", store="kept").to_stream().to("out"),
    "to_table_rekeyed": lambda b: (
        stream(b).select_key(lambda k, v: first(v)).to_table().map_values(lambda v: v + "!").to_stream().to("out")
    ),
    "time_extracted": lambda b: (
        b.stream("in", key=TEXT, value=TEXT, timestamp=length_time).group_by_key().count().to_stream().to("out")
    ),
    "time_of_partition": lambda b: b.stream("in", key=TEXT, value=TEXT, timestamp=partition_time_for_empty).to("out"),
}
