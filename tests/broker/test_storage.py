"""A node whose disk is full, fails or has rotted, on the simulator's disk: it says so, and goes on where it can."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.node import Node
from moldau.broker.rim.background import Inline
from moldau.broker.storage import StartError
from moldau.machines.metadata.cluster import Endpoint
from moldau.settings import Settings
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build, records, starts
from tests.broker.conftest import Client, ManualClock, World
from tests.broker.shares import Member, initialize
from tests.broker.test_node import produce
from tests.broker.transactional import fetch
from tests.simulation.disk import Machine, SimDisk


class SimWorld(World):
    """A world whose files are simulated."""

    def __init__(self, directories: str = "/data", **overrides: str) -> None:
        self.directories = directories
        self.overrides = {name.replace("_", "."): value for name, value in overrides.items()}
        self.clock = ManualClock()
        self.machine = Machine(Random(1), self.clock.wall_ms, Counter())
        self.node = self.start()
        self.client = Client(self.node)

    def start(self) -> Node:
        given = {"log.dirs": self.directories, "node.id": "1", "log.retention.check.interval.ms": "1000"}
        settings = Settings.load(given | self.overrides)
        node = Node(settings, SimDisk(self.machine), self.clock, Random(7), Inline())
        node.start((Endpoint("PLAINTEXT", "127.0.0.1", 9092, 0),))
        return node

    def lose_power(self, seed: int) -> None:
        """What was not synced is gone, all or some of it; the node starts again over the rest."""
        self.machine.random.seed(seed)
        self.machine.lose_power()
        self.node = self.start()
        self.client = Client(self.node)

    def log_of(self, topic: str):
        return self.node.replicas.by_name[topic][0].log


def test_a_start_on_a_full_disk_is_refused_with_a_sentence_and_works_when_there_is_room():
    world = SimWorld()
    world.create("t")
    world.node.stop()
    world.machine.full = True
    with pytest.raises(StartError, match="full"):
        world.start()
    world.machine.full = False
    assert "t" in world.start().cluster.topics


def test_a_first_start_on_a_full_disk_is_refused_with_a_sentence():
    machine = Machine(Random(1), lambda: 0, Counter())
    machine.full = True
    settings = Settings.load({"log.dirs": "/data"})
    with pytest.raises(StartError):
        Node(settings, SimDisk(machine), ManualClock(), Random(7), Inline()).start(())


@pytest.mark.parametrize("position", [8, 17, 30, 62, 100])
def test_metadata_with_a_flipped_bit_is_not_believed(position: int):
    world = SimWorld()
    world.create("t")
    world.node.stop()
    world.machine.inode("/data/__cluster_metadata-0/00000000000000000000.log").rot(position, 2)
    with pytest.raises(StartError, match="metadata"):
        world.start()


def test_metadata_whose_last_batch_seems_longer_than_the_log_is_not_believed():
    world = SimWorld()
    world.create("t")
    world.node.stop()
    inode = world.machine.inode("/data/__cluster_metadata-0/00000000000000000000.log")
    inode.rot(list(starts(bytes(inode.data)))[-1] + 10, 7)
    with pytest.raises(StartError, match="metadata"):
        world.start()


def test_retention_on_a_full_disk_frees_what_it_can_and_the_partition_serves_on():
    world = SimWorld()
    topic_id = world.create("t", internal_segment_bytes="200", retention_ms="100", file_delete_delay_ms="0")
    for _ in range(4):
        produce(world, topic_id, [b"x" * 60])
    world.machine.full = True
    for _ in range(20):
        world.advance(2000)
    assert world.log_of("t").start_offset >= 3
    world.machine.full = False
    assert produce(world, topic_id, [b"y"]).error_code == Error.NONE


def test_files_that_cannot_be_removed_take_only_their_partition_offline():
    world = SimWorld()
    ids = [
        world.create(name, internal_segment_bytes="200", retention_ms="100", file_delete_delay_ms="0") for name in "ab"
    ]
    for topic_id in ids:
        produce(world, topic_id, [b"x" * 60])
        produce(world, topic_id, [b"x" * 60])
    world.advance(1000)
    world.machine.broken.add("/data/a-0")
    world.advance(1000)
    assert produce(world, ids[0], [b"y"]).error_code == Error.KAFKA_STORAGE_ERROR
    assert produce(world, ids[1], [b"y"]).error_code == Error.NONE


def test_a_producer_id_that_cannot_be_written_down_is_not_given_out():
    world = SimWorld()
    world.machine.full = True
    answer = world.call(m.InitProducerIdRequest(None, 60_000))
    assert (answer.error_code, answer.producer_id) == (Error.KAFKA_STORAGE_ERROR, -1)
    world.machine.full = False
    assert world.call(m.InitProducerIdRequest(None, 60_000)).producer_id >= 0


def test_a_snapshot_of_the_metadata_waits_for_room():
    world = SimWorld()
    world.create("t")
    world.node.metadata.bytes_since_snapshot = 1 << 30
    world.machine.full = True
    world.advance(1000)
    assert not world.node.metadata.snapshots()
    world.machine.full = False
    world.advance(1000)
    assert world.node.metadata.snapshots()


def test_records_are_not_called_deleted_if_that_cannot_be_written_down():
    world = SimWorld()
    produce(world, world.create("t"), [b"v"])
    row = m.DeleteRecordsRequest_DeleteRecordsTopic("t", [m.DeleteRecordsRequest_DeleteRecordsPartition(0, 1)])
    world.machine.broken.add("/data/log-start-offset-checkpoint.tmp")
    answer = world.call(m.DeleteRecordsRequest([row], 1000)).topics[0].partitions[0]
    assert answer.error_code == Error.KAFKA_STORAGE_ERROR


def test_compaction_rests_when_the_disk_is_full():
    world = SimWorld()
    small = {"internal_segment_bytes": "200", "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.0"}
    topic_id = world.create("t", **small)
    for _ in range(3):
        produce(world, topic_id, [b"x" * 90], key=b"k")
    world.machine.full = True
    world.advance(20_000)
    before = world.machine.injected["ENOSPC"]
    for _ in range(100):
        world.advance(2)
    assert world.machine.injected["ENOSPC"] - before < 10


def test_partitions_of_a_directory_that_is_offline_at_the_start_are_offline_and_not_made_anew():
    world = SimWorld("/one,/two")
    topic_id = world.create("t", 2)
    for partition in (0, 1):
        produce(world, topic_id, [b"v"], partition)
    world.node.stop()
    world.machine.broken.add("/two")
    for _ in range(2):
        world.node = world.start()
        world.client = Client(world.node)
        errors = [produce(world, topic_id, [b"w"], partition).error_code for partition in (0, 1)]
        assert sorted(errors) == [Error.NONE, Error.KAFKA_STORAGE_ERROR]
        world.node.stop()
    world.machine.broken.clear()
    world.node = world.start()
    world.client = Client(world.node)
    assert sorted(produce(world, topic_id, [b"x"], partition).base_offset for partition in (0, 1)) == [1, 3]


def test_a_partition_that_could_not_be_made_is_made_when_it_can_be():
    world = SimWorld("/one,/two")
    world.machine.broken |= {"/one/t-0", "/two/t-0"}
    topic_id = world.create("t")
    assert produce(world, topic_id, [b"v"]).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    world.machine.broken.clear()
    world.advance(1000)
    assert produce(world, topic_id, [b"v"]).error_code == Error.NONE


def test_a_new_partition_goes_where_there_is_a_disk_that_works():
    world = SimWorld("/one,/two")
    world.machine.broken.add("/two")
    ids = [world.create(name) for name in "abc"]
    assert [produce(world, topic_id, [b"v"]).error_code for topic_id in ids] == [Error.NONE] * 3


def test_a_compaction_that_fails_with_its_disk_does_not_end_the_tick():
    world = SimWorld()
    small = {"internal_segment_bytes": "200", "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.0"}
    topic_id = world.create("t", **small)
    for _ in range(3):
        produce(world, topic_id, [b"x" * 90], key=b"k")
    world.advance(2000)
    world.node.background = Stubborn(world)
    world.advance(20_000)
    assert world.machine.broken, "compaction has come to its sync"


class Stubborn(Inline):
    """The disk fails with the first sync."""

    __slots__ = ("world",)

    def __init__(self, world: SimWorld) -> None:
        self.world = world

    def submit(self, work: Any, done: Any) -> None:
        self.world.machine.broken.add("/data/t-0")
        super().submit(work, done)


def test_a_topic_of_the_same_name_does_not_begin_with_the_offsets_of_the_deleted_one():
    world = SimWorld()
    topic_id = world.create("t", flush_messages="1")
    produce(world, topic_id, [b"a", b"b", b"c"])
    world.node.replicas.checkpoint()
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")], [], 1000))
    for _ in range(2):
        world.node = world.start()
        world.client = Client(world.node)
        if "t" not in world.node.cluster.topics:
            produce(world, world.create("t"), [b"new"])
    assert world.log_of("t").offline is None
    assert world.log_of("t").end_offset == 1


@pytest.mark.parametrize("seed", [37, 52, 69, 89, *range(8)])
def test_a_topic_of_the_same_name_does_not_get_the_records_of_the_deleted_one(seed: int):
    world = SimWorld("/one,/two")
    produce(world, world.create("t"), [b"old", b"old"])
    world.node.replicas.checkpoint()
    before = world.log_of("t").path
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")], [], 1000))
    world.create("other")
    produce(world, world.create("t"), [b"new"])
    assert world.log_of("t").path != before, "it is made in another directory"
    world.lose_power(seed)
    log = world.log_of("t")
    found = [record.value for segment in log.segments for _, batch in segment.batches() for record in records(batch)]
    assert found in ([], [b"new"])


def test_a_compacted_topic_can_be_deleted_although_its_disk_fails():
    world = SimWorld("/one,/two")
    small = {"internal_segment_bytes": "200", "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.0"}
    topic_id = world.create("t", **small)
    for _ in range(3):
        produce(world, topic_id, [b"x" * 90], key=b"k")
    world.advance(20_000)
    world.machine.broken |= {f"{path}/cleaner-offset-checkpoint.tmp" for path in ("/one", "/two")}
    answer = world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")], [], 1000))
    assert answer.responses[0].error_code == Error.NONE
    assert not world.node.replicas.by_name


@pytest.mark.parametrize("seed", range(6))
def test_the_folder_of_a_deleted_topic_does_not_come_back(seed: int):
    world = SimWorld()
    produce(world, world.create("t"), [b"v"])
    world.node.replicas.checkpoint()
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")], [], 1000))
    world.machine.random.seed(seed)
    world.machine.lose_power()
    assert world.machine.find("/data/t-0") is None


def test_who_waits_for_a_sync_that_fails_is_told_at_once():
    world = SimWorld()
    topic_id = world.create("t", flush_messages="1")
    produce(world, topic_id, [b"v"])
    world.node.background = Stubborn(world)
    assert produce(world, topic_id, [b"w"]).error_code == Error.KAFKA_STORAGE_ERROR


def test_what_a_failed_creation_left_behind_is_not_taken_for_the_partition():
    world = SimWorld("/one,/two")
    world.create("other")
    world.machine.broken.add("/one/t-0")
    topic_id = world.create("t")
    assert world.machine.find("/one/t-0") and world.log_of("t").path == "/two/t-0"
    produce(world, topic_id, [b"v"])
    world.machine.broken.clear()
    world.node.stop()
    world.node = world.start()
    assert world.log_of("t").path == "/two/t-0"
    assert world.log_of("t").end_offset == 1


def test_with_flush_messages_above_one_nobody_waits_for_the_next_record():
    world = SimWorld()
    topic_id = world.create("t", flush_messages="3")
    slow = Slow()
    world.node.background = slow
    for sequence in range(4):  # the third wants a sync; the fourth comes while it is under way, and is not part of it
        batch = bytes(build([Record(0, world.clock.wall_ms(), None, b"v")]))
        topic = m.ProduceRequest_TopicProduceData(
            topic_id=topic_id, partition_data=[m.ProduceRequest_PartitionProduceData(0, batch)]
        )
        client = Client(world.node)
        client.send(m.ProduceRequest(None, -1, 1000, [topic]), 13)
        assert (client.take() is None) == (sequence >= 2)
    while slow.jobs:
        slow.finish_one()
    assert client.take().responses[0].partition_responses[0].error_code == Error.NONE


def test_nobody_reads_what_is_not_synced_where_flush_messages_promises_it():
    world = SimWorld()
    world.create("t", flush_messages="1")
    slow = Slow()
    world.node.background = slow
    reader = Client(world.node)
    for value in (b"a", b"b"):  # the second comes while the first is synced, and is not part of that
        batch = bytes(build([Record(0, world.clock.wall_ms(), None, value)]))
        rows = [m.ProduceRequest_PartitionProduceData(0, batch)]
        data = m.ProduceRequest_TopicProduceData("t", partition_data=rows)
        Client(world.node).send(m.ProduceRequest(None, 1, 1000, [data]), 9)
    assert fetch(world, "t", committed=False).high_watermark == 0
    wanted = m.FetchRequest_FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [m.FetchRequest_FetchTopic("t", partitions=[wanted])]
    reader.send(m.FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=1 << 20, topics=topics), 12)
    assert reader.take() is None
    slow.finish_one()
    assert reader.take().responses[0].partitions[0].high_watermark == 1
    slow.finish_one()
    assert fetch(world, "t", committed=False).high_watermark == 2


@pytest.mark.parametrize("seed", range(4))
def test_what_a_killed_process_had_not_synced_is_synced_before_anybody_reads_it(seed: int):
    world = SimWorld()
    world.create("t", flush_messages="1")
    world.node.background = Slow()
    send_one(world)
    world.node = world.start()  # the process was killed
    world.client = Client(world.node)
    assert fetch(world, "t", committed=False).high_watermark == 1
    world.lose_power(seed)
    assert world.log_of("t").end_offset == 1


def test_what_is_acknowledged_after_the_sync_of_somebody_else_can_be_read():
    world = SimWorld()
    world.create("t", flush_messages="1")
    world.node.background = Slow()
    producer = send_one(world)
    assert producer.take() is None
    partition = world.node.replicas.by_name["t"][0]
    partition.log.flush()  # as before a compaction
    world.node.signal(partition.log)
    assert producer.take().responses[0].partition_responses[0].error_code == Error.NONE
    assert fetch(world, "t", committed=False).high_watermark == 1


def test_a_share_fetch_of_a_log_that_cannot_be_read_is_told_so_at_once():
    world = SimWorld()
    produce(world, world.create("t"), [b"v"])
    initialize(world)
    world.node.stop()
    world.node = world.start()
    world.client = Client(world.node)
    del world.machine.folder("/data").names["t-0"]
    (row,) = Member(world).fetch([0], max_wait_ms=1000).responses[0].partitions
    assert row.error_code == Error.KAFKA_STORAGE_ERROR


def send_one(world: SimWorld) -> Client:
    """A record on its way to the topic `t`, sent by a client of its own."""
    batch = bytes(build([Record(0, world.clock.wall_ms(), None, b"v")]))
    data = m.ProduceRequest_TopicProduceData("t", partition_data=[m.ProduceRequest_PartitionProduceData(0, batch)])
    client = Client(world.node)
    client.send(m.ProduceRequest(None, -1, 1000, [data]), 9)
    return client


class Slow(Inline):
    """Jobs run when the test says so."""

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        self.jobs: list[Any] = []

    def submit(self, work: Any, done: Any) -> None:
        self.jobs.append((work, done))

    def finish_one(self) -> None:
        super().submit(*self.jobs.pop(0))


def test_a_start_elects_a_leader_where_apache_kafka_has_stopped(make_world):
    world = make_world()
    topic_id = world.create("t")
    stopped = m.PartitionChangeRecord(0, topic_id, [], -1, eligible_leader_replicas=[1], last_known_elr=[1])
    world.change(stopped)
    world.restart()
    part = world.node.cluster.topics["t"].partitions[0]
    assert (part.leader, part.isr, part.eligible_leaders, part.leader_epoch) == (1, (1,), (), 2)
    assert not world.node.replicas.leader("t", 0).leader_error(2)
    end = world.node.metadata.end_offset
    world.restart()
    assert part.leader_epoch == world.node.cluster.topics["t"].partitions[0].leader_epoch
    assert world.node.metadata.end_offset == end + 2  # a new epoch of the quorum and the registration, no election


@pytest.mark.parametrize(("own", "found", "left"), [(-1, -1, -1), (-1, 17, 17), (18, 17, 18)])
def test_a_clean_stop_vouches_for_no_epoch_that_only_the_metadata_knows(make_world, own, found, left):
    """A process that did not get to register may have lost records before it began: the next one must not deny it."""
    world = make_world()
    world.node.membership = SimpleNamespace(lifecycle=SimpleNamespace(epoch=own))
    world.node.replicas.directories[0].broker_epoch = found
    world.node.stop()
    assert (world.path / ".kafka_cleanshutdown").read_text() == f'{{"version":0,"brokerEpoch":{left}}}'
    world.node = world.start()


def test_a_clean_stop_leaves_the_epoch_of_the_broker(make_world):
    world = make_world()
    epoch = world.node.metadata.broker_epoch
    assert epoch > 0
    world.node.stop()
    assert (world.path / ".kafka_cleanshutdown").read_text() == f'{{"version":0,"brokerEpoch":{epoch}}}'
    world.node = world.start()
