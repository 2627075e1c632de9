"""Assignors: everything is given to somebody who asked for it, evenly, and little moves."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.machines.consumer.assignors import Assignment, Pool, Subscriber, ranges, uniform

TOPICS = [bytes([number]) * 16 for number in range(4)]

counts_given = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
wishes_given = st.lists(st.frozensets(st.sampled_from(TOPICS)), min_size=1, max_size=8)


def members(wishes: list[frozenset[bytes]], before: Assignment | None = None) -> list[Subscriber]:
    return [Subscriber(f"m{n}", topics, (before or {}).get(f"m{n}", {})) for n, topics in enumerate(wishes)]


def alike(count: int, before: Assignment | None = None, topics: int = 1) -> list[Subscriber]:
    return members([frozenset(TOPICS[:topics])] * count, before)


def slots(assignment: Assignment) -> list[tuple[bytes, int]]:
    return [(topic, index) for has in assignment.values() for topic, all_ in has.items() for index in all_]


def sizes(assignment: Assignment) -> list[int]:
    return [sum(map(len, has.values())) for has in assignment.values()]


def check_complete(assignment: Assignment, wishes: list[frozenset[bytes]], counts: dict[bytes, int]) -> None:
    wanted = frozenset().union(*wishes)
    everything = {(topic, index) for topic, count in counts.items() if topic in wanted for index in range(count)}
    given_out = slots(assignment)
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == everything
    for number, topics in enumerate(wishes):
        assert set(assignment[f"m{number}"]) <= topics


@given(wishes_given, counts_given, wishes_given, counts_given)
@settings(max_examples=200)
def test_uniform_gives_every_partition_to_one_subscriber(wishes, counts, later, changed) -> None:
    first = uniform(members(wishes), counts)
    check_complete(first, wishes, counts)
    check_complete(uniform(members(later, first), changed), later, changed)


@given(wishes_given, counts_given)
def test_range_gives_every_partition_to_one_subscriber(wishes, counts) -> None:
    check_complete(ranges(members(wishes), counts), wishes, counts)


@given(st.integers(1, 9), st.integers(1, 9), counts_given)
def test_uniform_is_even_and_moves_no_more_than_that_takes(before, after, counts) -> None:
    first = uniform(alike(before, topics=4), counts)
    second = uniform(alike(after, first, topics=4), counts)
    assert max(sizes(second)) - min(sizes(second)) <= 1
    for member in first.keys() & second.keys():  # old members only give to newcomers, or only get what leavers had
        had, has = set(slots({member: first[member]})), set(slots({member: second[member]}))
        assert has <= had if after >= before else had <= has


def test_uniform_changes_nothing_when_nothing_changed() -> None:
    first = uniform(alike(3, topics=2), {TOPICS[0]: 5, TOPICS[1]: 6})
    assert uniform(alike(3, first, topics=2), {TOPICS[0]: 5, TOPICS[1]: 6}) == first


def test_uniform_takes_from_who_reads_more_topics() -> None:
    both, one = frozenset(TOPICS[:2]), frozenset(TOPICS[:1])
    before = uniform(members([both]), {TOPICS[0]: 4, TOPICS[1]: 4})
    assert sizes(uniform(members([both, one], before), {TOPICS[0]: 4, TOPICS[1]: 4})) == [4, 4]


def test_uniform_passes_over_a_topic_that_a_member_has_given_away_whole() -> None:
    a, b = TOPICS[:2]
    pool = Pool([0], held={0: {a: frozenset({0, 1}), b: frozenset()}})
    assert [*pool.take(0, 1), *pool.take(0, 1)] == [(a, 1), (a, 0)]


def test_uniform_leaves_out_topics_that_are_gone() -> None:
    before = uniform(alike(2, topics=2), {TOPICS[0]: 2, TOPICS[1]: 2})
    assert sizes(uniform(alike(2, before, topics=2), {TOPICS[1]: 2})) == [1, 1]


def test_a_hundred_members_share_a_thousand_partitions_evenly_at_every_step() -> None:
    assignment: Assignment = {}
    for count in range(1, 101):
        assignment = uniform(alike(count, assignment), {TOPICS[0]: 1000})
        assert max(sizes(assignment)) - min(sizes(assignment)) <= 1


def test_range_gives_the_same_numbers_of_topics_of_one_size() -> None:
    assignment = ranges(alike(2, topics=2), {TOPICS[0]: 3, TOPICS[1]: 3})
    assert assignment == {
        "m0": {TOPICS[0]: frozenset({0, 1}), TOPICS[1]: frozenset({0, 1})},
        "m1": {TOPICS[0]: frozenset({2}), TOPICS[1]: frozenset({2})},
    }


def test_range_puts_static_members_first_in_the_order_of_their_instance_ids() -> None:
    topics = frozenset(TOPICS[:1])
    group = [Subscriber("a", topics, {}), Subscriber("b", topics, {}, "2"), Subscriber("c", topics, {}, "1")]
    assignment = ranges(group, {TOPICS[0]: 3})
    assert [assignment[m][TOPICS[0]] for m in "cba"] == [frozenset({0}), frozenset({1}), frozenset({2})]
