"""Who leads a partition that has lost its leader, and what its record says."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cluster.controller.elections import PREFERRED, UNCLEAN, elect_leader, elect_missing_leaders
from moldau.machines.metadata.cluster import Cluster, Partition
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.cluster.controller.images import add_topic, commit, image_of, policy


def elect(**placed: Any) -> tuple[list[Any], Partition]:
    """The records for one partition of brokers 1, 2 and 3, of which 3 is away; and the partition after them."""
    image = image_of(fenced=(3,))
    add_topic(image, {"replicas": [3, 2, 1], "isr": [], "leader": -1} | placed)
    made = list(elect_missing_leaders(image, policy(image, min_insync=2)))
    return made, commit(image, made)


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
        {},
    ],
    ids=str,
)
def test_a_partition_whose_candidates_are_away_waits(placed: dict[str, Any]) -> None:
    made, part = elect(**placed)
    assert not made
    assert part.leader == -1


def test_a_last_known_leader_that_keeps_the_partition_no_more_is_forgotten() -> None:
    _, part = elect(last_known_elr=[2], replicas=[3, 1])
    assert (part.leader, part.last_known_leaders) == (-1, ())


def test_a_partition_with_a_leader_is_left_alone() -> None:
    made, part = elect(leader=2, isr=[2])
    assert not made
    assert part.leader_epoch == 4


def ask(kind: int, fenced: tuple[int, ...] = (), **placed: Any) -> Partition:
    image = image_of(fenced=fenced)
    add_topic(image, placed)
    return commit(image, elect_leader(image, policy(image), "t", 0, kind))


def refusal(kind: int, fenced: tuple[int, ...] = (), name: str = "t", index: int = 0, **placed: Any) -> Error:
    image: Cluster = image_of(fenced=fenced)
    add_topic(image, placed)
    with pytest.raises(Refused) as caught:
        elect_leader(image, policy(image), name, index, kind)
    return caught.value.error


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_unknown_partitions_are_refused(kind: int) -> None:
    assert refusal(kind, name="unknown") == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(kind, index=1) == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_a_partition_that_is_led_as_it_should_be_needs_no_election(kind: int) -> None:
    assert refusal(kind) == Error.ELECTION_NOT_NEEDED


def test_the_preferred_replica_gets_the_lead_back() -> None:
    assert ask(PREFERRED, leader=2).leader == 1


def test_a_preferred_replica_out_of_sync_is_not_elected() -> None:
    assert refusal(PREFERRED, leader=2, isr=[2]) == Error.PREFERRED_LEADER_NOT_AVAILABLE


def test_an_unclean_election_takes_whoever_lives_and_says_so() -> None:
    part = ask(UNCLEAN, fenced=(1,), leader=-1, isr=[1])
    assert (part.leader, part.isr, part.recovery_state) == (2, (2,), 1)


def test_an_unclean_election_prefers_who_is_eligible() -> None:
    part = ask(UNCLEAN, leader=-1, isr=[], eligible_leader_replicas=[3])
    assert (part.leader, part.isr, part.recovery_state) == (3, (3,), 0)


def test_an_unclean_election_needs_somebody_who_lives() -> None:
    assert refusal(UNCLEAN, fenced=(1, 2, 3), leader=-1, isr=[1]) == Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
