"""A connection reads on while its produces wait: they are appended in order and answered in order, within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.broker.connection import PENDING_ANSWERS, PENDING_BYTES, PRODUCE
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.broker.conftest import FEW, Client, Held, World
from tests.broker.test_node import fetch_request, values_of
from tests.broker.transactional import Transactional

FETCH, VERSION = b"\0\1", 9
SYNCED, PLAIN = "synced", "plain"  # topics: what is written to the first waits for a sync


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def world(tmp_path: Path, held: Held) -> World:
    few = {name.replace("_", "."): value for name, value in FEW.items()}
    world = World(tmp_path, few, background=held)
    world.create(SYNCED, flush_messages="1")
    world.create(PLAIN)
    world.client = Client(world.node)
    held.holds = True
    return world


def produce(topic: str, acks: int = -1, value: bytes = b"v", timeout_ms: int = 1000, **options: Any) -> Any:
    batch = bytes(build([Record(0, 0, None, value)], **options))
    rows = [m.ProduceRequest_PartitionProduceData(0, batch)]
    return m.ProduceRequest(None, acks, timeout_ms, [m.ProduceRequest_TopicProduceData(topic, partition_data=rows)])


def send(world: World, *requests: Any) -> None:
    for request in requests:
        world.client.send(request, VERSION)


def taken(client: Client) -> list[tuple[int, Error, int]]:
    """The answers that are due: number of the request, error, base offset."""
    data = b"".join(client.connection.out)
    client.connection.out.clear()
    found = []
    while data:
        size = int.from_bytes(data[:4])
        body, data = data[4 : 4 + size], data[4 + size :]
        _, position = frames.response_header(0, VERSION, body)
        answer = codec.decode(m.ProduceResponse, VERSION, memoryview(body), position)
        (part,) = answer.responses[0].partition_responses
        found.append((int.from_bytes(body[:4]), Error(part.error_code), part.base_offset))
    return found


def end_offset(world: World, topic: str) -> int:
    return world.node.replicas.by_name[topic][0].log.end_offset


def is_at_rest(world: World) -> bool:
    connection = world.client.connection
    return not connection.pending and not connection.pending_bytes and not world.node.waits.live


def test_produces_are_appended_at_once_and_answered_in_order(world: World, held: Held) -> None:
    send(world, produce(SYNCED), produce(PLAIN, 1), produce(SYNCED, 1), produce(PLAIN, 0), produce(PLAIN))
    assert (end_offset(world, SYNCED), end_offset(world, PLAIN)) == (2, 3)
    assert taken(world.client) == []
    held.release()
    none = Error.NONE
    assert taken(world.client) == [(0, none, 0), (1, none, 0), (2, none, 1), (4, none, 2)]
    assert is_at_rest(world)


def test_those_that_came_during_a_sync_share_the_next(world: World, held: Held) -> None:
    send(world, *(produce(SYNCED, value=b"%d" % n) for n in range(20)))
    syncs = 0
    while held.jobs:
        work, done = held.jobs.pop(0)
        done(work())
        syncs += 1
        assert len(taken(world.client)) == (1 if syncs == 1 else 19)
    assert syncs == 2
    topic_id = world.node.cluster.topics[SYNCED].id
    assert values_of(Client(world.node).call(fetch_request(topic_id), 18)) == [b"%d" % n for n in range(20)]


def test_a_produce_that_is_refused_is_answered_in_its_turn(world: World, held: Held) -> None:
    sequences = [{"producer_id": 5, "producer_epoch": 0, "base_sequence": number} for number in (0, 7, 1)]
    send(world, *(produce(SYNCED, **sequence) for sequence in sequences), produce("missing"))
    assert taken(world.client) == []
    held.release()
    refused, unknown = Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_TOPIC_OR_PARTITION
    assert taken(world.client) == [(0, Error.NONE, 0), (1, refused, -1), (2, Error.NONE, 1), (3, unknown, -1)]


def test_a_sync_that_fails_is_told_to_all_who_waited(world: World, held: Held) -> None:
    send(world, produce(SYNCED), produce(PLAIN), produce(SYNCED))
    held.release(OSError("gone"))
    assert [error for _, error, _ in taken(world.client)] == [
        Error.KAFKA_STORAGE_ERROR,
        Error.NONE,
        Error.KAFKA_STORAGE_ERROR,
    ]
    assert is_at_rest(world)


def test_an_answer_whose_time_is_up_still_waits_for_those_before_it(world: World, held: Held) -> None:
    send(world, produce(SYNCED), produce(SYNCED, timeout_ms=10), produce(SYNCED, timeout_ms=5000))
    assert world.client.connection.next_deadline_ms() == world.clock.now_ms + 10
    world.advance(11)
    assert taken(world.client) == []
    assert world.client.connection.next_deadline_ms() == world.clock.now_ms + 989
    held.release()
    assert [error for _, error, _ in taken(world.client)] == [Error.NONE, Error.REQUEST_TIMED_OUT, Error.NONE]


def test_who_hangs_up_is_forgotten_with_all_that_waited(world: World, held: Held) -> None:
    send(world, produce(SYNCED), produce(PLAIN), produce(SYNCED))
    world.node.disconnect(world.client.connection)
    assert is_at_rest(world) and not world.node.waits.watched
    held.release()
    assert taken(world.client) == []
    assert end_offset(world, SYNCED) == 2


def test_a_failure_without_an_answer_ends_the_connection_after_the_answers(world: World, held: Held) -> None:
    send(world, produce(SYNCED), produce("missing", 0))
    connection = world.client.connection
    assert connection.closing and connection.pending
    held.release()
    assert [number for number, _, _ in taken(world.client)] == [0]


def test_other_requests_wait_for_their_turn(world: World, held: Held) -> None:
    takes = world.client.connection.takes
    assert takes(PRODUCE) and takes(FETCH)
    send(world, produce(SYNCED))
    assert takes(PRODUCE) and not takes(FETCH)
    held.release()
    assert takes(PRODUCE) and takes(FETCH)
    world.client.send(fetch_request(world.node.cluster.topics[PLAIN].id, max_wait_ms=500), 18)
    assert not takes(PRODUCE) and not takes(FETCH)


def test_the_number_of_answers_that_wait_is_bounded(world: World, held: Held) -> None:
    takes = world.client.connection.takes
    for number in range(PENDING_ANSWERS):
        assert takes(PRODUCE)
        send(world, produce(SYNCED if number % 2 == 0 else PLAIN))
    assert not takes(PRODUCE)
    held.release()
    assert takes(PRODUCE) and len(taken(world.client)) == PENDING_ANSWERS


def test_the_size_of_requests_that_wait_is_bounded(world: World, held: Held) -> None:
    size = 700_000
    for _ in range(PENDING_BYTES // size + 1):
        assert world.client.connection.takes(PRODUCE)
        send(world, produce(SYNCED, value=b"x" * size))
    assert not world.client.connection.takes(PRODUCE)
    held.release()
    assert is_at_rest(world)


def test_heads_are_learnt_while_answers_wait(world: World, held: Held) -> None:
    send(world, produce(SYNCED), produce(PLAIN))
    held.release()
    assert len(taken(world.client)) == 2
    decoded, world.node.routes = world.node.routes, {}
    send(world, produce(SYNCED), produce(PLAIN), produce(SYNCED))
    assert not world.node.routes, "they were served by their heads"
    world.node.routes = decoded
    assert taken(world.client) == []
    held.release()
    assert taken(world.client) == [(2, Error.NONE, 1), (3, Error.NONE, 1), (4, Error.NONE, 2)]


def test_nothing_passes_a_produce_that_is_not_appended_yet(tmp_path: Path, held: Held) -> None:
    few = {name.replace("_", "."): value for name, value in FEW.items()}
    world = World(tmp_path, few | {"log.flush.interval.messages": "1"}, background=held)
    world.create("t")
    producer = Transactional(world.coordinate(), "x").begin()
    held.holds = True
    takes = world.client.connection.takes
    row = m.ProduceRequest_PartitionProduceData(0, producer.batch(0, b"a"))
    data = m.ProduceRequest_TopicProduceData("t", partition_data=[row])
    assert world.call(m.ProduceRequest("x", -1, 1000, [data]), 12) is None
    assert end_offset(world, "t") == 0, "the coordinator has not let it in yet"
    assert not takes(PRODUCE)
    work, done = held.jobs.pop(0)
    done(work())
    assert end_offset(world, "t") == 1
    assert takes(PRODUCE), "only its answer waits"
    held.release()
    assert world.client.take().responses[0].partition_responses[0].error_code == Error.NONE
