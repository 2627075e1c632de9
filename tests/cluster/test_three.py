"""Three nodes of Moldau as one cluster of real processes: what clients see while one of them fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.admin import groups, topics
from moldau.admin.metadata_log import MetadataLog
from moldau.client import Client
from moldau.client import Node as ToNode
from moldau.client import group as to_group
from moldau.testing import Cluster, cluster, eventually
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.machines.streamers import part, topology

TOPIC, PARTITIONS = "three", 6


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(3) as made:
        yield made


def settings(made: Cluster, **more: object) -> dict[str, object]:
    base = {"bootstrap.servers": made.bootstrap_servers, "broker.address.family": "v4", "log_level": 0}
    return base | {name.replace("_", "."): value for name, value in more.items()}


def active_controller(made: Cluster) -> int:
    asked = m.DescribeQuorumRequest_TopicData("__cluster_metadata", [m.DescribeQuorumRequest_PartitionData(0)])
    with Client({"bootstrap.servers": made.bootstrap_servers}) as client:
        return client.send(m.DescribeQuorumRequest([asked])).topics[0].partitions[0].leader_id


def in_sync(made: Cluster) -> dict[int, list[int]]:
    admin = AdminClient(settings(made))
    parts = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return {index: sorted(part.isrs) for index, part in parts.items()}


def create(made: Cluster) -> None:
    admin = AdminClient(settings(made))
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
    eventually(lambda: all(isr == [1, 2, 3] for isr in in_sync(made).values()))


def produce(made: Cluster, first: int, count: int, halfway: Callable[[], object]) -> None:
    """Send numbered records; after half of them something happens. Every one must be acknowledged."""
    failures: list[str] = []
    producer = Producer(settings(made, enable_idempotence=True, linger_ms=2))
    for number in range(first, first + count):
        done = lambda error, _: failures.append(str(error)) if error else None  # noqa: E731
        producer.produce(TOPIC, str(number), partition=number % PARTITIONS, on_delivery=done)
        producer.poll(0)
        if number == first + count // 2:
            halfway()
    assert producer.flush(60) == 0
    assert not failures, failures[:3]


def read(made: Cluster, count: int) -> list[int]:
    consumer = Consumer(settings(made, group_id="readers", auto_offset_reset="earliest"))
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    try:
        seen: list[int] = []
        while len(seen) < count and (records := consumer.consume(1000, 20)):
            seen += [int(record.value() or b"") for record in records if not record.error()]
        return seen
    finally:
        consumer.close()


def test_the_metadata_log_is_read_from_the_active_controller(three: Cluster) -> None:
    with Client({"bootstrap.servers": three.bootstrap_servers}) as client:
        kinds = [entry.record.SCHEMA.name for entry in MetadataLog(client, 10_000).read()]
    assert kinds.count("RegisterBrokerRecord") >= 3


def test_nothing_is_lost_or_doubled_whichever_node_is_killed(three: Cluster) -> None:
    create(three)
    total = 0
    for victim in (active_controller(three), 1 + active_controller(three) % 3):
        produce(three, total, 2000, lambda node=victim: three.kill(node))
        total += 2000
        three.start_again(victim)
        eventually(lambda: all(isr == [1, 2, 3] for isr in in_sync(three).values()))
    seen = read(three, total)
    assert sorted(seen) == list(range(total))
    for index in range(PARTITIONS):
        part = [number for number in seen if number % PARTITIONS == index]
        assert part == sorted(part), "the order of a partition is the producer's"


def test_a_frozen_controller_is_replaced_and_follows_when_it_wakes(three: Cluster) -> None:
    frozen = active_controller(three)
    three.pause(frozen)
    others = ",".join(three[node].bootstrap_servers for node in (1, 2, 3) if node != frozen)
    try:
        admin = AdminClient(settings(three, bootstrap_servers=others))
        eventually(lambda: admin.create_topics([NewTopic("meanwhile", 1, 2)])["meanwhile"].exception(30) is None)
    finally:
        three.resume(frozen)
    eventually(lambda: active_controller(three) != frozen)
    woken = AdminClient(settings(three, bootstrap_servers=three[frozen].bootstrap_servers))
    eventually(lambda: "meanwhile" in woken.list_topics(timeout=10).topics)


def test_a_node_that_stops_in_order_hands_over_what_it_leads(three: Cluster) -> None:
    stopped = active_controller(three)
    produce(three, 0, 2000, lambda: three[stopped].stop())
    assert active_controller(three) != stopped
    three.start_again(stopped)
    eventually(lambda: all(isr == [1, 2, 3] for isr in in_sync(three).values()))


PATIENT = {"broker.session.timeout.ms": "600000"}
SILENT = {"broker.heartbeat.interval.ms": "300000", "controller.quorum.fetch.timeout.ms": "60000"}


@pytest.mark.parametrize(("end", "more"), [("stop", SILENT), ("kill", {})], ids=["stop", "kill"])
def test_nodes_that_ended_together_come_back_before_a_session_is_over(end: str, more: dict[str, str]) -> None:
    """The last one could tell nobody that it ends; whoever is the controller sees that nobody listens there.

    Who stops waits neither for the next heartbeats of others nor for a majority that is gone.
    """
    with cluster(3, PATIENT | more, proxied=False) as made:
        create(made)
        produce(made, 0, 1000, lambda: None)
        for _ in range(2):
            for node in made.brokers.values():
                node.stop() if end == "stop" else node.kill()
            made.start_again(*made.brokers)
        eventually(lambda: all(isr == [1, 2, 3] for isr in in_sync(made).values()))
        assert sorted(read(made, 1000)) == list(range(1000))


def test_records_are_deleted_when_all_live_replicas_have_deleted_them(three: Cluster) -> None:
    """As Kafka's: a replica that does not answer is waited for until the time is up, one that is fenced is not."""
    topic, others = "cut", (2, 3)
    new = NewTopic(topic, 1, replica_assignment=[[1, *others]])
    admin = AdminClient(settings(three))
    admin.create_topics([new])[topic].result(30)
    producer = Producer(settings(three))
    for number in range(10):
        producer.produce(topic, str(number))
    assert producer.flush(60) == 0

    def cut(offset: int, timeout_ms: int) -> tuple[int, int]:
        part = m.DeleteRecordsRequest_DeleteRecordsPartition(0, offset)
        asked = m.DeleteRecordsRequest([m.DeleteRecordsRequest_DeleteRecordsTopic(topic, [part])], timeout_ms)
        answer = three[1].call(asked, 2).topics[0].partitions[0]
        return answer.error_code, answer.low_watermark

    assert cut(3, 30_000) == (Error.NONE, 3)
    assert cut(2, 30_000) == (Error.NONE, 3), "it has begun later before"
    three.pause(3)
    try:
        assert cut(6, 1000) == (Error.REQUEST_TIMED_OUT, 3)
        assert cut(6, 25_000) == (Error.NONE, 6), "it is fenced by now"
    finally:
        three.resume(3)
    eventually(lambda: cut(7, 25_000) == (Error.NONE, 7))
    eventually(lambda: starts_of(three, topic) == {1: 7, 2: 7, 3: 7})


