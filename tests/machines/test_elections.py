"""Who leads a partition that has lost its leader, and what its record says."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.machines.metadata import records
from moldau.machines.metadata.cluster import Cluster, Partition
from moldau.machines.metadata.elections import elect_missing_leaders
from moldau.wire import messages as m

ID = bytes(range(16))
LIVE, FENCED = (1, 2), (3,)


def elect(**placed: Any) -> tuple[list[Any], Partition]:
    """The records for one partition of brokers 1, 2 and 3, of which 3 is away; and the partition after them."""
    image = Cluster()
    for broker in (*LIVE, *FENCED):
        image.replay(m.RegisterBrokerRecord(broker_id=broker, fenced=broker in FENCED))
    image.replay(m.TopicRecord("t", ID))
    given = {"replicas": [3, 2, 1], "isr": [], "leader": -1, "leader_epoch": 4, "partition_epoch": 9} | placed
    image.replay(m.PartitionRecord(partition_id=0, topic_id=ID, **given))
    made = list(elect_missing_leaders(image))
    for record in made:
        image.replay(records.decode(records.encode(record)))
    return made, image.topics["t"].partitions[0]


def test_the_first_live_replica_of_the_isr_leads() -> None:
    made, part = elect(isr=[1, 2, 3], eligible_leader_replicas=[], last_known_elr=[3])
    assert len(made) == 1
    assert (part.leader, part.isr, part.last_known_leaders) == (2, (1, 2, 3), ())
    assert (part.leader_epoch, part.partition_epoch, part.recovery_state) == (5, 10, 0)


def test_without_an_isr_an_eligible_replica_leads_and_is_no_longer_merely_eligible() -> None:
    _, part = elect(eligible_leader_replicas=[1, 3], last_known_elr=[3])
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (1, (1,), (3,), ())
    assert (part.leader_epoch, part.partition_epoch, part.recovery_state) == (5, 10, 0)


def test_a_last_known_leader_leads_in_recovery() -> None:
    _, part = elect(last_known_elr=[1])
    assert (part.leader, part.isr, part.last_known_leaders, part.recovery_state) == (1, (1,), (), 1)
    (record,), _ = elect(last_known_elr=[1], leader_recovery_state=1)
    assert record.leader_recovery_state == -1  # unchanged


@pytest.mark.parametrize(
    "placed",
    [
        {"isr": [3]},
        {"eligible_leader_replicas": [3]},
        {"eligible_leader_replicas": [3], "last_known_elr": [1]},
        {"isr": [3], "last_known_elr": [1]},
        {"last_known_elr": [3]},
        {"last_known_elr": [1, 2]},
        {"last_known_elr": [2], "replicas": [3, 1]},
        {},
    ],
    ids=str,
)
def test_a_partition_whose_candidates_are_away_waits(placed: dict[str, Any]) -> None:
    made, part = elect(**placed)
    assert not made
    assert part.leader == -1


def test_a_partition_with_a_leader_is_left_alone() -> None:
    made, part = elect(leader=2, isr=[2])
    assert not made
    assert part.leader_epoch == 4
