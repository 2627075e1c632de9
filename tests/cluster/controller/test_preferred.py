"""Leadership that goes back to preferred replicas, and unclean elections that are due."""

from __future__ import annotations

import pytest

from moldau.cluster.controller.preferred import elect_missing, give_back
from moldau.machines.metadata.cluster import Cluster
from tests.cluster.controller.images import add_topic, commit, image_of, partition, policy


def led_by(*leaders: int, fenced: tuple[int, ...] = ()) -> Cluster:
    """Partitions whose first replica is 1."""
    image = image_of(fenced=fenced)
    add_topic(image, *({"leader": leader} for leader in leaders))
    return image


def test_leadership_goes_back() -> None:
    image = led_by(2, 1, 3)
    made = give_back(image, policy(image))
    assert [record.partition_id for record in made] == [0, 2]
    commit(image, made)
    assert [partition(image, index).leader for index in range(3)] == [1, 1, 1]
    assert give_back(image, policy(image)) == []


def test_some_go_back_at_a_time() -> None:
    image = led_by(2, 2, 2, 2)
    assert len(give_back(image, policy(image), at_once=3)) == 3


def test_nothing_goes_back_to_a_broker_that_is_away_or_behind() -> None:
    image = led_by(2, fenced=(1,))
    assert give_back(image, policy(image)) == []
    image = image_of()
    add_topic(image, {"leader": 2, "isr": [2, 3]})
    assert give_back(image, policy(image)) == []


@pytest.mark.parametrize(("percentage", "count"), [(0, 1), (9, 1), (10, 0), (50, 0)])
def test_a_small_imbalance_may_be_left(percentage: int, count: int) -> None:
    image = led_by(2, *(1,) * 9)
    assert len(give_back(image, policy(image), percentage)) == count


def test_an_unclean_election_is_held_where_the_topic_allows_it() -> None:
    image = image_of(fenced=(1,))
    lost = {"replicas": [1, 2], "isr": [], "leader": -1, "eligible_leader_replicas": [1]}
    add_topic(image, lost, lost, {"replicas": [1], "isr": [], "leader": -1}, unclean_leader_election_enable="true")
    add_topic(image, lost, name="careful", topic_id=bytes([8] * 16))
    assert len(elect_missing(image, policy(image), at_once=1)) == 1
    commit(image, elect_missing(image, policy(image)))
    assert [partition(image, index).leader for index in range(3)] == [2, 2, -1]
    assert partition(image, 0, "careful").leader == -1
    assert elect_missing(image, policy(image)) == []


def test_who_may_lead_by_now_leads_where_nobody_did() -> None:
    """As when the directory of a replica was named after its broker had come (seed 5427)."""
    image = image_of()
    add_topic(image, {"replicas": [1, 2], "isr": [], "leader": -1, "eligible_leader_replicas": [2]})
    commit(image, elect_missing(image, policy(image)))
    assert (partition(image, 0).leader, partition(image, 0).isr) == (2, (2,))
