"""Global tables under a conveyor: seen as of the offsets that a batch has recorded, in its pass and in its levels."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.client import Record
from moldau.plan.conveyor.start import definition, scheduled
from moldau.plan.conveyor.views import Filled, global_stores
from moldau.spark.source.planning import Position
from moldau.streams import StreamsBuilder, String
from moldau.streams.application import application

from .conftest import Cluster, to_its_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = time.time_ns() // 1_000_000
SERDES = {"statestore.cache.max.bytes": 0, "default.key.serde": String(), "default.value.serde": String()}


def topology(orders: str, levels: str, out: str) -> StreamsBuilder:
    """One look-up before the first keyed step, one behind it."""
    builder = StreamsBuilder(f"app-{out}", SERDES)
    stream, table = builder.stream(orders), builder.global_table(levels, store="levels")
    stream.join(table, lambda order, level: f"{order} {level}", key=lambda key, value: key).to(out)
    texts = stream.group_by_key().reduce(lambda seen, order: f"{seen}+{order}", store="texts").to_stream()
    texts.left_join(table, lambda text, level: f"{text}: {level}", key=lambda key, value: key).to(out)
    return builder


def put(cluster: Cluster, topic: str, key: str, value: str | None) -> None:
    encoded = None if value is None else value.encode()
    cluster.put(topic, Record(timestamp=NOW, key=key.encode(), value=encoded))


@pytest.mark.timeout(900)
def test_records_are_joined_with_what_a_global_table_has_when_their_batch_is_planned(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    orders, levels, out = (cluster.topic(partitions) for partitions in (1, 2, 1))
    settings = {"bootstrap.servers": cluster.servers, "state.dir": str(tmp_path)}
    for order, level in (("a", "gold"), ("b", None)):
        put(cluster, levels, "ann", level)
        put(cluster, orders, "ann", order)
        put(cluster, orders, "bob", order)
        made = application(topology(orders, levels, out).build(), settings)
        to_its_end(partial(definition, made, spark))
    rows = [((key or b"").decode(), (value or b"").decode()) for key, value, _ in cluster.committed_rows(out)]
    assert sorted(rows) == sorted(
        [("ann", "a gold"), ("ann", "a: gold"), ("ann", "a+b: None"), ("bob", "a: None"), ("bob", "a+b: None")]
    )


def test_a_worker_that_has_read_further_than_a_batch_that_is_replayed_begins_anew(
    cluster: Cluster, tmp_path: Path
) -> None:
    orders, levels, out = (cluster.topic() for _ in range(3))
    settings = {"bootstrap.servers": cluster.servers, "state.dir": str(tmp_path)}
    there = dict.fromkeys((orders, levels, out), 1)
    conveyed = scheduled(application(topology(orders, levels, out).build(), settings), there)
    for level in ("iron", "silver", "gold"):
        put(cluster, levels, "ann", level)
    seen: list[Any] = []
    filled = Filled(conveyed)
    for offset in (1, 3, 3, 2):
        filled.fill(Position({(levels, 0): offset}))
        seen.append(filled.tables.stores["levels"].get("ann").value)
    assert seen == ["iron", "gold", "gold", "silver"]
    kept = global_stores(conveyed, json.dumps({levels: {"0": 1}}))
    assert kept["levels"].get("ann").value == "iron"
    assert global_stores(conveyed, json.dumps({levels: {"0": 3}})) is kept
