"""Timers against a plain dictionary of deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.effects import Effects
from moldau.machines.timers import HEAP_SLACK, Timers

names = st.integers(0, 4)
times = st.integers(0, 20)
steps = st.one_of(
    st.tuples(st.just("set"), names, times),
    st.tuples(st.just("postpone"), names, times),
    st.tuples(st.just("cancel"), names, times),
    st.tuples(st.just("take"), names, times),
)


@given(st.lists(steps, max_size=60))
def test_timers_fall_due_as_they_were_last_set(done: list[tuple[str, int, int]]) -> None:
    timers, model = Timers(), dict[int, int]()
    taken: list[int] = []

    def note(name: int) -> Effects:
        taken.append(name)
        return Effects()

    for what, name, time in done:
        if what == "set":
            timers.set(name, time, lambda _, name=name: note(name))
            model[name] = time
        elif what == "postpone":
            may = name in model and time >= model[name]
            assert timers.postpone(name, time) == may
            model.update({name: time} if may else {})
        elif what == "cancel":
            timers.cancel(name)
            model.pop(name, None)
        elif (action := timers.take(time)) is None:
            assert all(deadline > time for deadline in model.values())
        else:
            action(time)
            earliest = min(model.values())
            assert model.pop(taken[-1]) == earliest <= time
        assert timers.next_deadline_ms() == min(model.values(), default=float("inf"))


def test_cancelled_timers_do_not_fill_memory() -> None:
    timers = Timers()
    for n in range(10_000):
        timers.set(n % 10, n, lambda _: Effects())
    assert len(timers.heap) <= HEAP_SLACK + 21
