"""The assignor of share groups: everything is assigned, evenly, and little moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.consumer.assignors import Assignment, Subscriber
from moldau.machines.share.assignor import simple

A, B, C = (bytes(15) + bytes([number]) for number in range(3))


def members(count: int, topics: set[bytes], has: Assignment | None = None) -> list[Subscriber]:
    return [Subscriber(f"m{n}", frozenset(topics), (has or {}).get(f"m{n}", {})) for n in range(count)]


def slots(assignment: Assignment) -> dict[str, set[tuple[bytes, int]]]:
    return {who: {(topic, index) for topic, mine in has.items() for index in mine} for who, has in assignment.items()}


def shares(assignment: Assignment) -> dict[tuple[bytes, int], int]:
    counts: dict[tuple[bytes, int], int] = {}
    for mine in slots(assignment).values():
        for slot in mine:
            counts[slot] = counts.get(slot, 0) + 1
    return counts


def test_few_members_have_partitions_of_their_own():
    assignment = simple(members(2, {A, B}), {A: frozenset({0, 1, 2}), B: frozenset({0, 1})})
    assert sorted(len(mine) for mine in slots(assignment).values()) == [2, 3]
    assert set(shares(assignment).values()) == {1}


def test_many_members_share_partitions():
    assignment = simple(members(5, {A}), {A: frozenset({0, 1})})
    assert sorted(len(mine) for mine in slots(assignment).values()) == [1, 1, 1, 1, 2]
    assert shares(assignment) == {(A, 0): 3, (A, 1): 3}


def test_only_partitions_with_a_state_are_assigned():
    assert simple(members(1, {A, B}), {A: frozenset({1})}) == {"m0": {A: frozenset({1})}}
    assert simple(members(2, {A}), {}) == {"m0": {}, "m1": {}}


def test_members_with_other_topics_share_each_topic():
    one, two, both = (Subscriber(name, frozenset(t), {}) for name, t in (("m0", {A}), ("m1", {B}), ("m2", {A, B})))
    parts = frozenset(range(4))
    has = slots(simple([one, two, both], {A: parts, B: parts}))
    assert {name: len(mine) for name, mine in has.items()} == {"m0": 2, "m1": 2, "m2": 4}


def test_a_member_that_joins_moves_no_more_than_its_share():
    parts = {A: frozenset(range(6))}
    before = simple(members(2, {A}), parts)
    after = slots(simple(members(3, {A}, before), parts))
    assert [len(after[f"m{n}"]) for n in range(3)] == [2, 2, 2]
    assert all(after[name] <= mine for name, mine in slots(before).items())


def test_a_member_that_leaves_moves_only_what_it_had():
    parts = {A: frozenset(range(6))}
    before = simple(members(3, {A}), parts)
    after = slots(simple(members(2, {A}, before), parts))
    assert [len(after[f"m{n}"]) for n in range(2)] == [3, 3]
    assert all(after[f"m{n}"] >= slots(before)[f"m{n}"] for n in range(2))


TOPICS = st.frozensets(st.sampled_from([A, B, C]), min_size=1)
PARTS = st.dictionaries(st.sampled_from([A, B, C]), st.frozensets(st.integers(0, 6)))


@given(st.lists(TOPICS, min_size=1, max_size=8), PARTS, st.dictionaries(st.integers(0, 7), PARTS))
def test_every_partition_goes_to_somebody_who_asks_for_it(topics, assignable, had):
    subscribers = [Subscriber(f"m{n}", wish, had.get(n, {})) for n, wish in enumerate(topics)]
    has = slots(simple(subscribers, assignable))
    wanted = {(topic, index) for wish in topics for topic in wish for index in assignable.get(topic, ())}
    assert set().union(*has.values()) == wanted
    assert all(topic in topics[n] for n in range(len(topics)) for topic, _ in has[f"m{n}"])


@given(st.integers(1, 12), st.frozensets(st.integers(0, 15), min_size=1), st.dictionaries(st.integers(0, 11), PARTS))
def test_alike_members_have_alike_shares(count, partitions, had):
    """Where a member cannot have a partition twice, one may be left with fewer members than the others."""
    earlier = {f"m{n}": has for n, has in had.items()}
    assignment = simple(members(count, {A}, earlier), {A: partitions})
    sizes = [len(mine) for mine in slots(assignment).values()]
    sharing = -(-count // len(partitions))
    assert max(sizes) <= -(-sharing * len(partitions) // count)
    assert all(1 <= number <= sharing for number in shares(assignment).values())


@given(st.integers(1, 12), st.frozensets(st.integers(0, 15), min_size=1))
def test_what_is_even_stays(count, partitions):
    before = simple(members(count, {A}), {A: partitions})
    assert simple(members(count, {A}, before), {A: partitions}) == before
