"""The source of a conveyor: what shards learn of partitions."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from moldau.client import Client, Record, TransactionalProducer, build
from moldau.client import end as end_transaction
from moldau.plan.blobs import EMPTY
from moldau.plan.conveyor import source as conveyor_source
from moldau.plan.conveyor.datasource import source_of
from moldau.plan.conveyor.rows import Places, blobs_of
from moldau.plan.conveyor.source import PLACES, WATCH, PackedSource
from moldau.spark.source.planning import MORE, Position, evenly
from moldau.streams import StreamsBuilder, String
from moldau.testing import Broker

from .in_memory import Conveyor

TEXTS = {"default.key.serde": String(), "default.value.serde": String()}


def source(kafka: Broker, topic: str, **more: str) -> Any:
    builder = StreamsBuilder("app", TEXTS)
    builder.stream(topic).group_by_key().count().to_stream().map_values(str).to("out")
    schedule = Conveyor(builder.build(), {topic: 1}, TEXTS).conveyed.schedule
    places = json.dumps(Places.of(schedule, 2).to_json())
    own = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, PLACES: places}
    return source_of({**own, "includeHeaders": "true", **more}, PackedSource)


def write(kafka: Broker, topic: str) -> None:
    with Client({"bootstrap.servers": kafka.bootstrap_servers}) as client:
        producer = TransactionalProducer(client, "writer")
        producer.send(topic, 0, build([Record(timestamp=1, key=b"k", value=b"v")]))
        end_transaction(client, producer.flush(), commit=True)
        producer.close()


def test_a_batch_that_is_limited_reads_a_small_topic_to_its_end() -> None:
    start = Position({("table", 0): 5, ("stream", 0): 0, ("stream", 1): 100})
    latest = Position({("table", 0): 15, ("stream", 0): 1_000, ("stream", 1): 60_000})
    assert evenly(start, latest, 400).offsets == {("table", 0): 15, ("stream", 0): 195, ("stream", 1): 295}
    assert evenly(start, latest, 2_000).offsets == {("table", 0): 15, ("stream", 0): 995, ("stream", 1): 1_095}
    assert evenly(start, latest, 1).offsets == {("table", 0): 6, ("stream", 0): 1, ("stream", 1): 101}
    assert evenly(start, latest, 100_000) is latest


def test_who_waits_for_a_partition_learns_that_all_that_was_left_of_it_was_a_marker(kafka: Broker) -> None:
    topic = kafka.create_topic("in", partitions=1)
    write(kafka, topic)
    made = source(kafka, topic)
    start: dict[str, Any] = {topic: {"0": 1}, MORE: [[topic, 0]]}
    end: dict[str, Any] = {topic: {"0": 2}, MORE: []}
    (found,) = [blob for part in made.partitions(start, end) for batch in made.read(part) for blob in blobs_of(batch)]
    assert (found.topic, found.partition, found.more, found.data) == (topic, 0, False, EMPTY)
    (part,) = made.partitions({topic: {"0": 1}, MORE: []}, end)
    assert list(made.read(part)) == []


def test_a_record_that_comes_between_two_triggers_is_not_waited_for(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conveyor_source, "LONGEST_WATCH_S", 30.0)
    topic = kafka.create_topic("in", partitions=1)
    made = source(kafka, topic, **{WATCH: "30000", "startingOffsets": "earliest"})
    start = made.initialOffset()
    later = threading.Timer(0.2, write, (kafka, topic))
    later.start()
    end = made.latestOffset(start, ReadAllAvailable())
    later.join()
    assert end[topic]["0"] > 0


def test_who_reads_what_there_is_does_not_watch(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.create_topic("in", partitions=1)
    made = source(kafka, topic, **{WATCH: "100", "startingOffsets": "earliest"})
    start = made.initialOffset()
    made.prepareForTriggerAvailableNow()
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits"))
    assert made.latestOffset(start, ReadAllAvailable()) is start