def starts_of(made: Cluster, topic: str) -> dict[int, int]:
    """Return where the log of each replica begins, by what it answers to readers."""
    found: dict[int, int] = {}
    for node in (1, 2, 3):
        with Client({"bootstrap.servers": made[node].bootstrap_servers}) as client:
            topic_id = client.refresh([topic]).topics[topic].id
            part = m.FetchRequest_FetchPartition(0, fetch_offset=10, partition_max_bytes=1)
            rows = [m.FetchRequest_FetchTopic(topic, topic_id, [part])]
            answer = client.send(m.FetchRequest(topics=rows, session_epoch=-1, max_wait_ms=0), ToNode(node))
            found[node] = answer.responses[0].partitions[0].log_start_offset
    return found


def test_internal_topics_of_streams_groups_are_created_wherever_their_coordinator_is(three: Cluster) -> None:
    """Only the active controller creates topics, and coordinators are on other nodes, too."""
    admin = AdminClient(settings(three))
    admin.create_topics([NewTopic("lines", 2)])["lines"].result(30)
    controller = active_controller(three)
    with Client({"bootstrap.servers": three.bootstrap_servers}) as client:
        for number in range(20):
            group, words = f"counts-{number}", f"counts-{number}-words-repartition"
            parts = topology(part("0", "lines", sinks=[words]), part("1", reads=[words]))
            join = m.StreamsGroupHeartbeatRequest(group, "m", 0, rebalance_timeout_ms=30_000, process_id="p")
            join.topology, join.client_tags = parts, []
            join.active_tasks = join.standby_tasks = join.warmup_tasks = []
            joined = client.send(join, to_group(group))
            assert joined.error_code == Error.NONE, joined.error_message
            assert not [told.status_detail for told in joined.status if "failed" in told.status_detail]
            eventually(lambda words=words: words in [one.name for one in topics.listed(client)])
            if groups.described(client, group).coordinator != controller:
                return
    raise AssertionError("the coordinators of twenty groups are all on the active controller")
