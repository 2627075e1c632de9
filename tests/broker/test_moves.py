"""Replicas that move between the directories of a node: AlterReplicaLogDirs, what is seen of it, crashes, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.log.answers import Isolation
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Batch, Record, build, records, starts
from tests.broker.conftest import World
from tests.broker.test_node import produce
from tests.broker.test_storage import SimWorld
from tests.simulation.disk import Crash

SLOW = {"replica.alter.log.dirs.io.max.bytes.per.second": "1000"}
BIG = b"x" * 2000


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "one"), str(tmp_path / "two")


def world_of(paths: tuple[str, str], **overrides: str) -> World:
    given = {name.replace("_", "."): value for name, value in overrides.items()}
    return World(Path(paths[0]), {"log.dirs": ",".join(paths)} | given)


def move(world: World, path: str, topic: str = "t") -> Error:
    row = m.AlterReplicaLogDirsRequest_AlterReplicaLogDirTopic(topic, [0])
    answer = world.call(m.AlterReplicaLogDirsRequest([m.AlterReplicaLogDirsRequest_AlterReplicaLogDir(path, [row])]))
    return Error(answer.results[0].partitions[0].error_code)


def seen(world: World, topic: str = "t") -> dict[str, list[tuple[bool, int]]]:
    """Return where a partition lies: by directory, whether it is a future one, and its lag."""
    answer = world.call(m.DescribeLogDirsRequest(None))
    return {
        one.log_dir: [(p.is_future_key, p.offset_lag) for t in one.topics if t.name == topic for p in t.partitions]
        for one in answer.results
    }


def home(world: World, topic: str = "t") -> str:
    partition = world.node.replicas.by_name[topic][0]
    return world.node.replicas.home_of(partition).path


def other(world: World, topic: str = "t") -> str:
    return next(one.path for one in world.node.replicas.directories if one.path != home(world, topic))


def content(world: World, topic: str = "t") -> list[bytes | None]:
    log, found, at = world.node.replicas.by_name[topic][0].log, list[bytes | None](), 0
    at = log.start_offset
    while at < log.end_offset:
        span = log.read(at, 1 << 20, isolation=Isolation.LOG_END).span
        assert span is not None
        data = span.read()
        for batch in (Batch(data, position) for position in starts(data)):
            found += [record.value for record in records(batch) if record.offset >= log.start_offset]
            at = batch.next_offset
    return found


def produce_as(world: World, topic_id: bytes, sequence: int, value: bytes) -> Any:
    """Produce as an idempotent producer."""
    data = build(
        [Record(0, world.clock.wall_ms(), None, value)], producer_id=77, producer_epoch=0, base_sequence=sequence
    )
    part = m.ProduceRequest_PartitionProduceData(0, data)
    topic = m.ProduceRequest_TopicProduceData(topic_id=topic_id, partition_data=[part])
    answer = world.call(m.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]))
    return answer.responses[0].partition_responses[0]


def test_a_replica_moves_with_all_it_has_and_goes_on_there(paths: tuple[str, str]) -> None:
    world = world_of(paths)
    topic_id = world.create("t", file_delete_delay_ms="0")
    for number in range(5):
        assert produce_as(world, topic_id, number, b"%d" % number).error_code == Error.NONE
    source, target = home(world), other(world)
    assert move(world, target) == Error.NONE
    world.advance(100)
    assert home(world) == target
    assert seen(world) == {source: [], target: [(False, 0)]}
    assert produce_as(world, topic_id, 4, b"4").base_offset == 4, "it knows what a producer has sent"
    assert produce_as(world, topic_id, 5, b"5").base_offset == 5
    assert content(world) == [b"%d" % number for number in range(6)]
    world.advance(2000)
    assert not list(Path(source).glob("t-0*")), "what was left is removed"
    world.restart(clean=False)
    assert home(world) == target and content(world) == [b"%d" % number for number in range(6)]


def test_a_move_is_as_fast_as_it_may_be_and_shows_how_far_it_is(paths: tuple[str, str]) -> None:
    world = world_of(paths, **SLOW)
    topic_id = world.create("t", max_message_bytes="10000000")
    for _ in range(3):
        produce(world, topic_id, [BIG] * 400)  # more than is copied at once
    source, target = home(world), other(world)
    assert move(world, target) == Error.NONE
    assert seen(world) == {source: [(False, 0)], target: [(True, 800)]}
    assert [path.name.endswith("-future") for path in Path(target).glob("t-0*")] == [True]
    world.advance(60_000)
    assert seen(world)[target] == [(True, 800)], "it pays with time for what was copied"
    for _ in range(200):
        world.advance(60_000)
    assert seen(world) == {source: [], target: [(False, 0)]}
    assert len(content(world)) == 1200


def test_a_move_goes_on_after_a_restart_and_is_called_off_by_a_move_back(paths: tuple[str, str]) -> None:
    world = world_of(paths, **SLOW)
    topic_id = world.create("t")
    for _ in range(5):
        produce(world, topic_id, [BIG] * 400)
    source, target = home(world), other(world)
    move(world, target)
    for clean, lag in ((True, 1200), (False, 800)):  # what was copied is not copied again
        world.restart(clean)
        assert seen(world) == {source: [(False, 0)], target: [(True, lag)]}
    assert move(world, source) == Error.NONE
    assert seen(world) == {source: [(False, 0)], target: []}
    world.advance(2000)
    assert not list(Path(target).glob("t-0*"))


def test_a_topic_that_is_deleted_takes_its_move_along(paths: tuple[str, str]) -> None:
    world = world_of(paths, **SLOW)
    topic_id = world.create("t", file_delete_delay_ms="0")
    for _ in range(3):
        produce(world, topic_id, [BIG] * 400)
    move(world, other(world))
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")]))
    world.advance(100_000)
    assert not [path for one in paths for path in Path(one).glob("t-0*")]
    assert not world.node.moves.under_way


def test_a_log_that_begins_within_a_batch_is_moved_as_it_is(paths: tuple[str, str]) -> None:
    world = world_of(paths)
    topic_id = world.create("t")
    for number in range(3):
        produce(world, topic_id, [b"%d" % number] * 4)
    cut = m.DeleteRecordsRequest_DeleteRecordsPartition(0, 6)
    world.call(m.DeleteRecordsRequest([m.DeleteRecordsRequest_DeleteRecordsTopic("t", [cut])], 1000))
    target = other(world)
    move(world, target)
    world.advance(100)
    log = world.node.replicas.by_name["t"][0].log
    assert (home(world), log.start_offset, log.end_offset) == (target, 6, 12)
    assert content(world) == [b"1"] * 2 + [b"2"] * 4


def test_an_empty_log_is_moved(paths: tuple[str, str]) -> None:
    world = world_of(paths)
    topic_id, target = world.create("t"), other(world)
    move(world, target)
    world.advance(100)
    assert home(world) == target
    assert produce(world, topic_id, [b"first"]).base_offset == 0


def test_what_cannot_be_is_refused_as_kafka_does(paths: tuple[str, str]) -> None:
    world = world_of(paths, cordoned_log_dirs=paths[1])
    world.create("t")
    assert home(world) == paths[0], "a cordoned directory gets no new replicas"
    assert move(world, paths[1]) == Error.INVALID_REPLICA_ASSIGNMENT
    assert move(world, "/elsewhere") == Error.LOG_DIR_NOT_FOUND
    assert move(world, paths[0], "unknown") == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert move(world, paths[0]) == Error.NONE
    answer = world.call(m.DescribeLogDirsRequest(None))
    assert {one.log_dir: one.is_cordoned for one in answer.results} == {paths[0]: False, paths[1]: True}


@pytest.mark.parametrize("seed", range(150))
def test_a_loss_of_power_at_any_moment_leaves_all_that_was_synced(seed: int) -> None:
    world = SimWorld("/one,/two", flush_messages="1", **{"log.flush.interval.messages": "1"})
    topic_id = world.create("t")
    for number in range(4):
        assert produce(world, topic_id, [b"%d" % number]).error_code == Error.NONE
    target = other(world)
    world.machine.fuse = 1 + seed % 30
    try:
        move(world, target)
        world.advance(100)
    except Crash:
        pass
    world.machine.fuse = None
    world.lose_power(seed)
    assert content(world) == [b"0", b"1", b"2", b"3"]
    assert produce(world, topic_id, [b"4"]).base_offset == 4
