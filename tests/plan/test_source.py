"""The source of a conveyor: what shards learn of partitions."""

from __future__ import annotations

import json
from typing import Any

from moldau.client import Client, Record, TransactionalProducer, build
from moldau.client import end as end_transaction
from moldau.plan.blobs import EMPTY
from moldau.plan.conveyor.datasource import source_of
from moldau.plan.conveyor.rows import Places, blobs_of
from moldau.plan.conveyor.source import PLACES
from moldau.spark.planning import MORE, Position, evenly
from moldau.streams import StreamsBuilder, String
from moldau.testing import Broker

from .in_memory import Conveyor

TEXTS = {"default.key.serde": String(), "default.value.serde": String()}


def source(kafka: Broker, topic: str) -> Any:
    builder = StreamsBuilder("app", TEXTS)
    builder.stream(topic).group_by_key().count().to_stream().map_values(str).to("out")
    schedule = Conveyor(builder.build(), {topic: 1}, TEXTS).conveyed.schedule
    places = json.dumps(Places.of(schedule, 2).to_json())
    own = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, PLACES: places}
    return source_of({**own, "includeHeaders": "true"})


def test_a_batch_that_is_limited_reads_a_small_topic_to_its_end() -> None:
    start = Position({("table", 0): 5, ("stream", 0): 0, ("stream", 1): 100})
    latest = Position({("table", 0): 15, ("stream", 0): 1_000, ("stream", 1): 60_000})
    assert evenly(start, latest, 400).offsets == {("table", 0): 15, ("stream", 0): 195, ("stream", 1): 295}
    assert evenly(start, latest, 2_000).offsets == {("table", 0): 15, ("stream", 0): 995, ("stream", 1): 1_095}
    assert evenly(start, latest, 1).offsets == {("table", 0): 6, ("stream", 0): 1, ("stream", 1): 101}
    assert evenly(start, latest, 100_000) is latest


def test_who_waits_for_a_partition_learns_that_all_that_was_left_of_it_was_a_marker(kafka: Broker) -> None:
    topic = kafka.create_topic("in", partitions=1)
    with Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        producer = TransactionalProducer(client, "writer")
        producer.send(topic, 0, build([Record(timestamp=1, key=b"k", value=b"v")]))
        end_transaction(client, producer.flush(), commit=True)
        producer.close()
    made = source(kafka, topic)
    start: dict[str, Any] = {topic: {"0": 1}, MORE: [[topic, 0]]}
    end: dict[str, Any] = {topic: {"0": 2}, MORE: []}
    (found,) = [blob for part in made.partitions(start, end) for batch in made.read(part) for blob in blobs_of(batch)]
    assert (found.topic, found.partition, found.more, found.data) == (topic, 0, False, EMPTY)
    (part,) = made.partitions({topic: {"0": 1}, MORE: []}, end)
    assert list(made.read(part)) == []
