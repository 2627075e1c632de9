"""Runs on a made-up cluster: whatever interrupts them, plans are carried out or called off, and no throttle stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.balance import throttles
from moldau.balance.execution import Executor, Progress
from moldau.balance.journal import RUNNING, Journal, Planned, Row, Run, Wanted, decode, encode, resumption, submission
from moldau.balance.model import Model, Place
from moldau.balance.moves import Move
from moldau.balance.planning import plan
from moldau.balance.progress import CANCELLED, DONE, PAUSED, Pace, PartitionView, View, Wish
from moldau.balance.throttles import Throttle
from moldau.client import Record
from tests.balance.clusters import GB, models, regular

MANY = 500
RATE = 1000
PACE = Pace(moves=6, moves_each=2, leaders=2, keep_free=0)


class Killed(BaseException):
    """The process of the balancer ends here."""


class MadeUpCluster:
    """Partitions that move in steps, settings, and an accident after so many calls."""

    def __init__(self, model: Model) -> None:
        self.alive = frozenset(broker.id for broker in model.brokers if broker.takes or broker.alive)
        self.parts = {one.place: PartitionView(one.replicas, one.leader, one.isr) for one in model.partitions}
        self.sizes = {one.place: one.size for one in model.partitions}
        self.settings: dict[str, str | None] = {}
        self.calls_left = 1 << 30
        self.busiest = 0

    def call(self) -> None:
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Killed

    def view(self) -> View:
        self.call()
        self.busiest = max(self.busiest, sum(one.goal is not None for one in self.parts.values()))
        seen = View(self.alive, dict(self.parts))
        self.settle()
        return seen

    def settle(self) -> None:
        """End what is under way, if all brokers that it needs are there."""
        for place, one in self.parts.items():
            if one.goal is not None and set(one.goal) <= self.alive:
                leader = one.leader if one.leader in one.goal else one.goal[0]
                self.parts[place] = PartitionView(one.goal, leader, one.goal)

    def assign(self, targets: Mapping[Place, Sequence[int] | None]) -> dict[Place, str]:
        self.call()
        for place, ids in targets.items():
            one = self.parts[place]
            if ids is None:
                kept = tuple(id for id in one.replicas if one.goal is None or id in one.isr)
                self.parts[place] = replace(one, replicas=kept, goal=None)
            elif set(ids) == set(one.replicas):
                self.parts[place] = replace(one, replicas=tuple(ids))
            else:
                both = (*ids, *(id for id in one.replicas if id not in ids))
                self.parts[place] = replace(one, replicas=both, goal=tuple(ids))
        self.call()
        return {}

    def elect(self, places: Sequence[Place]) -> None:
        self.call()
        for place in places:
            self.parts[place] = replace(self.parts[place], leader=self.parts[place].replicas[0])

    def prepare(self, moves: Sequence[Move], rate: int) -> list[Throttle]:
        self.call()
        made = throttles.wanted(moves, rate)
        rows = [Throttle(of.kind, of.name, name, None, value) for (of, name), value in made.items()]
        return [replace(row, before=self.settings.get(row.key)) for row in rows]

    def put(self, those: Sequence[Throttle]) -> None:
        for one in those:
            self.call()
            self.settings[one.key] = one.value

    def take_away(self, those: Sequence[Throttle]) -> None:
        for one in those:
            self.call()
            if self.settings.get(one.key) == one.value:
                self.settings[one.key] = one.before


class Topic:
    """The journal on its topic: every process replays it from the start."""

    def __init__(self, cluster: MadeUpCluster) -> None:
        self.cluster, self.rows, self.readers = cluster, list[tuple[bytes, bytes | None]](), list[Journal]()
        self.now = 0.0

    def write(self, rows: Sequence[Row]) -> None:
        self.cluster.call()
        for row in rows:
            self.rows.append(encode(row))
            for reader in self.readers:
                reader.replay(row)
        self.cluster.call()

    def process(self, patience_s: float = 10.0) -> tuple[Journal, Executor]:
        """Start a process anew."""
        journal = Journal()
        for key, value in self.rows:
            journal.replay(decode(Record(0, 0, key, value)))
        self.readers = [journal]
        return journal, Executor(self.cluster, journal, self.write, self.clock, PACE, patience_s)

    def clock(self) -> float:
        self.now += 1.0
        return self.now


def begun(model: Model) -> tuple[MadeUpCluster, Topic, tuple[Move, ...]]:
    healthy = Model(
        tuple(replace(one, room_bytes=None, total_bytes=None) for one in model.brokers),
        tuple(replace(one, isr=one.replicas, leader=one.replicas[0], fixed=False) for one in model.partitions),
    )
    made = plan(healthy)
    cluster = MadeUpCluster(healthy)
    topic = Topic(cluster)
    run = Run("r1", "balance", throttle=RATE, known=tuple(cluster.alive))
    topic.write(submission(Journal(), run, made.moves))
    return cluster, topic, made.moves


def to_the_end(topic: Topic, calls: Sequence[int] = ()) -> tuple[Journal, Progress]:
    """Run processes that are killed after so many calls, then one that is not."""
    for count in (*calls, 1 << 30):
        topic.cluster.calls_left = count
        journal, executor = topic.process()
        try:
            for _ in range(MANY):
                seen = executor.tick()
                if seen.state != RUNNING:
                    executor.tick()  # it cleans up what is left
                    return journal, seen
        except Killed:
            continue
        raise AssertionError(f"still running after {MANY} steps: {seen}")
    raise AssertionError("unreachable")


accidents = st.lists(st.integers(0, 25), max_size=6)


@settings(max_examples=60)
@given(models(), accidents)
def test_a_plan_is_carried_out_however_often_the_process_is_killed(model: Model, calls: list[int]) -> None:
    cluster, topic, moves = begun(model)
    journal, seen = to_the_end(topic, calls)
    assert seen.state == DONE
    for move in moves:
        assert cluster.parts[move.place] == PartitionView(move.after, move.after[0], move.after) or (
            cluster.parts[move.place].replicas == move.after
        )
    assert not any(cluster.settings.values()), "no throttle stays"
    assert not journal.throttles and not journal.planned
    assert cluster.busiest <= PACE.moves


@settings(max_examples=60)
@given(models(), accidents, st.sampled_from((Wish.CANCEL, Wish.PAUSE)), st.integers(0, 5), accidents)
def test_a_wish_is_heard_however_often_the_process_is_killed(
    model: Model, calls: list[int], wish: Wish, ticks: int, more: list[int]
) -> None:
    cluster, topic, moves = begun(model)
    _, executor = topic.process()
    for _ in range(ticks):
        executor.tick()
    topic.write([Wanted("r1", wish)])
    journal, seen = to_the_end(topic, calls)
    if seen.state != DONE:
        assert seen.state == (CANCELLED if wish is Wish.CANCEL else PAUSED)
    for move in moves:
        assert cluster.parts[move.place].replicas in (move.before, move.after)
        assert cluster.parts[move.place].goal is None
    assert not any(cluster.settings.values()) and not journal.throttles
    if seen.state == PAUSED and journal.run is not None:
        topic.write(resumption(journal.run))
        assert to_the_end(topic, more)[1].state == DONE
        assert all(cluster.parts[move.place].replicas == move.after for move in moves)


def test_an_interrupt_calls_off_what_is_under_way_and_can_be_resumed() -> None:
    cluster, topic, _ = begun(regular(3, 12, new=1))
    journal, executor = topic.process()
    executor.tick()
    assert any(one.goal for one in cluster.parts.values()) and any(cluster.settings.values())
    executor.halted = True
    while executor.tick().state == RUNNING:
        pass
    assert not any(one.goal for one in cluster.parts.values()) and not any(cluster.settings.values())
    assert journal.run is not None and journal.run.state == PAUSED
    topic.write(resumption(journal.run))
    assert to_the_end(topic)[1].state == DONE


def gone(cluster: MadeUpCluster) -> None:
    cluster.alive -= {4}


def leaderless(cluster: MadeUpCluster) -> None:
    cluster.parts["t", 11] = replace(cluster.parts["t", 11], leader=-1)


def out_of_sync(cluster: MadeUpCluster) -> None:
    one = cluster.parts["t", 11]
    cluster.parts["t", 11] = replace(one, isr=one.isr[1:], goal=None, replicas=one.isr)


@pytest.mark.parametrize(
    ("accident", "words"),
    [(gone, "broker 4 is gone"), (leaderless, "t-11 has no leader"), (out_of_sync, "t-11 is not in sync on")],
)
def test_a_run_stops_when_the_cluster_stays_unwell(accident: Callable[[MadeUpCluster], None], words: str) -> None:
    cluster, topic, _ = begun(regular(3, 12, new=1))
    journal, executor = topic.process()
    executor.tick()
    accident(cluster)
    seen = executor.tick()
    assert seen.state == RUNNING and any(words in one for one in seen.trouble)
    begun_before = {place for place, one in cluster.parts.items() if one.goal}
    for _ in range(MANY):
        seen = executor.tick()
        assert {place for place, one in cluster.parts.items() if one.goal} <= begun_before, "nothing more begins"
        if seen.state != RUNNING:
            break
    assert words in seen.state
    assert not any(one.goal for one in cluster.parts.values()) and not any(cluster.settings.values())
    assert journal.run is not None and not journal.run.is_over, "it can be resumed"


def test_a_cluster_that_is_well_again_goes_on() -> None:
    cluster, topic, _ = begun(regular(3, 12, new=1))
    _, executor = topic.process()
    executor.tick()
    gone(cluster)
    assert executor.tick().trouble
    cluster.alive |= {4}
    assert to_the_end(topic)[1].state == DONE


def test_brokers_that_were_away_before_are_no_trouble() -> None:
    model = regular(4, 12)
    away = replace(model.brokers[3], takes=False, alive=False)
    parts = tuple(replace(one, isr=tuple(id for id in one.replicas if id != 4)) for one in model.partitions)
    parts = tuple(replace(one, leader=one.isr[0]) for one in parts)
    hurt = Model((*model.brokers[:3], away), parts)
    made = plan(hurt, ())
    cluster = MadeUpCluster(hurt)
    topic = Topic(cluster)
    topic.write(submission(Journal(), Run("r1", "heal 4", away=(4,), known=(1, 2, 3)), made.moves))
    assert to_the_end(topic)[1].state == DONE
    assert not any(4 in one.replicas for one in cluster.parts.values())


def test_throttles_of_others_come_back() -> None:
    cluster, topic, _ = begun(regular(3, 6, new=1))
    keys = [f"4//{throttles.LEADER_RATE}", f"2/t/{throttles.LEADER_REPLICAS}"]
    cluster.settings = {keys[0]: "77", keys[1]: "0:1"}
    to_the_end(topic, [9, 9])
    assert {key: value for key, value in cluster.settings.items() if value} == {keys[0]: "77", keys[1]: "0:1"}


def test_a_move_that_is_refused_again_and_again_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, topic, _ = begun(regular(3, 6, new=1))
    monkeypatch.setattr(cluster, "assign", lambda targets: dict.fromkeys(targets, "not today"))
    _, seen = to_the_end(topic)
    assert "cannot be moved: not today" in seen.state


def test_a_move_waits_for_room() -> None:
    cluster, topic, _ = begun(regular(3, 6, new=1))
    view = cluster.view
    cluster.view = lambda: replace(view(), rooms={4: GB // 2})  # type: ignore[method-assign]
    assert "has the room" in to_the_end(topic)[1].state


def test_a_submission_that_was_cut_short_is_no_run() -> None:
    journal = Journal()
    journal.replay(Planned("r2", Move("t", 0, (1,), (2,), 1, 5)))
    assert journal.moves() == [] and journal.run is None


@settings(max_examples=20)
@given(st.text("a.-/é", min_size=1), st.integers(0, 99), st.sampled_from(list(Wish)))
def test_rows_of_the_journal_survive_their_bytes(topic: str, number: int, wish: Wish) -> None:
    rows: list[Row] = [
        Planned("r", Move(topic, number, (1, 2), (3, 2), 1, 7)),
        Run("r", "balance", "paused", 5, 6, (1,), (2, 3)),
        Wanted("r", wish),
        Throttle(2, topic, "name", None, "0:1"),
    ]
    for row in rows:
        key, value = encode(row)
        assert decode(Record(0, 0, key, value)) == row
