"""Where replicas of new partitions go: over racks first, then over brokers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.spread import spread
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

DIRECTORY = bytes([7] * 16)


def image_of(
    *racks: str | None, fenced: frozenset[int] = frozenset(), stopping: frozenset[int] = frozenset()
) -> Cluster:
    """A cluster with a broker for each rack that is named, from 0 on."""
    image = Cluster()
    for broker, rack in enumerate(racks):
        image.replay(
            m.RegisterBrokerRecord(
                broker_id=broker,
                rack=rack,
                fenced=broker in fenced,
                in_controlled_shutdown=broker in stopping,
                log_dirs=[DIRECTORY],
            )
        )
    return image


def refusal(image: Cluster, replication: int) -> Error:
    with pytest.raises(Refused) as caught:
        spread(image, range(1), replication, 0)
    return caught.value.error


def test_without_racks_followers_come_after_the_leader_and_further_after_it_in_the_next_round() -> None:
    placed = spread(image_of(None, None, None), range(6), 2, 0)
    assert list(placed.values()) == [[0, 1], [1, 2], [2, 0], [0, 2], [1, 0], [2, 1]]


def test_it_begins_where_it_is_told() -> None:
    assert spread(image_of(None, None, None), range(1, 2), 3, 1) == {1: [2, 0, 1]}


def test_leaders_take_turns_over_racks_and_brokers() -> None:
    image = image_of("a", "a", "a", "b", "b", "b", "c", "c", "c")
    leaders = [ids[0] for ids in spread(image, range(9), 3, 0).values()]
    assert leaders == [0, 3, 6, 1, 4, 7, 2, 5, 8]


def test_more_replicas_than_racks_are_shared_evenly() -> None:
    racks = ("a", "a", "a", "b", "b", "b")
    for ids in spread(image_of(*racks), range(12), 4, 0).values():
        assert Counter(racks[broker] for broker in ids) == {"a": 2, "b": 2}


def test_a_small_rack_gets_its_replica_all_the_same() -> None:
    placed = spread(image_of("a", "a", "a", "a", "b"), range(8), 2, 0)
    assert all(4 in ids for ids in placed.values())


def test_a_fenced_broker_follows_where_no_live_one_is_left_and_never_leads() -> None:
    placed = spread(image_of(None, None, None, fenced=frozenset({1})), range(6), 3, 0)
    assert {ids[0] for ids in placed.values()} == {0, 2}
    assert all(ids[2] == 1 for ids in placed.values())
    assert all(
        1 not in ids for ids in spread(image_of(None, None, None, fenced=frozenset({1})), range(6), 2, 0).values()
    )


def test_a_rack_with_fenced_brokers_alone_gets_a_follower() -> None:
    placed = spread(image_of("a", "a", "b", fenced=frozenset({2})), range(4), 2, 0)
    assert all(ids[1] == 2 for ids in placed.values())


def test_a_broker_that_stops_or_is_cordoned_gets_nothing() -> None:
    image = image_of(None, None, None, None, stopping=frozenset({0}))
    image.replay(m.BrokerRegistrationChangeRecord(2, 0, cordoned_log_dirs=[DIRECTORY]))
    placed = spread(image, range(8), 2, 0)
    assert {broker for ids in placed.values() for broker in ids} == {1, 3}
    assert refusal(image, 3) == Error.INVALID_REPLICATION_FACTOR


def test_too_few_brokers_are_refused() -> None:
    assert refusal(image_of(None, None), 3) == Error.INVALID_REPLICATION_FACTOR
    assert refusal(image_of(None, None, fenced=frozenset({0, 1})), 1) == Error.INVALID_REPLICATION_FACTOR
    assert refusal(Cluster(), 1) == Error.INVALID_REPLICATION_FACTOR


@given(
    racks=st.lists(st.sampled_from((None, "a", "b", "c")), min_size=1, max_size=9),
    fenced=st.frozensets(st.integers(0, 8), max_size=4),
    data=st.data(),
)
def test_replicas_are_different_and_racks_and_leaders_even(
    racks: list[str | None], fenced: frozenset[int], data: st.DataObject
) -> None:
    image = image_of(*racks, fenced=fenced)
    live = len(image.live_brokers())
    if not live:
        return
    replication = data.draw(st.integers(1, len(racks)))
    placed = spread(image, range(3 * live), replication, data.draw(st.integers(0, 99)))
    sizes = Counter(racks)
    for ids in placed.values():
        assert len(set(ids)) == replication
        assert ids[0] not in fenced
        used = Counter(racks[broker] for broker in ids)
        least = (
            min(used[rack] for rack in sizes if used[rack] < sizes[rack]) if replication < len(racks) else replication
        )
        assert max(used.values()) <= least + 1
    leaders = Counter(ids[0] for ids in placed.values())
    assert set(leaders.values()) == {3}
