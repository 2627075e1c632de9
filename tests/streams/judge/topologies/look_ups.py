"""Joins of a stream with a table, and with a global table."""

from __future__ import annotations

from moldau.streams import StreamsBuilder
from tests.streams.judge.functions import both, even, first, three
from tests.streams.judge.topologies.sources import TEXT, Build, left, right, table

TABLES: dict[str, Build] = {
    "stream_table_join": lambda b: left(b).join(table(b, "right"), both).to("out"),
    "stream_table_left_join": lambda b: left(b).left_join(table(b, "right"), both).to("out"),
    "stream_table_join_key": lambda b: left(b).join(table(b, "right"), three, name="look-up").to("out"),
    "stream_table_join_rekeyed": lambda b: (
        left(b).select_key(lambda k, v: first(v)).join(table(b, "right"), both).to("out")
    ),
    "stream_table_filtered": lambda b: (
        left(b).left_join(table(b, "right").filter(lambda k, v: even(v)).map_values(lambda v: v + "!"), both).to("out")
    ),
    "stream_count_join": lambda b: left(b).join(right(b).group_by_key().count(), both).to("out"),
}


def global_join(b: StreamsBuilder) -> None:
    everywhere = b.global_table("right", key=TEXT, value=TEXT)
    left(b).join(everywhere, both, key=lambda k, v: first(v)).to("out")


def global_left_join(b: StreamsBuilder) -> None:
    everywhere = b.global_table("right", key=TEXT, value=TEXT, store="everywhere")
    left(b).left_join(everywhere, three, key=lambda k, v: first(v), name="look-up").to("out")


def global_by_key(b: StreamsBuilder) -> None:
    everywhere = b.global_table("right", key=TEXT, value=TEXT)
    left(b).left_join(everywhere, both, key=lambda k, v: k).group_by_key().count().to_stream().to("out")


GLOBALS: dict[str, Build] = {
    "stream_global_join": global_join,
    "stream_global_left_join": global_left_join,
    "stream_global_by_key": global_by_key,
}

TOPOLOGIES: dict[str, Build] = {**TABLES, **GLOBALS}
