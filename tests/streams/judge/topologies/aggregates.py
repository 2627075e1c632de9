"""Aggregates of streams without windows."""

from __future__ import annotations

from moldau.streams import CogroupedKStream, StreamsBuilder
from tests.streams.judge.functions import add, first, joined, listed, text
from tests.streams.judge.topologies.sources import NUMBER, TEXT, Build, left, right, stream


def two_aggregates(b: StreamsBuilder) -> None:
    grouped = stream(b).group_by(lambda k, v: first(v))
    grouped.count().to_stream().to("counts")
    grouped.reduce(joined).to_stream().to("reduced")


def cogrouped(b: StreamsBuilder) -> CogroupedKStream:
    """Two topics in one aggregate, each value with a mark of where it came from."""
    one = left(b).group_by_key().cogroup(lambda k, v, a: f"{a}l{text(v)}")
    return one.cogroup(right(b).group_by_key(), lambda k, v, a: f"{a}r{text(v)}")


def cogroup_stored(b: StreamsBuilder) -> None:
    (
        left(b)
        .group_by_key()
        .cogroup(lambda k, v, a: f"{a}l{v}" if v else None)
        .cogroup(right(b).group_by(lambda k, v: first(v)), lambda k, v, a: f"{a}r{text(v)}")
        .cogroup(stream(b).group_by_key(), lambda k, v, a: f"{a}i{v}")
        .aggregate(lambda: "", name="together", value=TEXT, store="cogrouped")
        .to_stream()
        .to("out")
    )


TOPOLOGIES: dict[str, Build] = {
    "count": lambda b: stream(b).group_by_key().count().to_stream().to("out"),
    "count_stored": lambda b: (
        stream(b).group_by_key(name="by-key").count(name="counter", store="counts").to_stream(name="flow").to("out")
    ),
    "reduce": lambda b: stream(b).group_by_key().reduce(listed).to_stream().to("out"),
    "reduce_to_null": lambda b: (
        stream(b).group_by_key().reduce(lambda a, v: a + v if v else None, store="reduced").to_stream().to("out")
    ),
    "aggregate": lambda b: (
        stream(b).group_by_key().aggregate(lambda: "", add, value=TEXT, store="joined").to_stream().to("out")
    ),
    "aggregate_to_null": lambda b: (
        stream(b)
        .group_by_key()
        .aggregate(lambda: "<", lambda k, v, a: k + a + v if v else None, value=TEXT)
        .to_stream()
        .to("out")
    ),
    "group_by_count": lambda b: stream(b).group_by(lambda k, v: first(v)).count().to_stream().to("out"),
    "group_by_named": lambda b: (
        stream(b)
        .group_by(lambda k, v: first(v), name="letters")
        .aggregate(lambda: "", add, value=TEXT)
        .to_stream()
        .to("out")
    ),
    "group_after_map_values": lambda b: (
        stream(b).map_values(lambda v: None if v is None else v + v).group_by_key().reduce(listed).to_stream().to("out")
    ),
    "group_after_select_key": lambda b: (
        stream(b).select_key(lambda k, v: v).filter(lambda k, v: True).group_by_key().count().to_stream().to("out")
    ),
    "two_aggregates": two_aggregates,
    "count_of_counts": lambda b: (
        stream(b)
        .group_by_key()
        .count()
        .to_stream()
        .group_by(lambda k, n: str(n), key=TEXT, value=NUMBER)
        .count()
        .to_stream()
        .to("out")
    ),
    "cogroup": lambda b: cogrouped(b).aggregate(lambda: "", value=TEXT).to_stream().to("out"),
    "cogroup_stored": cogroup_stored,
}
