"""Plans of moves: nothing moves that need not, racks are kept apart, and what cannot be is refused with a sentence."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.admin.mistakes import Mistake
from moldau.admin.moves import Move, Replica, State, drain, move, under_way
from moldau.admin.reassignments import Reassignment

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def state(*parts: Replica, racks: dict[int, str] = RACKS, **loads: int) -> State:
    known = {int(name[1:]): size for name, size in loads.items()}
    return State(parts, racks, frozenset({*racks, 9}), known)


def part(index: int, *brokers: int, size: int = 10, led: bool = True) -> Replica:
    return Replica("t", index, brokers, led, size)


def test_a_replica_goes_to_another_rack_and_then_to_the_emptiest_broker() -> None:
    planned = drain(state(part(0, 1, 3), part(1, 1), part(2, 2, 3), b2=100, b3=5, b4=50), 1)
    assert planned == [Move("t", 0, (1, 3), (2, 3), 10), Move("t", 1, (1,), (3,), 10)]
    assert [one.bytes for one in planned] == [10, 10]


def test_a_broker_that_is_down_is_drained_too_but_takes_nothing() -> None:
    [one] = drain(state(part(0, 9, 1), racks={1: "a", 3: "b"}), 9)
    assert one.after == (3, 1)


@given(
    st.lists(st.tuples(st.permutations([1, 2, 3, 4, 5]), st.integers(1, 3), st.integers(0, 1000)), max_size=30),
    st.integers(1, 5),
)
def test_only_the_replicas_of_the_broker_move_and_none_stays(
    rows: list[tuple[list[int], int, int]], broker: int
) -> None:
    racks = {one: "ab"[one % 2] for one in range(1, 6)}
    parts = [part(index, *brokers[:count], size=size) for index, (brokers, count, size) in enumerate(rows)]
    planned = drain(state(*parts, racks=racks), broker)
    assert {one.index for one in planned} == {one.index for one in parts if broker in one.brokers}
    for one in planned:
        assert broker not in one.after and len(set(one.after)) == len(one.before)
        assert [a for a, b in zip(one.before, one.after, strict=True) if a != b] == [broker]
        spread = Counter(racks[other] for other in one.after)
        assert len(one.after) == 1 or len(spread) == 2 or len({racks[a] for a in one.before if a != broker}) == 2


@pytest.mark.parametrize(
    ("what", "broker", "said"),
    [
        (part(0, 1, 2, 3, 4), 1, "has 4 replicas"),
        (part(0, 1, led=False), 1, "has no leader"),
        (part(0, 1), 7, "There is no broker 7"),
    ],
)
def test_what_cannot_be_drained_is_refused(what: Replica, broker: int, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        drain(state(what), broker)


def test_a_topic_is_led_in_turns_and_a_named_partition_as_it_is_said() -> None:
    seen = state(part(0, 1, 2), part(1, 2, 1), part(2, 3, 4))
    assert [one.after for one in move(seen, "t", None, [1, 2])] == [(1, 2)], "the others are there already"
    assert [one.after for one in move(seen, "t", [1], [1, 2])] == [(1, 2)]
    assert move(seen, "t", [1], [1, 2])[0].bytes == 0, "only the order changes"
    assert [one.bytes for one in move(seen, "t", [0], [1, 2, 3])] == [10]
    with pytest.raises(Mistake, match="Broker 9 is not there"):
        move(seen, "t", None, [9])


def test_moves_under_way_are_measured_by_the_replicas_that_they_make() -> None:
    moving = {
        ("t", 0): Reassignment((1, 2, 3), (3,), (1,)),
        ("t", 1): Reassignment((1, 2), (2,), ()),
        ("t", 2): Reassignment((1, 2, 3), (2, 3), (1,)),
        ("t", 3): Reassignment((1, 2), (), (2,)),
    }
    sizes = {("t", 0): {1: 100, 2: 90, 3: 25}, ("t", 1): {1: 0}, ("t", 2): {1: 50, 2: 60, 3: 0}}
    found = under_way(moving, sizes)
    assert [(one.copied, one.bytes) for one in found] == [(25, 100), (0, 0), (50, 100), (0, 0)]
    assert [one.share for one in found] == [0.25, 1.0, 0.5, 1.0]
    assert (found[0].adding, found[0].removing) == ((3,), (1,))
