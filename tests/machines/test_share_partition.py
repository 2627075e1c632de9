"""A share partition: who holds which record, how often it was delivered, and what a crash forgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.machines.share.batches import StateBatch, combine
from moldau.machines.share.partition import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Limits,
    SharePartition,
    Wanted,
    state_batches,
)
from moldau.machines.share.runs import ACQUIRED, Range, Run
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

LOCK_MS = 1000
LIMITS = Limits(deliveries=5, lock_ms=LOCK_MS, locks=100)
EVERYTHING = Wanted(1_000_000, 1_000_000)


@dataclass
class Bench:
    """A share partition over a log, and what the share coordinator knows of it."""

    log: list[Range] = field(default_factory=list)
    limits: Limits = LIMITS
    now_ms: float = 0.0
    start: int = 0
    batches: list[StateBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.crash()

    def crash(self) -> None:
        """All that was not persisted is forgotten."""
        self.partition = SharePartition(self.start, self.batches, lambda: self.limits)

    def fetch(
        self, member: str, wanted: Wanted = EVERYTHING, aborted: Sequence[Range] = (), most: int = 99
    ) -> list[Run]:
        offset = self.partition.fetch_offset()
        found = [batch for batch in self.log if batch[1] >= offset][:most]
        if not found or not self.partition.has_room():
            return []
        return self.partition.acquire(member, found, wanted, self.now_ms, aborted)

    def commit(self, changes: list[Run]) -> list[Run]:
        """As the owner of the machine does: persist, then apply."""
        self.start = self.partition.start
        self.batches = combine(self.batches, state_batches(changes), self.start)
        self.partition.apply(changes)
        return changes

    def say(self, member: str, first: int, last: int, *types: int) -> list[Run]:
        said = Acknowledgement(first, last, types)
        return self.commit(self.partition.acknowledge(member, [said], self.now_ms))

    def wait(self, ms: float) -> None:
        self.now_ms += ms
        self.commit(self.partition.expire(self.now_ms))


def ranges(runs: Sequence[Run]) -> list[tuple[int, int, int]]:
    return [(run.first, run.last, run.deliveries) for run in runs]


def offsets(runs: Iterable[Run]) -> list[int]:
    return [offset for run in runs for offset in range(run.first, run.last + 1)]


def refused(bench: Bench, member: str, first: int, last: int, *types: int) -> Error:
    with pytest.raises(Refused) as caught:
        bench.say(member, first, last, *types)
    return caught.value.error


@pytest.fixture
def bench() -> Bench:
    return Bench([(0, 9), (10, 19), (20, 29)])


def test_whole_batches_are_acquired_until_there_are_enough_records(bench: Bench) -> None:
    assert ranges(bench.fetch("a", Wanted(5, 500))) == [(0, 9, 1)]
    assert ranges(bench.fetch("b", Wanted(11, 500))) == [(10, 29, 1)]
    assert bench.fetch("a") == []


def test_record_limit_is_kept_where_it_is_strict(bench: Bench) -> None:
    assert ranges(bench.fetch("a", Wanted(5, 500, strictly=True))) == [(0, 4, 1)]
    assert ranges(bench.fetch("b", Wanted(7, 500, strictly=True))) == [(5, 11, 1)]
    bench.say("a", 0, 4, RELEASE)
    assert ranges(bench.fetch("b", Wanted(2, 500, strictly=True))) == [(0, 1, 2)]


def test_acquired_records_are_cut_into_the_size_asked_for_where_batches_begin(bench: Bench) -> None:
    assert ranges(bench.fetch("a", Wanted(500, 5))) == [(0, 9, 1), (10, 19, 1), (20, 29, 1)]
    again = Bench(bench.log)
    assert ranges(again.fetch("a", Wanted(500, 15))) == [(0, 19, 1), (20, 29, 1)]


def test_acknowledged_records_are_done_with(bench: Bench) -> None:
    bench.fetch("a")
    bench.say("a", 0, 14, ACCEPT)
    assert bench.partition.start == 15
    bench.say("a", 20, 29, REJECT)
    assert (bench.partition.start, bench.partition.in_flight()) == (15, 15)
    bench.say("a", 15, 19, GAP)
    assert (bench.partition.start, bench.partition.next, bench.partition.in_flight()) == (30, 30, 0)


def test_each_record_may_have_its_own_type(bench: Bench) -> None:
    bench.fetch("a", Wanted(5, 5))
    bench.say("a", 0, 4, ACCEPT, RELEASE, REJECT, RELEASE, RELEASE)
    assert ranges(bench.fetch("b", Wanted(3, 5))) == [(1, 1, 2), (3, 4, 2)]


def test_released_records_are_delivered_first(bench: Bench) -> None:
    bench.fetch("a", Wanted(20, 500))
    bench.say("a", 3, 5, RELEASE)
    assert ranges(bench.fetch("b", Wanted(10, 500))) == [(3, 5, 2), (20, 29, 1)]


def test_lock_that_ends_makes_records_available_to_others(bench: Bench) -> None:
    bench.fetch("a", Wanted(10, 500))
    assert bench.partition.deadline_ms == LOCK_MS
    bench.wait(LOCK_MS - 1)
    assert bench.fetch("b", Wanted(0, 0)) == []
    bench.wait(1)
    assert refused(bench, "a", 0, 9, ACCEPT) == Error.INVALID_RECORD_STATE
    assert ranges(bench.fetch("b", Wanted(10, 500))) == [(0, 9, 2)]
    assert refused(bench, "a", 0, 9, ACCEPT) == Error.INVALID_RECORD_STATE
    bench.say("b", 0, 9, ACCEPT)
    assert bench.partition.deadline_ms == inf


def test_renewing_makes_the_lock_last(bench: Bench) -> None:
    bench.fetch("a", Wanted(10, 500))
    bench.wait(LOCK_MS - 1)
    bench.say("a", 0, 4, RENEW)
    bench.wait(1)
    assert ranges(bench.fetch("b", Wanted(5, 500))) == [(5, 9, 2)]
    bench.say("a", 0, 4, ACCEPT)


def test_member_that_leaves_lets_go_of_its_records(bench: Bench) -> None:
    bench.fetch("a", Wanted(10, 500))
    bench.fetch("b", Wanted(10, 500))
    bench.commit(bench.partition.release("a"))
    assert ranges(bench.fetch("b", Wanted(10, 500))) == [(0, 9, 2)]


@pytest.mark.parametrize(
    ("first", "last", "error"),
    [
        (20, 29, Error.INVALID_REQUEST),
        (15, 25, Error.INVALID_REQUEST),
        (0, 19, Error.INVALID_RECORD_STATE),
        (10, 19, Error.INVALID_RECORD_STATE),
    ],
)
def test_what_a_member_does_not_hold_it_cannot_acknowledge(bench: Bench, first: int, last: int, error: Error) -> None:
    bench.fetch("a", Wanted(10, 500))
    bench.fetch("b", Wanted(10, 500))
    assert refused(bench, "a", first, last, ACCEPT) == error
    bench.say("a", 0, 9, ACCEPT)


def test_acknowledging_what_is_done_with_is_no_error(bench: Bench) -> None:
    bench.fetch("a", Wanted(10, 500))
    bench.say("a", 0, 4, ACCEPT)
    assert bench.say("a", 0, 3, ACCEPT) == []
    bench.partition.cut(7)
    bench.say("a", 5, 9, ACCEPT)
    assert bench.partition.start == 10


def test_no_more_is_locked_than_the_limit_but_what_was_released_goes_out_again(bench: Bench) -> None:
    bench.limits = bench.limits._replace(locks=20)
    assert ranges(bench.fetch("a", Wanted(500, 500))) == [(0, 19, 1)]
    assert not bench.partition.has_room()
    bench.say("a", 10, 12, RELEASE)
    assert bench.partition.has_room()
    assert ranges(bench.fetch("b", Wanted(500, 500))) == [(10, 12, 2)]


def test_records_that_fail_are_delivered_with_ever_fewer_others_and_archived_at_last() -> None:
    bench = Bench([(0, 15)], Limits(deliveries=5, lock_ms=LOCK_MS, locks=100))
    sizes: dict[int, list[int]] = {}
    for _ in range(100):
        for run in bench.fetch("a"):
            sizes.setdefault(run.deliveries, []).append(run.records)
        bench.wait(LOCK_MS)
    assert sizes == {1: [16], 2: [16], 3: [16], 4: [8, 8], 5: [1] * 16}
    assert bench.partition.start == 16


def test_what_is_left_of_a_bad_batch_is_delivered_together() -> None:
    bench = Bench([(0, 9)])
    for _ in range(3):
        bench.fetch("a")
        bench.wait(LOCK_MS)
    bench.fetch("a")
    bench.say("a", 1, 3, ACCEPT)
    bench.wait(LOCK_MS)
    again = [ranges(bench.fetch("a")), ranges(bench.fetch("a")), ranges(bench.fetch("a"))]
    assert again == [[(0, 0, 5)], [(4, 4, 5)], [(5, 9, 4)]]


def test_two_deliveries_are_not_worth_splitting() -> None:
    bench = Bench([(0, 15)], Limits(deliveries=2, lock_ms=LOCK_MS, locks=100))
    counts = []
    for _ in range(5):
        counts += [(run.records, run.deliveries) for run in bench.fetch("a")]
        bench.wait(LOCK_MS)
    assert counts == [(16, 1), (16, 2)]


def test_records_that_compaction_took_are_archived(bench: Bench) -> None:
    bench.fetch("a")
    bench.say("a", 0, 9, RELEASE)
    bench.say("a", 10, 19, RELEASE)
    del bench.log[0]
    assert ranges(bench.fetch("b", Wanted(10, 500))) == [(10, 19, 2)]
    assert bench.partition.start == 10


def test_aborted_records_are_archived(bench: Bench) -> None:
    assert ranges(bench.fetch("a", aborted=[(5, 5), (10, 19)])) == [(0, 4, 1), (6, 9, 1), (20, 29, 1)]
    bench.say("a", 0, 4, ACCEPT)
    bench.say("a", 6, 9, ACCEPT)
    assert bench.partition.start == 20
    assert ranges(Bench([(0, 9)]).fetch("a", aborted=[(0, 9)])) == []


def test_holes_in_the_log_are_passed_over() -> None:
    bench = Bench([(5, 9), (20, 29)])
    assert ranges(bench.fetch("a", most=1)) == [(5, 9, 1)]
    assert bench.partition.start == 5
    assert ranges(bench.fetch("a")) == [(20, 29, 1)]
    bench.say("a", 5, 9, ACCEPT)
    assert bench.partition.start == 20


def test_new_leader_delivers_again_what_nobody_has_settled(bench: Bench) -> None:
    bench.fetch("a")
    bench.say("a", 10, 19, ACCEPT)
    bench.say("a", 25, 25, RELEASE)
    bench.crash()
    assert bench.partition.start == 0
    assert ranges(bench.fetch("b")) == [(0, 9, 1), (20, 24, 1), (25, 25, 2), (26, 29, 1)]


def test_log_start_that_moves_takes_locks_along(bench: Bench) -> None:
    bench.fetch("a")
    bench.partition.cut(25)
    assert (bench.partition.start, bench.partition.in_flight()) == (25, 5)
    bench.say("a", 0, 29, ACCEPT)
    assert bench.partition.start == 30
    bench.partition.cut(50)
    assert (bench.partition.start, bench.partition.next) == (50, 50)


MEMBERS = ["a", "b", "c"]
TYPES = [ACCEPT, ACCEPT, RELEASE, REJECT, RENEW, GAP]


class ShareMachine(RuleBasedStateMachine):
    """Members that take, settle, forget and vanish, over a log that grows, is compacted and begins later."""

    @initialize(deliveries=st.integers(2, 6), locks=st.integers(5, 60))
    def begin(self, deliveries: int, locks: int) -> None:
        self.bench = Bench(limits=Limits(deliveries, LOCK_MS, locks))
        self.end = 0
        self.log_start = 0
        self.holders: dict[int, str] = {}
        self.settled: set[int] = set()  # accepted or rejected, and the member was told so
        self.delivered: dict[int, int] = {}

    @rule(size=st.integers(1, 12), hole=st.sampled_from([0, 0, 0, 3]))
    def produce(self, size: int, hole: int) -> None:
        first = self.end + hole
        self.bench.log.append((first, first + size - 1))
        self.end = first + size

    @precondition(lambda self: len(self.bench.log) > 1)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        """A whole batch goes, though not the last."""
        del self.bench.log[data.draw(st.integers(0, len(self.bench.log) - 2))]

    @precondition(lambda self: self.bench.log)
    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(self.bench.log) - 1))
        self.log_start = max(self.log_start, self.bench.log[place][0])
        self.bench.log = self.bench.log[place:]
        self.bench.partition.cut(self.log_start)
        self.holders = {offset: who for offset, who in self.holders.items() if offset >= self.log_start}

    @rule(
        member=st.sampled_from(MEMBERS),
        records=st.integers(1, 30),
        size=st.integers(1, 20),
        strictly=st.booleans(),
        most=st.integers(1, 4),
    )
    def fetch(self, member: str, records: int, size: int, strictly: bool, most: int) -> None:
        taken = self.bench.fetch(member, Wanted(records, size, strictly), most=most)
        if strictly:
            assert sum(run.records for run in taken) <= records
        for run in taken:
            assert run.deliveries <= self.bench.limits.deliveries
            for offset in range(run.first, run.last + 1):
                assert offset not in self.holders, "two members hold one record"
                assert offset not in self.settled, "a settled record is delivered again"
                self.holders[offset] = member
                self.delivered[offset] = run.deliveries

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), by=st.sampled_from(MEMBERS))
    def settle(self, data: st.DataObject, by: str) -> None:
        first = data.draw(st.sampled_from(sorted(self.holders)))
        last = min(first + data.draw(st.integers(0, 8)), self.bench.partition.next - 1)
        types = data.draw(st.lists(st.sampled_from(TYPES), min_size=last - first + 1, max_size=last - first + 1))
        kinds = types if data.draw(st.booleans()) else types[:1]
        in_flight = [
            o for run in self.bench.partition.runs.between(first, last) for o in range(run.first, run.last + 1)
        ]
        allowed = all(self.holders.get(offset) == by for offset in in_flight)
        try:
            self.bench.say(by, first, last, *kinds)
        except Refused as refusal:
            assert not allowed
            assert refusal.error == Error.INVALID_RECORD_STATE
            return
        assert allowed, "a member settled what it does not hold"
        for offset in in_flight:
            kind = kinds[0] if len(kinds) == 1 else kinds[offset - first]
            if kind != RENEW:
                del self.holders[offset]
            if kind in (ACCEPT, REJECT, GAP):
                self.settled.add(offset)

    @rule(ms=st.sampled_from([1, LOCK_MS // 2, LOCK_MS]))
    def wait(self, ms: int) -> None:
        self.bench.wait(ms)
        held = {
            run.first + at for run in self.bench.partition.runs if run.state == ACQUIRED for at in range(run.records)
        }
        self.holders = {offset: who for offset, who in self.holders.items() if offset in held}

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        self.bench.commit(self.bench.partition.release(member))
        self.holders = {offset: who for offset, who in self.holders.items() if who != member}

    @rule()
    def crash(self) -> None:
        self.bench.crash()
        self.bench.partition.cut(self.log_start)
        self.holders = {}

    @invariant()
    def machine_knows_the_holders(self) -> None:
        known: dict[int, str] = {}
        before = -1
        for run in self.bench.partition.runs:
            assert before < run.first <= run.last < self.bench.partition.next
            before = run.last
            if run.state == ACQUIRED:
                known.update((offset, run.owner) for offset in range(run.first, run.last + 1))
                assert run.deadline_ms >= self.bench.partition.deadline_ms
        assert known == self.holders

    @invariant()
    def start_lies_before_all_that_is_open(self) -> None:
        partition = self.bench.partition
        assert self.log_start <= partition.start <= partition.next
        if partition.runs:
            assert partition.start <= partition.runs.items[0].first
            assert not partition.runs.items[0].is_final

    def teardown(self) -> None:
        """Whatever happened: a member that fails at everything sees each open record until it is given up."""
        if not hasattr(self, "bench"):
            return
        for _ in range(2000):
            self.bench.wait(LOCK_MS)
            for run in self.bench.fetch("z"):
                self.delivered.update((offset, run.deliveries) for offset in range(run.first, run.last + 1))
            if self.bench.partition.start >= self.end:
                break
        assert self.bench.partition.start >= min(self.end, self.bench.partition.next)
        for first, last in self.bench.log:
            for offset in range(first, last + 1):
                often = self.delivered.get(offset, 0)
                assert offset in self.settled or often == self.bench.limits.deliveries, f"{offset} is lost"


ShareMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestSharePartition = ShareMachine.TestCase
