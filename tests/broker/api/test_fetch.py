"""Fetch over a session: how much it looks at, and that nothing is missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.broker.api import fetch
from moldau.machines.metadata.acls import DENY, LITERAL, READ, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.broker.conftest import Client, World

MANY = 40
BY_ID, BY_NAME = 17, 12
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow_everyone_if_no_acl_found": "true",
}


class Consumer:
    """A client with a session."""

    def __init__(self, world: World, version: int = BY_ID, **options: Any) -> None:
        self.world, self.version, self.options = world, version, options
        self.client = Client(world.node)
        self.session = self.epoch = 0

    def fetch(self, named: dict[int, int] | None = None, **options: Any) -> dict[int, Any] | None:
        """Ask for partitions of `t` from these offsets on; returns rows by partition, or None while it waits."""
        topic = self.world.node.cluster.topics.get("t")
        by_id = {"topic_id": topic.id} if self.version >= 13 and topic else {"topic": "t"}
        rows = [
            m.FetchRequest_FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in (named or {}).items()
        ]
        topics = [m.FetchRequest_FetchTopic(**by_id, partitions=rows)] if rows else []
        said = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 22} | self.options | options
        said |= {"session_id": self.session, "session_epoch": self.epoch}
        self.client.send(m.FetchRequest(topics=topics, **said), self.version)
        return self.take()

    def take(self) -> dict[int, Any] | None:
        answer = self.client.take()
        if answer is None:
            return None
        assert answer.error_code == Error.NONE
        self.session, self.epoch = answer.session_id, self.epoch + 1
        return {row.partition_index: row for topic in answer.responses for row in topic.partitions}


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that were looked at."""
    seen: list[int] = []
    read = fetch.read

    def counted(known: Any, wanted: Any, *rest: Any) -> Any:
        seen.append(wanted.index)
        return read(known, wanted, *rest)

    monkeypatch.setattr(fetch, "read", counted)
    return seen


def produce(world: World, index: int, value: bytes = b"v") -> None:
    batch = bytes(build([Record(0, world.clock.wall_ms(), None, value)]))
    data = m.ProduceRequest_TopicProduceData("t", partition_data=[m.ProduceRequest_PartitionProduceData(index, batch)])
    assert Client(world.node).call(m.ProduceRequest(None, -1, 1000, [data]), 9) is not None


def level(world: World, **options: Any) -> Consumer:
    """A consumer that has all there is."""
    world.create("t", MANY)
    consumer = Consumer(world, **options)
    rows = consumer.fetch(dict.fromkeys(range(MANY), 0), max_wait_ms=0)
    assert rows is not None and len(rows) == MANY
    return consumer


def test_nothing_is_looked_at_while_nothing_changes(world: World, looked: list[int]) -> None:
    consumer = level(world)
    looked.clear()
    for _ in range(3):
        assert consumer.fetch() is None
        world.advance(500)
        assert consumer.take() == {}
    assert looked == []


def test_only_what_changed_is_looked_at(world: World, looked: list[int]) -> None:
    consumer = level(world)
    looked.clear()
    assert consumer.fetch() is None
    produce(world, 7)
    assert set(consumer.take() or ()) == {7} == set(looked)
    looked.clear()
    produce(world, 9)  # while no fetch waits
    rows = consumer.fetch({7: 1})
    assert rows is not None and set(rows) == {9} and sorted(looked) == [7, 9]


def test_what_is_too_little_is_added_up(world: World, looked: list[int]) -> None:
    consumer = level(world)
    assert consumer.fetch(min_bytes=1000) is None
    looked.clear()
    for index in range(8):
        produce(world, index, b"x" * 30)
        assert consumer.take() is None
    assert len(looked) < 20, "each was looked at when it changed"
    produce(world, 8, b"x" * 500)
    assert set(consumer.take() or ()) == set(range(9))


def test_records_that_were_not_taken_are_given_again(world: World) -> None:
    consumer = level(world)
    produce(world, 3)
    for _ in range(3):
        rows = consumer.fetch()
        assert rows is not None and rows[3].records
    consumer.fetch({3: 1}, max_wait_ms=0)
    assert consumer.fetch() is None


