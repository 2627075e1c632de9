"""Joins of tables: by key and by foreign key."""

from __future__ import annotations

from moldau.streams import StreamsBuilder
from tests.streams.judge.functions import both, even, first
from tests.streams.judge.topologies.sources import TEXT, Build, left, right, table


def self_join(b: StreamsBuilder) -> None:
    rows = table(b)
    rows.join(rows.filter(lambda k, v: even(v)), both).to_stream().to("out")


def foreign_self_join(b: StreamsBuilder) -> None:
    rows = table(b)
    rows.left_join(rows, both, foreign_key=first).to_stream().to("out")


BY_KEY: dict[str, Build] = {
    "table_join": lambda b: table(b, "left").join(table(b, "right"), both).to_stream().to("out"),
    "table_left_join": lambda b: table(b, "left").left_join(table(b, "right"), both).to_stream().to("out"),
    "table_outer_join": lambda b: table(b, "left").outer_join(table(b, "right"), both).to_stream().to("out"),
    "table_join_stored": lambda b: (
        table(b, "left")
        .join(table(b, "right"), both, name="meet", store="met", value=TEXT)
        .filter(lambda k, v: len(v) < 8)
        .to_stream()
        .to("out")
    ),
    "table_left_join_stored": lambda b: (
        table(b, "left").left_join(table(b, "right"), both, store="met", value=TEXT).to_stream().to("out")
    ),
    "table_outer_join_stored": lambda b: (
        table(b, "left").outer_join(table(b, "right"), both, store="met", value=TEXT).to_stream().to("out")
    ),
    "table_join_to_null": lambda b: (
        table(b, "left")
        .outer_join(table(b, "right"), lambda one, other: None if one == other else both(one, other))
        .to_stream()
        .to("out")
    ),
    "table_join_filtered": lambda b: (
        table(b, "left")
        .filter(lambda k, v: even(v))
        .left_join(table(b, "right").map_values(lambda v: v + "!"), both)
        .to_stream()
        .to("out")
    ),
    "table_self_join": self_join,
    "table_join_three": lambda b: (
        table(b, "left").outer_join(table(b, "right"), both).left_join(table(b), both).to_stream().to("out")
    ),
    "table_join_counts": lambda b: (
        left(b).group_by_key().count().outer_join(right(b).group_by_key().count(), both).to_stream().to("out")
    ),
    "table_join_group": lambda b: (
        table(b, "left").join(table(b, "right"), both).group_by(lambda k, v: (v, k)).count().to_stream().to("out")
    ),
}

BY_FOREIGN_KEY: dict[str, Build] = {
    "foreign_join": lambda b: table(b, "left").join(table(b, "right"), both, foreign_key=first).to_stream().to("out"),
    "foreign_left_join": lambda b: (
        table(b, "left").left_join(table(b, "right"), both, foreign_key=first).to_stream().to("out")
    ),
    "foreign_join_stored": lambda b: (
        table(b, "left")
        .join(table(b, "right"), both, foreign_key=first, name="owners", store="owned", value=TEXT)
        .to_stream()
        .to("out")
    ),
    "foreign_left_join_stored": lambda b: (
        table(b, "left")
        .left_join(table(b, "right"), both, foreign_key=first, key=TEXT, value=TEXT)
        .to_stream()
        .to("out")
    ),
    "foreign_join_key": lambda b: (
        table(b, "left")
        .left_join(table(b, "right"), both, foreign_key=lambda k, v: first(v) or k)
        .to_stream()
        .to("out")
    ),
    "foreign_join_count": lambda b: (
        table(b, "left")
        .join(table(b, "right"), both, foreign_key=first)
        .group_by(lambda k, v: (v, k))
        .count()
        .to_stream()
        .to("out")
    ),
    "foreign_self_join": foreign_self_join,
}

TOPOLOGIES: dict[str, Build] = {**BY_KEY, **BY_FOREIGN_KEY}
