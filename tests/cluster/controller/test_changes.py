"""The rules of partition changes: elections, eligible leaders, epochs, reassignments, directories."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cluster.controller.changes import Election, Wanted, change, is_online, remove, rules_of
from moldau.machines.metadata.cluster import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    Cluster,
    Partition,
)
from moldau.wire import messages as m
from tests.cluster.controller.images import TOPIC_ID, add_topic, commit, directory, image_of, partition, policy


def changed(image: Cluster, wanted: Wanted, min_insync: int = 2, unclean: bool = False, **rules: Any) -> Any:
    """The record for the first partition."""
    given_rules = rules_of(image, policy(image, min_insync, unclean), **rules)
    return change(given_rules, image.topics["t"], partition(image), wanted)


def after(image: Cluster, wanted: Wanted, min_insync: int = 2, unclean: bool = False, **rules: Any) -> Partition:
    return commit(image, [changed(image, wanted, min_insync, unclean, **rules)])


def image_with(eligible: bool = True, level: int = 30, fenced: tuple[int, ...] = (), **placed: Any) -> Cluster:
    image = image_of(range(1, 6), fenced, eligible=eligible, level=level)
    add_topic(image, placed)
    return image


def test_nothing_wanted_is_no_record() -> None:
    assert changed(image_with(), Wanted()) is None
    assert changed(image_with(), Wanted(isr=[1, 2, 3], replicas=[1, 2, 3], recovery_state=0)) is None


def test_the_leader_stays_while_it_may_lead() -> None:
    part = after(image_with(leader=3), Wanted(isr=[3, 1]))
    assert (part.leader, part.leader_epoch, part.partition_epoch, part.isr) == (3, 4, 10, (3, 1))


def test_the_next_leader_is_the_first_live_replica_in_the_isr() -> None:
    part = after(image_with(fenced=(2,), isr=[3, 2, 1]), Wanted(isr=[3, 2]), leaving=1)
    assert (part.leader, part.leader_epoch) == (3, 5)


def test_a_broker_that_shuts_down_does_not_lead() -> None:
    image = image_of(stopping=(2,))
    add_topic(image)
    assert after(image, Wanted(isr=[2, 3]), leaving=1).leader == 3


def test_a_replica_in_a_failed_directory_does_not_lead() -> None:
    image = image_with(directories=[directory(1), directory(2, 7), directory(3)])
    assert after(image, Wanted(isr=[2, 3]), leaving=1).leader == 3


def test_whoever_leaves_an_isr_below_min_insync_stays_eligible() -> None:
    image = image_with(isr=[1, 2])
    part = after(image, Wanted(isr=[1]))
    assert (part.isr, part.eligible_leaders, part.last_known_leaders) == ((1,), (2,), ())


def test_with_enough_in_the_isr_nobody_is_eligible() -> None:
    part = after(image_with(isr=[1], eligible_leader_replicas=[3]), Wanted(isr=[1, 2]))
    assert (part.isr, part.eligible_leaders) == ((1, 2), ())


def test_min_insync_counts_no_more_than_a_partition_has() -> None:
    image = image_with(replicas=[1, 2], isr=[1, 2])
    assert after(image, Wanted(isr=[1]), min_insync=5).eligible_leaders == (2,)
    image = image_with(replicas=[1], isr=[1])
    assert changed(image, Wanted(), min_insync=5) is None


def test_the_last_of_an_isr_that_goes_is_eligible_and_known_as_the_last_leader() -> None:
    part = after(image_with(isr=[1]), Wanted(isr=[]), leaving=1)
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (-1, (), (1,), (1,))
    assert part.leader_epoch == 5


def test_the_last_known_leader_is_the_one_that_led_first_of_all() -> None:
    image = image_with(fenced=(1,), isr=[], leader=-1, eligible_leader_replicas=[2], last_known_elr=[1])
    assert changed(image, Wanted(isr=[], lost=2), leaving=2).last_known_elr is None


def test_an_eligible_leader_leads_alone() -> None:
    image = image_with(isr=[], leader=-1, eligible_leader_replicas=[2, 3], last_known_elr=[2])
    part = after(image, Wanted())
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (2, (2,), (3,), ())
    assert part.recovery_state == 0


def test_whoever_may_have_lost_records_is_not_eligible() -> None:
    part = after(image_with(isr=[1, 2]), Wanted(isr=[2], lost=1), leaving=1)
    assert (part.leader, part.eligible_leaders) == (2, ())


@pytest.mark.parametrize("unclean", [False, True])
def test_the_last_known_leader_leads_in_recovery(unclean: bool) -> None:
    image = image_with(isr=[], leader=-1, last_known_elr=[3])
    part = after(image, Wanted(), unclean=unclean)
    assert (part.leader, part.isr, part.last_known_leaders, part.recovery_state) == (3, (3,), (), 1)


def test_an_unclean_election_needs_the_topics_leave() -> None:
    image = image_with(fenced=(1,), isr=[1], leader=-1, eligible_leader_replicas=[])
    assert changed(image, Wanted()) is None
    part = after(image, Wanted(), unclean=True)
    assert (part.leader, part.isr, part.recovery_state) == (2, (2,), 1)


def test_an_unclean_election_forgets_who_was_eligible() -> None:
    image = image_with(fenced=(1, 2), isr=[], leader=-1, eligible_leader_replicas=[1, 2], last_known_elr=[1])
    part = after(image, Wanted(), unclean=True)
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (3, (3,), (), ())


def test_without_eligible_leaders_the_last_of_an_isr_stays_in_it() -> None:
    part = after(image_with(eligible=False, isr=[1]), Wanted(isr=[]), leaving=1)
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (-1, (1,), (), ())


def test_without_eligible_leaders_old_ones_are_forgotten() -> None:
    part = after(image_with(eligible=False, isr=[1], eligible_leader_replicas=[2]), Wanted())
    assert part.eligible_leaders == ()


def test_a_preferred_leader_must_be_in_sync() -> None:
    assert after(image_with(leader=2), Wanted(election=Election.PREFERRED)).leader == 1
    assert changed(image_with(leader=2, isr=[2, 3]), Wanted(election=Election.PREFERRED)) is None


@pytest.mark.parametrize(("level", "epoch"), [(11, 5), (12, 4), (30, 4)])
def test_a_smaller_isr_begins_a_new_epoch_in_old_clusters_only(level: int, epoch: int) -> None:
    image = image_with(eligible=False, level=level)
    assert after(image, Wanted(isr=[1, 2])).leader_epoch == epoch
    assert after(image, Wanted(isr=[1, 2, 3])).leader_epoch == epoch


def test_a_removed_replica_begins_a_new_epoch_and_an_added_one_does_not() -> None:
    image = image_with()
    assert after(image, Wanted(replicas=[1, 2, 3, 4])).leader_epoch == 4
    assert after(image, Wanted(replicas=[1, 2, 3])).leader_epoch == 5


@pytest.mark.parametrize(
    ("adding", "removing", "isr", "ends"),
    [
        ([4], [1], [1, 2, 3, 4], True),
        ([4], [1], [4], True),  # as many come as go: the others may lag
        ([4], [1], [1, 2, 3], False),
        ([4], [1, 2], [3, 4], True),
        ([4], [1, 2], [1, 2, 4], False),  # fewer than before: all that stay must be in sync
        ([], [1], [1, 2, 3, 4], True),
        ([], [1, 2, 3, 4], [1, 2], False),
        ([4, 5], [], [4], False),
    ],
)
def test_a_reassignment_ends_when_who_comes_is_in_sync(
    adding: list[int], removing: list[int], isr: list[int], ends: bool
) -> None:
    replicas = [1, 2, 3, 4]
    image = image_with(replicas=replicas, isr=isr, leader=isr[0], adding_replicas=adding, removing_replicas=removing)
    record = changed(image, Wanted(isr=isr))
    part = commit(image, [record] if record else [])
    assert (part.adding == part.removing == ()) is ends
    if ends:
        assert part.replicas == tuple(one for one in replicas if one not in removing)
        assert not set(part.isr) & set(removing)
        assert part.leader_epoch == 5
        assert len(part.directories) == len(part.replicas)


def test_a_replica_that_is_removed_is_not_eligible_any_more() -> None:
    image = image_with(replicas=[1, 2], isr=[1, 2])
    part = after(image, Wanted(replicas=[1], removing=[2]))
    assert (part.replicas, part.isr, part.eligible_leaders) == ((1,), (1,), ())


def test_a_last_known_leader_that_is_removed_is_forgotten() -> None:
    image = image_with(isr=[], leader=-1, last_known_elr=[3], fenced=(1, 2, 3))
    part = after(image, Wanted(replicas=[1, 2]))
    assert (part.leader, part.last_known_leaders) == (-1, ())
    image = image_with(replicas=[3, 1], isr=[3], leader=3, fenced=(1,))
    part = after(image, Wanted(replicas=[1], isr=[]))
    assert (part.leader, part.last_known_leaders) == (-1, ())


def test_directories_stay_beside_their_replicas() -> None:
    part = after(image_with(), Wanted(replicas=[4, 3, 1, 2]))
    assert part.directories == tuple(directory(broker) for broker in (4, 3, 1, 2))
    part = after(image_with(), Wanted(directories={2: directory(2, 5)}))
    assert part.directories == (directory(1), directory(2, 5), directory(3))


def test_a_cluster_without_directory_ids_writes_none() -> None:
    image = image_with(level=16, eligible=False)
    part = after(image, Wanted(replicas=[1, 2, 3, 4]))
    assert (part.replicas, part.directories) == ((1, 2, 3, 4), ())


def test_partitions_from_before_there_were_directory_ids_get_them_with_the_next_change() -> None:
    image = image_with(directories=[])
    assert changed(image, Wanted(isr=[1, 2])).directories is None
    record = changed(image, Wanted(replicas=[1, 2, 3, 4]))
    assert record.directories == [MIGRATING_DIRECTORY] * 3 + [directory(4)]


@pytest.mark.parametrize(
    ("where", "online", "expected"),
    [
        (directory(1), (directory(1),), True),
        (directory(1), (directory(2),), False),
        (directory(1), (), True),
        (UNASSIGNED_DIRECTORY, (directory(2),), True),
        (MIGRATING_DIRECTORY, (directory(2),), True),
        (LOST_DIRECTORY, (), False),
    ],
)
def test_a_directory_is_online(where: bytes, online: tuple[bytes, ...], expected: bool) -> None:
    assert is_online(where, online) is expected


def test_a_leader_that_recovers_says_so() -> None:
    assert after(image_with(leader_recovery_state=1), Wanted(recovery_state=0)).recovery_state == 0


@st.composite
def partitions(draw: st.DrawFn) -> dict[str, Any]:
    """Any partition that the rules could have led to."""
    replicas = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True))
    some = st.lists(st.sampled_from(replicas), unique=True)
    isr = draw(some)
    eligible = [one for one in draw(some) if one not in isr]
    leader = draw(st.sampled_from([*isr, -1]))
    last = draw(st.lists(st.sampled_from(replicas), max_size=1)) if leader == -1 else []
    adding, removing = draw(some), draw(some)
    return {
        "replicas": replicas,
        "isr": isr,
        "leader": leader,
        "eligible_leader_replicas": eligible,
        "last_known_elr": last,
        "adding_replicas": adding[: len(replicas) - 1],
        "removing_replicas": [one for one in removing if one not in adding][: len(replicas) - 1],
    }


@given(
    placed=partitions(),
    fenced=st.lists(st.integers(1, 5), unique=True, max_size=4),
    broker=st.integers(1, 5),
    settings=st.tuples(st.integers(1, 3), st.booleans(), st.booleans(), st.booleans()),
)
def test_who_leads_is_alive_and_in_sync_whoever_goes(
    placed: dict[str, Any], fenced: list[int], broker: int, settings: tuple[int, bool, bool, bool]
) -> None:
    min_insync, unclean, eligible, is_lost = settings
    image = image_with(eligible, fenced=tuple(fenced), **placed)
    before = partition(image)
    rules = rules_of(image, policy(image, min_insync, unclean), leaving=broker)
    were = {*before.isr, *before.eligible_leaders}
    last = before.last_known_leaders
    part = commit(image, list(remove(rules, [(image.topics["t"], before)], broker, is_lost=is_lost)))
    assert set(part.isr) <= set(part.replicas)
    assert set(part.eligible_leaders) <= set(part.replicas)
    assert not set(part.isr) & set(part.eligible_leaders)
    assert len(part.directories) == len(part.replicas)
    if part.leader != -1:
        assert part.leader in part.isr
        assert part.leader != broker
        assert image.is_active(part.leader)
        assert part.recovery_state or part.leader in were
        assert unclean or part.leader in were or (part.leader,) == last
    if eligible:
        assert broker not in part.isr
        if is_lost:
            assert broker not in part.eligible_leaders
    for _ in range(2):  # what follows from an election, as the end of a move, comes with the next change
        commit(image, list(remove(rules, [(image.topics["t"], part)], broker, is_lost=is_lost)))
    assert list(remove(rules, [(image.topics["t"], part)], broker, is_lost=is_lost)) == []


def test_only_the_partitions_that_are_given_are_looked_at() -> None:
    image = image_of()
    add_topic(image, {}, {})
    places = [(image.topics["t"], partition(image, 1))]
    made = list(remove(rules_of(image, policy(image), leaving=1), places, 1))
    assert [record.partition_id for record in made] == [1]
    assert isinstance(made[0], m.PartitionChangeRecord)
    assert made[0].topic_id == TOPIC_ID