def test_each_partition_gets_its_turn(world: World) -> None:
    consumer = level(world)
    offsets: dict[int, int] = {}
    turns = []
    for _ in range(4):
        for index in range(4):
            produce(world, index, b"x" * 100)
    for _ in range(8):
        rows = consumer.fetch(dict(offsets), max_bytes=1) or {}
        offsets = {index: offsets.get(index, 0) + 1 for index, row in rows.items() if row.records}
        turns += offsets
    assert sorted(turns[:4]) == sorted(turns[4:]) == [0, 1, 2, 3]


def test_the_start_of_a_log_is_told(world: World) -> None:
    consumer = level(world)
    produce(world, 5)
    consumer.fetch()
    consumer.fetch({5: 1}, max_wait_ms=0)
    part = m.DeleteRecordsRequest_DeleteRecordsPartition(5, 1)
    world.call(m.DeleteRecordsRequest([m.DeleteRecordsRequest_DeleteRecordsTopic("t", [part])]), 2)
    rows = consumer.fetch(max_wait_ms=0)
    assert rows is not None and rows[5].log_start_offset == 1
    assert consumer.fetch() is None


def test_what_changes_without_a_signal_is_found_within_a_second(world: World) -> None:
    consumer = level(world)
    assert consumer.fetch(max_wait_ms=0) == {}
    world.node.replicas.by_name["t"][4].log.fail("by the test")
    world.advance(1000)
    rows = consumer.fetch()
    assert rows is not None and rows[4].error_code == Error.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_made_again_is_watched_again(world: World) -> None:
    consumer = level(world, version=BY_NAME)
    assert consumer.fetch() is None
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")], [], 1000))
    assert {row.error_code for row in (consumer.take() or {}).values()} == {Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(consumer.fetch() or ()) == MANY
    world.create("t", MANY)
    assert len(consumer.fetch(max_wait_ms=0) or ()) == MANY
    assert consumer.fetch() is None
    produce(world, 2)
    assert set(consumer.take() or ()) == {2}


def test_who_reads_in_another_way_looks_at_everything(world: World, looked: list[int]) -> None:
    consumer = level(world)
    looked.clear()
    assert consumer.fetch(isolation_level=1) is None
    assert len(looked) == MANY


def test_a_session_that_ends_watches_nothing(world: World) -> None:
    before = dict(world.node.waits.watched)
    consumer = level(world)
    assert len(world.node.waits.watched) == len(before) + MANY
    topic = world.node.cluster.topics["t"].id
    forgotten = [m.FetchRequest_ForgottenTopic(topic_id=topic, partitions=[0, 1])]
    assert consumer.fetch(forgotten_topics_data=forgotten, max_wait_ms=0) == {}
    assert len(world.node.waits.watched) == len(before) + MANY - 2
    consumer.epoch = -1
    consumer.fetch()
    assert world.node.waits.watched == before and not world.node.fetch_sessions.sessions


def test_a_session_that_is_evicted_while_it_waits_is_answered_in_time(world: World) -> None:
    consumer = level(world)
    assert consumer.fetch() is None
    world.node.fetch_sessions.end(consumer.session)
    produce(world, 1)
    world.advance(500)
    assert consumer.take() == {}


def test_a_right_that_is_taken_away_is_noticed(make_world: Callable[..., World]) -> None:
    world = make_world(**AUTHORIZER)
    consumer = level(world)
    assert consumer.fetch(max_wait_ms=0) == {}
    acl = m.CreateAclsRequest_AclCreation(TOPIC, "t", LITERAL, "User:ANONYMOUS", "*", READ, DENY)
    assert world.call(m.CreateAclsRequest([acl])).results[0].error_code == Error.NONE
    rows = consumer.fetch() or {}
    assert {row.error_code for row in rows.values()} == {Error.TOPIC_AUTHORIZATION_FAILED} and len(rows) == MANY
