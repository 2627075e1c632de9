"""Heartbeats: fencing and unfencing, stopping in order, failed and cordoned directories, sessions."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from moldau.cluster.controller.heartbeats import Heartbeats, fence, unfence
from moldau.cluster.controller.result import Result
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.controller.images import (
    EPOCH,
    TOPIC_ID,
    add_topic,
    commit,
    directory,
    image_of,
    kinds,
    partition,
    policy,
)

NEXT = 500


class World:
    """A controller with its image and sessions; the clock stands at 0."""

    def __init__(self, image: Cluster) -> None:
        self.image, self.heartbeats, self.now_ms = image, Heartbeats(9000), 0.0
        self.next_offset = NEXT

    def beat(self, broker: int = 1, **other: Any) -> Any:
        """One heartbeat, committed; returns the answer."""
        result = self.decide(broker, **other)
        for record in result.records:
            self.image.replay(record)
        self.next_offset += len(result.records)
        self.records = result.records
        return result.response

    def decide(self, broker: int = 1, **other: Any) -> Result:
        fields: dict[str, Any] = {"broker_epoch": EPOCH + broker, "current_metadata_offset": self.next_offset - 1}
        fields |= {"want_fence": False, "want_shut_down": False, "offline_log_dirs": []}
        request = m.BrokerHeartbeatRequest(broker_id=broker, **fields | other)
        given = policy(self.image, 2)
        return self.heartbeats.heartbeat(self.image, request, self.now_ms, self.next_offset, given)


def state(answer: Any) -> tuple[bool, bool, bool]:
    return answer.is_caught_up, answer.is_fenced, answer.should_shut_down


def world_with(*partitions: dict[str, Any], fenced: tuple[int, ...] = (), **image: Any) -> World:
    world = World(image_of(fenced=fenced, **image))
    add_topic(world.image, *partitions)
    return world


@pytest.mark.parametrize(("broker", "epoch"), [(1, EPOCH), (9, EPOCH + 9)])
def test_a_process_that_is_not_registered_is_stale(broker: int, epoch: int) -> None:
    answer = world_with().beat(broker, broker_epoch=epoch)
    assert answer.error_code == Error.STALE_BROKER_EPOCH
    assert answer.is_fenced


def test_a_broker_that_serves_needs_no_record() -> None:
    world = world_with()
    assert state(world.beat()) == (True, False, False)
    assert world.records == []


def test_a_broker_is_unfenced_when_it_wants_and_has_seen_its_registration() -> None:
    world = world_with({"leader": -1, "isr": [], "eligible_leader_replicas": [1]}, fenced=(1, 2, 3))
    assert state(world.beat(want_fence=True)) == (True, True, False)
    assert state(world.beat(current_metadata_offset=EPOCH)) == (False, True, False)
    assert world.records == []
    assert state(world.beat(current_metadata_offset=EPOCH + 1)) == (True, False, False)
    assert kinds(world.records) == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert not world.image.brokers[1].fenced
    assert (partition(world.image).leader, partition(world.image).isr) == (1, (1,))


def test_a_registration_has_been_seen_when_its_last_record_has() -> None:
    world = world_with(fenced=(1,))
    world.heartbeats.registered(1, EPOCH + 3)
    assert world.beat(current_metadata_offset=EPOCH + 2).is_fenced
    assert not world.beat(current_metadata_offset=EPOCH + 3).is_fenced


def test_a_broker_that_wants_it_is_fenced() -> None:
    world = world_with()
    assert state(world.beat(want_fence=True)) == (True, True, False)
    assert kinds(world.records) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    assert (partition(world.image).leader, partition(world.image).isr) == (2, (2, 3))


def test_a_broker_that_leads_stops_when_the_others_have_seen_that_it_does_not() -> None:
    world = world_with()
    world.beat(2)
    world.beat(3)
    assert state(world.beat(want_shut_down=True)) == (True, False, False)
    assert kinds(world.records) == ["BrokerRegistrationChangeRecord", "PartitionChangeRecord"]
    assert (partition(world.image).leader, partition(world.image).isr) == (2, (2, 3))
    assert world.image.brokers[1].in_controlled_shutdown
    assert not world.beat(want_shut_down=True).should_shut_down
    world.beat(2)
    assert not world.beat(want_shut_down=True).should_shut_down
    world.beat(3)
    assert state(world.beat(want_shut_down=True)) == (True, True, True)
    assert world.image.brokers[1].fenced


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    world = world_with()
    assert state(world.beat(2, want_shut_down=True)) == (True, True, True)
    assert partition(world.image).isr == (1, 3)


def test_the_last_broker_waits_for_nobody() -> None:
    world = world_with(fenced=(2, 3))
    assert not world.beat(want_shut_down=True).should_shut_down
    assert world.beat(want_shut_down=True).should_shut_down
    part = partition(world.image)
    assert (part.leader, part.isr, part.eligible_leaders) == (-1, (2, 3), ())


def test_a_fenced_broker_may_stop_and_needs_no_record() -> None:
    world = world_with({"isr": [2, 3], "leader": 2}, fenced=(1,))
    assert state(world.beat(want_shut_down=True)) == (True, True, True)
    assert world.records == []


def test_a_broker_that_does_not_want_to_hand_over_stops_at_once() -> None:
    assert world_with().beat(want_fence=True, want_shut_down=True).should_shut_down


def test_a_new_controller_lets_a_broker_that_was_stopping_go_on() -> None:
    world = world_with({"replicas": [2, 3]})
    world.image.replay(m.BrokerRegistrationChangeRecord(1, EPOCH + 1, in_controlled_shutdown=1))
    world.heartbeats.begin(world.image, 0)
    assert world.beat(want_shut_down=True).should_shut_down


def test_a_silent_broker_keeps_others_from_stopping_until_it_is_fenced() -> None:
    world = world_with()
    world.beat(2)
    world.beat(want_shut_down=True)
    world.beat(2)
    assert not world.beat(want_shut_down=True).should_shut_down  # 3 was never heard
    commit(world.image, fence(world.image, 3, policy(world.image)))
    assert world.beat(want_shut_down=True).should_shut_down


def test_what_lies_in_a_failed_directory_is_led_by_others() -> None:
    placed = {"directories": [directory(1, 1), directory(2), directory(3)]}
    world = world_with(placed, {}, directories=2)
    assert state(world.beat(offline_log_dirs=[directory(1, 1)])) == (True, False, False)
    assert kinds(world.records) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    assert [partition(world.image, index).leader for index in (0, 1)] == [2, 1]
    assert world.image.brokers[1].log_dirs == (directory(1, 0),)
    world.beat(offline_log_dirs=[directory(1, 1)])
    assert world.records == []


def test_a_broker_that_comes_back_with_a_failed_directory_leads_nothing_there() -> None:
    gone = {"leader": -1, "isr": [], "eligible_leader_replicas": [1]}
    failed = gone | {"directories": [directory(1, 1), directory(2), directory(3)]}
    world = world_with(failed, gone, fenced=(1,), directories=2)
    world.beat(offline_log_dirs=[directory(1, 1)])
    assert [partition(world.image, index).leader for index in (0, 1)] == [-1, 1]


def test_a_broker_with_a_failed_directory_that_leaves_changes_a_partition_once() -> None:
    world = world_with({"directories": [directory(1, 1), directory(2), directory(3)]}, directories=2)
    world.beat(want_fence=True, offline_log_dirs=[directory(1, 1)])
    assert kinds(world.records).count("PartitionChangeRecord") == 1


def test_without_any_directory_left_there_is_nothing_to_write_down() -> None:
    world = world_with()
    world.beat(offline_log_dirs=[directory(1)])
    assert kinds(world.records) == ["PartitionChangeRecord"]


def test_cordoned_directories_are_noted_when_they_change() -> None:
    world = world_with(directories=2)
    for cordoned, count in (([], 1), ([], 0), ([directory(1)], 1), ([directory(1)], 0), (None, 0), ([], 1)):
        world.beat(cordoned_log_dirs=cordoned)
        assert len(world.records) == count
    assert world.image.brokers[1].cordoned_dirs == ()


def test_an_old_cluster_knows_nothing_of_cordoned_directories() -> None:
    world = world_with(level=29)
    world.beat(cordoned_log_dirs=[directory(1)])
    assert world.records == []


def test_a_session_is_over_when_its_broker_is_not_heard() -> None:
    world = world_with()
    world.beat(1)
    world.now_ms = 5000.0
    world.beat(2)
    assert world.heartbeats.next_ms() == 9000
    assert world.heartbeats.stale(9000) == []
    assert world.heartbeats.stale(9001) == [1]
    assert world.heartbeats.stale(9001) == []
    assert world.heartbeats.next_ms() == 14_000


def test_after_a_change_of_controller_every_broker_has_a_whole_session() -> None:
    heartbeats, image = Heartbeats(9000), image_of(fenced=(3,))
    assert heartbeats.next_ms() == inf
    heartbeats.begin(image, 1000)
    assert heartbeats.stale(10_000) == []
    assert heartbeats.stale(10_001) == [1, 2]


def test_a_broker_is_fenced_once() -> None:
    world = world_with()
    given = policy(world.image)
    assert kinds(fence(world.image, 1, given)) == ["PartitionChangeRecord", "BrokerRegistrationChangeRecord"]
    commit(world.image, fence(world.image, 1, given))
    assert fence(world.image, 1, given) == []
    assert fence(world.image, 9, given) == []


def test_a_fenced_broker_that_a_cancelled_move_has_put_into_an_isr_leaves_it() -> None:
    world = world_with({"isr": [1], "leader": -1}, fenced=(1,))
    assert world.beat(want_shut_down=True).should_shut_down
    assert (partition(world.image).isr, partition(world.image).eligible_leaders) == ((), (1,))
    assert kinds(world.records) == ["PartitionChangeRecord"]


def test_fencing_looks_only_at_the_partitions_of_the_broker() -> None:
    world = world_with({}, {"replicas": [2, 3]}, {"replicas": [3, 2, 1], "isr": [3, 2]})
    records = fence(world.image, 1, policy(world.image))
    assert [record.partition_id for record in records[:-1]] == [0]


def test_flapping_ends_where_it_began() -> None:
    world = world_with({"isr": [1]})
    for _ in range(3):
        commit(world.image, fence(world.image, 1, policy(world.image)))
        assert partition(world.image).leader == -1
        commit(world.image, unfence(world.image, 1, policy(world.image)))
    part = partition(world.image)
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (1, (1,), (), ())
    assert (part.leader_epoch, part.partition_epoch) == (10, 15)
    assert world.image.topics_by_id[TOPIC_ID].partitions[0] is part


def test_a_session_that_is_forgotten_keeps_nobody_from_registering() -> None:
    image, sessions = image_of(), Heartbeats(9000)
    sessions.begin(image, 0)
    broker = next(iter(image.brokers.values()))
    assert sessions.is_alive(broker, 100)
    sessions.forget(broker.id)
    sessions.forget(broker.id)
    assert not sessions.is_alive(broker, 100) and broker.id not in sessions.stale(10_000)
