"""The assignor of tasks: balanced over processes and members, sticky, with standbys where there is room."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.streams.assignor import Worker, assign
from moldau.machines.streams.configuring import InternalTopic, Subtopology
from moldau.machines.streams.tasks import NO_TASKS, Role, Tasks

STORE = {"store": InternalTopic("store", 1, 0, {})}


def parts(*tasks: int, stateful: bool = False) -> dict[str, Subtopology]:
    changelogs = STORE if stateful else {}
    return {
        str(number): Subtopology(count, frozenset({"t"}), frozenset(), {}, changelogs)
        for number, count in enumerate(tasks)
    }


def workers(layout: dict[str, str], has: dict[str, Tasks] | None = None) -> list[Worker]:
    return [Worker(member, process, (has or {}).get(member, NO_TASKS)) for member, process in layout.items()]


def counts(result: dict[str, Tasks], role: Role = Role.ACTIVE) -> dict[str, int]:
    return {
        member: sum(len(indexes) for kind, indexes in mine.items() if kind[0] == role)
        for member, mine in result.items()
    }


ALONE = {"a": "p1", "b": "p2", "c": "p3"}


def test_tasks_are_spread_evenly():
    assert counts(assign(workers(ALONE), parts(4, 5), 0)) == {"a": 3, "b": 3, "c": 3}


def test_threads_of_one_process_share_what_it_gets():
    result = counts(assign(workers({"a": "p1", "b": "p1", "c": "p2"}), parts(6), 0))
    assert result == {"a": 2, "b": 2, "c": 2}


def test_tasks_stay_where_they_are_and_only_the_surplus_moves():
    before = assign(workers({"a": "p1", "b": "p2"}), parts(6), 0)
    after = assign(workers(ALONE, before), parts(6), 0)
    assert counts(after) == {"a": 2, "b": 2, "c": 2}
    for member in ("a", "b"):
        assert after[member][Role.ACTIVE, "0"] <= before[member][Role.ACTIVE, "0"]


def test_a_task_goes_to_where_a_copy_of_its_state_is():
    before = assign(workers(ALONE), parts(3, stateful=True), 1)
    layout = {member: process for member, process in ALONE.items() if member != "a"}
    after = assign(workers(layout, before), parts(3, stateful=True), 1)
    (orphan,) = before["a"][Role.ACTIVE, "0"]
    heir = next(member for member in layout if orphan in before[member].get((Role.STANDBY, "0"), ()))
    assert orphan in after[heir][Role.ACTIVE, "0"]


def test_standbys_run_on_other_processes_as_many_as_there_are():
    result = assign(workers({"a": "p1", "b": "p1"}), parts(4, stateful=True), 2)
    assert counts(result, Role.STANDBY) == {"a": 0, "b": 0}
    result = assign(workers(ALONE), parts(6, stateful=True), 1)
    assert counts(result, Role.STANDBY) == {"a": 2, "b": 2, "c": 2}


def test_stateless_tasks_have_no_standbys():
    assert counts(assign(workers(ALONE), parts(6), 2), Role.STANDBY) == {"a": 0, "b": 0, "c": 0}


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["p1", "p2", "p3"]), min_size=1),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["p1", "p2", "p3"]), min_size=1),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 2),
)
def test_every_task_runs_once_and_has_its_copies_elsewhere(first, second, tasks, stateful, copies):
    """Also when members have come and gone."""
    topology = parts(*tasks, stateful=stateful)
    before = assign(workers(first), topology, copies)
    result = assign(workers(second, before), topology, copies)
    slots = [(kind, index, member) for member, mine in result.items() for kind, them in mine.items() for index in them]
    active = Counter((kind[1], index) for kind, index, _ in slots if kind[0] == Role.ACTIVE)
    assert active == Counter((str(n), index) for n, count in enumerate(tasks) for index in range(count))
    placed = [(second[member], kind[1], index) for kind, index, member in slots]
    assert len(placed) == len(set(placed))
    possible = min(copies, len(set(second.values())) - 1) if stateful else 0
    assert sum(counts(result, Role.STANDBY).values()) == possible * sum(tasks)
    if len(set(second.values())) == len(second):
        load = counts(result).values()
        assert max(load) - min(load) <= 1
