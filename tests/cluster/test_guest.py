"""A Moldau broker under Apache Kafka's controllers: it registers, leads, follows, forwards, and leaves in order."""

from __future__ import annotations

import signal
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ElectionType, Producer
from confluent_kafka.admin import NewTopic

from moldau.client import Client
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.cluster import Cluster as Image
from moldau.settings import read_properties
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, batches, build, records
from tests.cluster.clients import PARTITIONS, admin, create, is_placed, logs_of, place, placements, produce, read
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
TOPIC = "mixed"


@pytest.fixture(scope="module", params=[KAFKA, MOLDAU])
def pair(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Two brokers, one of each kind. The first is the controller too, of the kind that the test is named after."""
    first, second = (KAFKA, MOLDAU) if request.param == KAFKA else (MOLDAU, KAFKA)
    nodes = {1: (first, "broker,controller"), 2: (second, "broker")}
    with cluster(kafka_libs, tmp_path_factory.mktemp("pair"), nodes) as made:
        yield made


def test_both_lead_both_follow_and_a_stop_and_a_start_lose_nothing(pair: Cluster) -> None:
    eventually(lambda: set(admin(pair).list_topics(timeout=10).brokers) == {1, 2})
    create(pair, TOPIC)
    spread = eventually(lambda: placements(pair, TOPIC))
    assert {leader for leader, _ in spread.values()} == {1, 2}
    produce(pair, TOPIC, range(5000))
    assert all(isr == [1, 2] for _, isr in placements(pair, TOPIC).values())
    assert read(pair, TOPIC, 5000) == list(range(5000))
    assert pair[2].stop() == 0
    after = placements(pair, TOPIC)
    assert {leader for leader, _ in after.values()} == {1}
    produce(pair, TOPIC, range(5000, 7000))
    assert read(pair, TOPIC, 7000) == list(range(7000))
    pair[2].start()
    pair[2].await_port()
    eventually(lambda: all(isr == [1, 2] for _, isr in placements(pair, TOPIC).values()))


def test_both_replicas_hold_the_same_bytes(pair: Cluster) -> None:
    produce(pair, TOPIC, range(7000, 7100))
    eventually(lambda: logs_of(pair, 1, TOPIC) == logs_of(pair, 2, TOPIC))
    assert len(logs_of(pair, 2, TOPIC)) == PARTITIONS


def test_the_controller_knows_in_which_directory_each_replica_lies(pair: Cluster) -> None:
    """Both brokers have two; the metadata log on Moldau's disk is what the controller has written."""
    data = pair[2].folder / "data"
    known = {
        read_properties(str(path))["directory.id"]: path.parent for path in pair[2].folder.glob("*/meta.properties")
    }
    assert len(known) == 2

    def found() -> set[str]:
        image = Image()
        for batch in batches((data / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()):
            for record in () if batch.is_control else records(batch):
                image.replay(metadata_records.decode(record.value or b""))
        parts = image.topics[TOPIC].partitions
        pairs = [(part.index, part.directories[part.replicas.index(2)]) for part in parts.values()]
        homes = {index: known.get(urlsafe_b64encode(where).decode().rstrip("=")) for index, where in pairs}
        assert all(home is not None and (home / f"{TOPIC}-{index}").is_dir() for index, home in homes.items()), homes
        return {str(home) for home in homes.values()}

    assert len(eventually(found)) == 2, "its replicas are spread over both"


def test_a_damaged_replica_is_fetched_again_whoever_is_the_controller(pair: Cluster) -> None:
    ours = next(one for one in pair.members.values() if one.kind == MOLDAU)
    place(pair, "damaged", [ours.id, 3 - ours.id])
    for number in range(8):  # a batch each
        produce(pair, "damaged", [number], value=b" " + b"x" * 100)
    eventually(lambda: is_placed(pair, "damaged", ours.id, [1, 2]))
    ours.stop(signal.SIGKILL)
    (path,) = ours.folder.glob(f"*/damaged-0/{0:020}.log")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)
    ours.start()
    ours.await_port()
    eventually(lambda: "a damaged log is fetched again" in ours.log.read_text(), 90)
    eventually(lambda: is_placed(pair, "damaged", None, [1, 2]), 90)
    eventually(lambda: logs_of(pair, 1, "damaged") == logs_of(pair, 2, "damaged"))
    assert read(pair, "damaged", 8, partitions=1) == list(range(8))


def test_transactions_end_on_both_sides_whoever_coordinates_them(pair: Cluster) -> None:
    create(pair, "exact")
    expected: list[int] = []
    for number in range(6):  # their coordinators are on both sides
        producer = Producer(pair.client(transactional_id=f"t{number}", transaction_timeout_ms=30_000))
        producer.init_transactions(60)
        for commit in (True, False, True):
            producer.begin_transaction()
            for index in range(PARTITIONS):
                value = len(expected) if commit else -1
                producer.produce("exact", str(value), partition=index)
                expected += [value] if commit else []
            # To abort before the coordinator knows of any partition is an error of librdkafka's with every broker.
            assert producer.flush(60) == 0
            producer.commit_transaction(60) if commit else producer.abort_transaction(60)
    leaders = {leader for leader, _ in placements(pair, "__transaction_state").values()}
    assert leaders == {1, 2}
    assert read(pair, "exact", len(expected), isolation_level="read_committed") == expected


def test_groups_go_on_where_they_were_when_their_coordinator_moves(pair: Cluster) -> None:
    def take(group: str, count: int) -> list[int]:
        consumer = Consumer(pair.client(group_id=group, auto_offset_reset="earliest", enable_auto_commit=False))
        consumer.subscribe([TOPIC])
        try:
            seen: list[int] = []
            while len(seen) < count and (records := consumer.consume(min(100, count - len(seen)), 30)):
                seen += [int(record.value()) for record in records if not record.error()]
            consumer.commit(asynchronous=False)
            return seen
        finally:
            consumer.close()

    groups = [f"g{number}" for number in range(4)]
    first = {group: take(group, 1000) for group in groups}
    assert pair[2].stop() == 0
    second = {group: take(group, 6100) for group in groups}
    pair[2].start()
    pair[2].await_port()
    for group in groups:
        assert sorted(first[group] + second[group]) == list(range(7100)), group


def test_who_asks_the_wrong_broker_is_told_who_leads_as_kafka_does(pair: Cluster) -> None:
    """A topic on each side alone: each broker is asked about the other's."""
    client = admin(pair, 2)
    for node in (1, 2):
        client.create_topics([NewTopic(f"only{node}", 1, replica_assignment=[[node]])])[f"only{node}"].result(120)
    batch = build([Record(0, 0, None, b"x")])
    with Client({"bootstrap.servers": pair.bootstrap}) as asking:
        everything = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=f"only{node}") for node in (1, 2)])

        def knows(node: int) -> bool:
            return not any(topic.error_code for topic in asking.send(everything, node).topics)

        eventually(lambda: knows(1) and knows(2))  # each by itself: one may have heard of a topic before the other
        said = {}
        for asked, topic in ((1, "only2"), (2, "only1")):
            leader, part = 3 - asked, m.FetchRequest_FetchPartition(0, partition_max_bytes=100)
            topic_id = asking.refresh([topic]).topics[topic].id
            fetch = m.FetchRequest(topics=[m.FetchRequest_FetchTopic(topic, topic_id, [part])], session_epoch=-1)
            data = m.ProduceRequest_PartitionProduceData(0, batch)
            produce = m.ProduceRequest(None, -1, 1000, [m.ProduceRequest_TopicProduceData(topic, topic_id, [data])])
            answers = [asking.send(one, asked, retry=False) for one in (fetch, produce)]
            rows = [answers[0].responses[0].partitions[0], answers[1].responses[0].partition_responses[0]]
            for answer, row in zip(answers, rows, strict=True):
                assert row.error_code == Error.NOT_LEADER_OR_FOLLOWER
                assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (leader, 0)
                assert [(one.node_id, one.port) for one in answer.node_endpoints] == [(leader, pair[leader].port)]
            said[asked] = [row.error_code for row in rows]
    assert said[1] == said[2]


def test_a_killed_broker_loses_nothing_and_comes_back(pair: Cluster) -> None:
    eventually(lambda: all(isr == [1, 2] for _, isr in placements(pair, TOPIC).values()))
    client = admin(pair)
    client.elect_leaders(ElectionType.PREFERRED).result(30)
    eventually(lambda: {leader for leader, _ in placements(pair, TOPIC).values()} == {1, 2})
    produce(pair, TOPIC, range(7100, 10100), halfway=lambda: pair[2].stop(signal.SIGKILL))
    assert {leader for leader, _ in placements(pair, TOPIC).values()} == {1}
    pair[2].start()
    pair[2].await_port()
    eventually(lambda: all(isr == [1, 2] for _, isr in placements(pair, TOPIC).values()))
    assert read(pair, TOPIC, 10_100) == list(range(10_100))
    eventually(lambda: logs_of(pair, 1, TOPIC) == logs_of(pair, 2, TOPIC))
