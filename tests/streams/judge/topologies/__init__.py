"""The table of all topologies, by name, in Moldau's DSL: java/Topologies.java has the same in Java."""

from __future__ import annotations

from tests.streams.judge.topologies import (
    aggregates,
    look_ups,
    processor_stores,
    processors,
    sessions,
    stateless,
    stream_joins,
    suppression,
    table_joins,
    tables,
    versions,
    windowing,
)
from tests.streams.judge.topologies.sources import Build

TOPOLOGIES: dict[str, Build] = {
    **stateless.TOPOLOGIES,
    **aggregates.TOPOLOGIES,
    **windowing.TOPOLOGIES,
    **sessions.TOPOLOGIES,
    **tables.TOPOLOGIES,
    **suppression.TOPOLOGIES,
    **versions.TOPOLOGIES,
    **look_ups.TOPOLOGIES,
    **stream_joins.TOPOLOGIES,
    **table_joins.TOPOLOGIES,
    **processors.TOPOLOGIES,
    **processor_stores.TOPOLOGIES,
}
