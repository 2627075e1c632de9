"""A fetch that looks only at what has changed answers as one that looks at everything, and at the same moment.

Two nodes live through the same history; on one of them no partition ever rests.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from moldau.broker.api import fetch
from moldau.broker.fetch_sessions import Context, Session
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, batches, build
from tests.broker.conftest import FEW, Client, World
from tests.broker.transactional import Transactional

PARTITIONS = {"a": 4, "b": 3}
STEPS = 150
VERSION = 17
LAG_MS = 2000.0


class Reader:
    """A client with a fetch session: a consumer, or a follower."""

    def __init__(self, world: World, random: Random, isolation: int, replica: int) -> None:
        self.world, self.random = world, random
        self.isolation, self.replica = isolation, replica
        self.client = Client(world.node)
        self.offsets: dict[tuple[bytes, int], int] = {}
        self.named: dict[tuple[bytes, int], int] = {}  # what the session knows
        self.session = self.epoch = 0
        self.is_waiting = False

    def fetch(self) -> None:
        random = self.random
        if self.is_waiting:
            return
        topics = self.world.node.cluster.topics
        exist = [(topic.id, index) for name in PARTITIONS for topic in [topics[name]] for index in topic.partitions]
        for key in exist:
            if random.random() < 0.9:
                self.offsets.setdefault(key, 0)
        forgotten = [key for key in self.offsets if key not in exist or random.random() < 0.02]
        for key in forgotten:
            del self.offsets[key]
        changed = {key: offset for key, offset in self.offsets.items() if self.named.get(key) != offset}
        self.named = dict(self.offsets)
        self.client.send(self.request(changed, forgotten if self.session else []), VERSION)
        self.is_waiting = True

    def request(self, named: dict[Any, int], forgotten: list[Any]) -> Any:
        random = self.random
        epoch_of = self.world.node.cluster.topics_by_id
        rows = {}
        for (topic, index), offset in named.items():
            home = self.world.node.replicas.by_id.get(topic, {}).get(index)
            epoch = home.placement.leader_epoch if home and topic in epoch_of else -1
            row = m.FetchRequest_FetchPartition(
                partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            rows.setdefault(topic, []).append(row)
        return m.FetchRequest(
            replica_state=m.FetchRequest_ReplicaState(self.replica, -1),
            max_wait_ms=random.choice((0, 100, 400)),
            min_bytes=random.choice((0, 1, 1, 400)),
            max_bytes=1 << 22,
            isolation_level=self.isolation,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[m.FetchRequest_FetchTopic(topic_id=topic, partitions=some) for topic, some in rows.items()],
            forgotten_topics_data=[m.FetchRequest_ForgottenTopic(topic_id=t, partitions=[i]) for t, i in forgotten],
        )

    def take(self) -> Any:
        """What is answered, in an order that does not matter; None while nothing is."""
        answer = self.client.take()
        if answer is None:
            return None
        self.is_waiting = False
        self.session, self.epoch = answer.session_id, self.epoch + 1
        if answer.error_code:
            self.session = self.epoch = 0
            self.named = {}
            return Error(answer.error_code).name
        rows = [(topic.topic_id, row) for topic in answer.responses for row in topic.partitions]
        rows.sort(key=lambda pair: (pair[0], pair[1].partition_index))
        return [self.read(topic, row) for topic, row in rows]

    def read(self, topic: bytes, row: Any) -> tuple[Any, ...]:
        key = topic, row.partition_index
        if row.error_code == Error.OFFSET_OUT_OF_RANGE:
            self.offsets[key] = self.world.node.replicas.by_id[topic][row.partition_index].log.start_offset
        elif row.error_code or self.random.random() < 0.1:
            self.named.pop(key, None)  # it is asked again as it was
        for batch in batches(row.records or b""):
            self.offsets[key] = batch.next_offset
        aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
        marks = row.high_watermark, row.last_stable_offset, row.log_start_offset
        return *key, row.error_code, *marks, bytes(row.records or b""), tuple(aborted)


class Life:
    """One node, and all that happens to it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        few = {name.replace("_", "."): value for name, value in FEW.items()}
        self.world = World(folder, few)
        self.world.coordinate()
        for name, count in PARTITIONS.items():
            self.world.create(name, count)
        self.producer = Transactional(self.world, "x").begin()
        self.readers = [
            Reader(self.world, self.random, isolation, replica)
            for isolation, replica in ((0, -1), (0, -1), (1, -1), (0, 2), (0, 3))
        ]
        self.epoch = 1
        for home in self.homes():
            self.place(home, (1, 2, 3), leader=1)

    def homes(self) -> list[Any]:
        return [home for name in PARTITIONS for home in self.world.node.replicas.by_name[name].values()]

    def place(self, home: Any, isr: tuple[int, ...], leader: int) -> None:
        self.epoch += 1
        placed = Placement(0, (1, 2, 3), isr, leader, self.epoch, self.epoch)
        self.world.node.replication.place(home, placed)

    def produce(self) -> None:
        home = self.random.choice(self.homes())
        batch = bytes(build([Record(0, self.world.clock.wall_ms(), None, b"v" * self.random.choice((1, 100, 300)))]))
        self.append(home, batch, None)

    def append(self, home: Any, batch: bytes, transactional_id: str | None) -> Any:
        """With acks=1: followers may never come."""
        rows = [m.ProduceRequest_PartitionProduceData(home.index, batch)]
        data = m.ProduceRequest_TopicProduceData(topic_id=home.topic_id, partition_data=rows)
        answer = Client(self.world.node).call(m.ProduceRequest(transactional_id, 1, 1000, [data]), 13)
        return Error(answer.responses[0].partition_responses[0].error_code)

    def produce_in_transaction(self) -> None:
        producer, home = self.producer, self.random.choice(self.homes()[: PARTITIONS["a"]])
        sequence = producer.sequences.get((home.topic, home.index), 0)
        if self.append(home, producer.batch(sequence, b"t"), "x") is Error.NONE:
            producer.sequences[home.topic, home.index] = sequence + 1

    def end_transaction(self) -> None:
        self.producer.end(self.random.random() < 0.5)

    def delete_records(self) -> None:
        home = self.random.choice(self.homes())
        part = m.DeleteRecordsRequest_DeleteRecordsPartition(home.index, self.random.choice((-1, 1, 3)))
        self.world.call(m.DeleteRecordsRequest([m.DeleteRecordsRequest_DeleteRecordsTopic(home.topic, [part])]), 2)

    def elect(self) -> None:
        home, random = self.random.choice(self.homes()), self.random
        self.place(home, random.choice(((1,), (1, 2), (1, 2, 3))), random.choice((1, 1, 1, 2)))

    def recreate(self) -> None:
        """Partitions are signalled one after the other: who waits is told of the first, and then of the others."""
        if not self.is_waited_for():
            self.world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("b")], [], 1000))
            self.world.create("b", PARTITIONS["b"])

    def fail(self) -> None:
        """Nothing is signalled: a session finds out within a second."""
        if not self.is_waited_for():
            self.random.choice(self.homes()).log.fail("by the test")
            self.world.advance(1001)

    def is_waited_for(self) -> bool:
        return any(reader.is_waiting for reader in self.readers)

    def pass_time(self) -> None:
        self.world.advance(self.random.choice((1, 50, 200, 1500)))

    def fetch(self) -> None:
        self.random.choice(self.readers).fetch()

    def seen(self) -> Any:
        """What the readers are told, and who the leaders believe to be level."""
        now = self.world.clock.monotonic_ms()
        level = [
            [home.log.high_watermark]
            + [one.is_caught_up(home.log.end_offset, now, LAG_MS) for _, one in sorted(home.led.followers.items())]
            for home in self.homes()
            if home.led is not None
        ]
        return [reader.take() for reader in self.readers], level

    def live(self) -> list[Any]:
        acts = {
            self.fetch: 60,
            self.produce: 20,
            self.produce_in_transaction: 5,
            self.end_transaction: 3,
            self.delete_records: 3,
            self.elect: 2,
            self.recreate: 3,
            self.fail: 3,
            self.pass_time: 20,
        }
        seen = []
        for _ in range(STEPS):
            act = self.random.choices(list(acts), list(acts.values()))[0]
            act()
            seen.append((act.__name__, *self.seen()))
        self.world.node.stop()
        return seen


def noted_in_order(note: Any) -> Any:
    """A fetch of a follower moves high watermarks one after the other, and each may wake who waits."""
    return lambda node, replica, some, by_id: note(node, replica, sorted(some, key=lambda one: one.key), by_id)


@pytest.mark.parametrize("seed", range(12))
def test_what_rests_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(fetch, "note_replica", noted_in_order(fetch.note_replica))
    found = Life(tmp_path / "changed", seed).live()
    monkeypatch.setattr(Session, "rest", lambda *_: None)
    monkeypatch.setattr(Context, "fresh", lambda _: [])
    everything = Life(tmp_path / "everything", seed).live()
    for step, (one, other) in enumerate(zip(found, everything, strict=True)):
        assert one == other, f"step {step} of seed {seed}"
