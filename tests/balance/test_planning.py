"""Plans: what each of them keeps, and what they achieve on clusters as people have them."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.balance.goals import GOALS, HARD, Goal, Limits, bounds
from moldau.balance.model import Broker, Model, Partition, loads
from moldau.balance.moves import Move, Plan
from moldau.balance.planning import plan
from tests.balance.clusters import GB, models, regular

some_goals = st.lists(st.sampled_from(sorted(GOALS)), unique=True).map(lambda names: [GOALS[name] for name in names])
EXAMPLES = settings(max_examples=80)


@EXAMPLES
@given(models(), some_goals)
def test_no_plan_makes_a_hard_goal_worse(model: Model, goals: list[Goal]) -> None:
    made = plan(model, goals)
    for goal in HARD:
        assert goal.broken(made.after, Limits()) <= goal.broken(model, Limits()), goal.name
    fixed = {one.place for one in model.partitions if one.fixed}
    taking = {broker.id for broker in model.taking()}
    for move in made.moves:
        assert len(set(move.after)) == len(move.after) == len(move.before)
        assert set(move.adding) <= taking
        assert move.place not in fixed


@EXAMPLES
@given(models(), some_goals)
def test_a_plan_is_final_and_the_same_every_time(model: Model, goals: list[Goal]) -> None:
    made = plan(model, goals)
    assert plan(model, goals).moves == made.moves
    assert plan(made.after, goals).moves == ()


@EXAMPLES
@given(models())
def test_applying_the_moves_gives_the_promised_after(model: Model) -> None:
    made = plan(model)
    targets = {move.place: move.after for move in made.moves}
    for before, after in zip(model.partitions, made.after.partitions, strict=True):
        assert after.replicas == targets.get(before.place, before.replicas)
        assert after.leader in after.replicas or after.leader == before.leader
    held = sum(load.bytes for load in loads(model).values())
    assert sum(after.bytes for _, after in made.loads().values()) == held
    for before, after in zip(model.brokers, made.after.brokers, strict=True):
        if before.room_bytes is not None and after.room_bytes is not None:
            was, now = made.loads()[before.id]
            assert before.room_bytes + was.bytes == after.room_bytes + now.bytes


@EXAMPLES
@given(models(), st.integers(0, 20))
def test_a_plan_moves_no_more_than_it_may(model: Model, most: int) -> None:
    assert plan(model, limits=Limits(max_bytes=most * GB)).bytes <= most * GB


def test_a_balanced_cluster_is_left_alone() -> None:
    assert plan(regular(3, 6)).moves == ()
    assert plan(regular(4, 40, racks=4)).moves == ()
    assert plan(Model((), ())).moves == ()


def spread_of(made: Plan) -> dict[str, list[int]]:
    after = [after for _, after in made.loads().values()]
    return {name: [getattr(one, name) for one in after] for name in ("leaders", "replicas", "bytes")}


def test_new_brokers_are_filled_and_nothing_else_is_moved() -> None:
    made = plan(regular(3, 30, new=2))
    spread = spread_of(made)
    assert all(16 <= count <= 20 for count in spread["replicas"]), spread
    assert all(5 <= count <= 7 for count in spread["leaders"]), spread
    assert {id for move in made.moves for id in move.adding} == {4, 5}
    assert made.bytes <= 36 * GB, "what two brokers have at the least"


def test_leaders_are_changed_without_moving_bytes() -> None:
    parts = tuple(Partition("t", number, (1, 2, 3), 1, (1, 2, 3), GB) for number in range(9))
    made = plan(Model((Broker(1), Broker(2), Broker(3)), parts))
    assert made.bytes == 0 and made.leaders == 6
    assert spread_of(made)["leaders"] == [3, 3, 3]


def test_leads_are_passed_on_over_a_broker_in_between() -> None:
    """1 shares partitions with 2 only, and 2 with 3."""
    pairs = [(1, 2)] * 4 + [(2, 3)] * 4
    parts = tuple(Partition("t", number, ids, ids[0], ids, GB) for number, ids in enumerate(pairs))
    model = Model((Broker(1), Broker(2), Broker(3)), parts)
    made = plan(model, [GOALS["leaders"]])
    assert sorted(spread_of(made)["leaders"]) == [2, 3, 3] and made.bytes == 0


def test_a_leader_that_is_not_the_preferred_one_is_elected() -> None:
    model = regular(3, 3)
    first = replace(model.partitions[0], leader=2)
    made = plan(replace(model, partitions=(first, *model.partitions[1:])))
    assert made.moves == (Move("t", 0, (1, 2, 3), (1, 2, 3), 2, GB),)
    assert plan(replace(model, partitions=(first, *model.partitions[1:])), [GOALS["bytes"]]).moves == ()


def test_a_drained_broker_has_nothing_and_the_others_share_it() -> None:
    made = plan(regular(4, 40, racks=0).without([4]))
    assert made.problems == ()
    assert spread_of(made)["replicas"] == [40, 40, 40, 0]
    assert made.bytes == 30 * GB, "only what was there"


def test_replicas_that_fit_nowhere_stay_and_are_reported() -> None:
    made = plan(regular(3, 6).without([3]))
    assert made.moves == () or made.bytes == 0
    assert made.problems == (
        "6 replicas stay on brokers that are away or shall be empty: no other broker can take them.",
    )


def test_a_full_disk_takes_nothing() -> None:
    model = regular(3, 30, new=1)
    small = Broker(4, room_bytes=6 * GB, total_bytes=10 * GB)
    disks = [replace(one, room_bytes=500 * GB, total_bytes=1000 * GB) for one in model.brokers[:3]]
    made = plan(Model((*disks, small), model.partitions), [GOALS["replicas"]])
    assert spread_of(made)["bytes"][3] == 5 * GB, "a tenth stays free"


def test_a_larger_disk_gets_more_bytes() -> None:
    model = regular(4, 40)
    sizes = (1000, 1000, 1000, 3000)
    disks = [
        replace(one, room_bytes=size * GB, total_bytes=size * GB)
        for one, size in zip(model.brokers, sizes, strict=True)
    ]
    made = plan(Model(tuple(disks), model.partitions), [GOALS["bytes"]])
    assert spread_of(made)["replicas"][3] == 40, "one of each partition is the most there can be"


def test_racks_that_are_shared_are_separated() -> None:
    brokers = tuple(Broker(id, f"r{id % 2}") for id in range(1, 5))
    parts = tuple(Partition("t", number, (1, 3), 1, (1, 3), GB) for number in range(4))
    made = plan(Model(brokers, parts))
    assert all({id % 2 for id in one.replicas} == {0, 1} for one in made.after.partitions)
    assert made.bytes == 4 * GB


def test_busy_leaders_are_separated() -> None:
    rates = (9_000_000, 9_000_000, 0, 0)
    parts = [
        Partition("t", number, ids, ids[0], ids, GB, rate, rate)
        for number, (ids, rate) in enumerate(zip(((1, 2), (1, 2), (2, 1), (2, 1)), rates, strict=True))
    ]
    made = plan(Model((Broker(1), Broker(2)), tuple(parts)))
    assert made.bytes == 0
    assert [after.bytes_out for _, after in made.loads().values()] == [18_000_000, 18_000_000]


def test_each_topic_is_spread_in_the_end() -> None:
    """Two topics, each on brokers of its own: bytes, leaders and replicas are balanced, topics are not."""
    parts = tuple(
        Partition(topic, number, (ids[number % 2],), ids[number % 2], (ids[number % 2],), GB)
        for topic, ids in (("a", (1, 2)), ("b", (3, 4)))
        for number in range(16)
    )
    brokers = tuple(Broker(id) for id in range(1, 5))
    made = plan(Model(brokers, parts))
    for topic in ("a", "b"):
        counts = [sum(one.topic == topic and id in one.replicas for one in made.after.partitions) for id in range(1, 5)]
        assert max(counts) <= 5 and min(counts) >= 3, (topic, counts)
    assert spread_of(made)["replicas"] == [8, 8, 8, 8]


def test_bounds_always_hold_a_count_next_to_the_share() -> None:
    assert bounds(10, Fraction(1, 3), 0.1, 0) == (3, 4)
    assert bounds(9, Fraction(1, 3), 0.0, 0) == (3, 3)
    assert bounds(1000, Fraction(1, 2), 0.1, 0) == (450, 550)
    assert bounds(0, Fraction(1, 2), 0.1, 5) == (0, 5)


def test_the_busiest_broker_decides_how_long_it_takes() -> None:
    move = Move("t", 0, (1, 2), (3, 2), 1, 100)
    made = Plan((move, replace(move, number=1)), Model((), ()), Model((), ()))
    assert made.seconds(10) == 20.0


def test_ten_thousand_partitions_are_planned_within_seconds() -> None:
    dice = Random(1)
    parts = []
    for number in range(10_000):
        first = dice.randrange(3)
        ids = tuple((first + step) % 3 for step in range(3))
        parts.append(Partition(f"t{number // 20}", number, ids, ids[0], ids, int(dice.lognormvariate(18, 1.5))))
    model = Model(tuple(Broker(id) for id in range(5)), tuple(parts))
    begin = time.process_time()
    made = plan(model)
    spent = time.process_time() - begin
    assert all(5_400 <= count <= 6_600 for count in spread_of(made)["replicas"])
    assert spent < 20.0, "about five on a slow machine; quadratic work would take minutes"
