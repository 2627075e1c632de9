"""Versioned tables, and joins with them."""

from __future__ import annotations

from moldau.operators.stores.versioned import versioned as versions
from moldau.streams import KTable, StreamsBuilder
from tests.streams.judge.functions import GRACE, both, even, first
from tests.streams.judge.topologies.sources import TEXT, Build, left, table

HISTORY_MS = 120_000


def versioned(b: StreamsBuilder, topic: str = "in") -> KTable:
    return b.table(topic, key=TEXT, value=TEXT, store=versions(f"{topic}-versions", HISTORY_MS))


TABLES: dict[str, Build] = {
    "versioned_table": lambda b: versioned(b).to_stream().to("out"),
    "versioned_filter": lambda b: versioned(b).filter(lambda k, v: even(v)).to_stream().to("out"),
    "versioned_map_group": lambda b: (
        versioned(b).map_values(lambda v: v + "!").group_by(lambda k, v: (v, k)).count().to_stream().to("out")
    ),
    "versioned_filter_stored": lambda b: (
        versioned(b).filter(lambda k, v: even(v), store=versions("evens", HISTORY_MS)).to_stream().to("out")
    ),
}

JOINS: dict[str, Build] = {
    "stream_versioned_join": lambda b: left(b).join(versioned(b, "right"), both).to("out"),
    "stream_versioned_join_grace": lambda b: left(b).join(versioned(b, "right"), both, grace=GRACE).to("out"),
    "stream_versioned_left_join_grace": lambda b: (
        left(b).filter(lambda k, v: k is not None).left_join(versioned(b, "right"), both, grace=GRACE).to("out")
    ),
    "versioned_join": lambda b: versioned(b, "left").join(versioned(b, "right"), both).to_stream().to("out"),
    "versioned_left_join": lambda b: versioned(b, "left").left_join(table(b, "right"), both).to_stream().to("out"),
    "versioned_outer_join": lambda b: (
        versioned(b, "left").outer_join(versioned(b, "right"), both, store="met", value=TEXT).to_stream().to("out")
    ),
    "foreign_join_versioned": lambda b: (
        versioned(b, "left").left_join(versioned(b, "right"), both, foreign_key=first).to_stream().to("out")
    ),
}

TOPOLOGIES: dict[str, Build] = {**TABLES, **JOINS}
