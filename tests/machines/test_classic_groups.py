"""Rebalances of a classic group: random clients, time and crashes, and the cases that have a name."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from moldau.machines.classic import requests as classic_requests
from moldau.machines.classic.group import ClassicGroup, State
from moldau.machines.effects import Promise
from moldau.machines.group import Client
from moldau.wire import messages as m
from moldau.wire.errors import Error

from .groups_home import Home

REJOIN = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS, Error.FENCED_INSTANCE_ID)


class Consumer:
    """A client that does what its answers tell it, whenever the test lets it."""

    def __init__(self, home: Home, instance: str | None) -> None:
        self.home = home
        self.instance = instance
        self.member = ""
        self.generation = -1
        self.joining: Any = None
        self.syncing: Any = None
        self.assignment: bytes | None = None

    def step(self) -> None:
        if self.joining is not None:
            self.joined()
        elif self.syncing is not None:
            self.synced()
        elif self.assignment is None:
            self.joining = self.home.join(member=self.member, group_instance_id=self.instance)
        else:
            self.beat()

    def joined(self) -> None:
        answer = self.joining.answer
        if answer is None:
            return
        self.joining = None
        if answer.error_code == Error.MEMBER_ID_REQUIRED:
            self.member = answer.member_id
        elif answer.error_code in (Error.NONE,):
            self.member, self.generation = answer.member_id, answer.generation_id
            shares = {row.member_id: f"{i}".encode() for i, row in enumerate(answer.members)}
            keep = answer.skip_assignment or not answer.members
            self.syncing = self.home.sync(
                self.member, self.generation, None if keep else shares, group_instance_id=self.instance
            )
        else:
            assert answer.error_code in (*REJOIN, Error.GROUP_MAX_SIZE_REACHED)
            self.forget_id(answer.error_code)

    def synced(self) -> None:
        answer = self.syncing.answer
        if answer is None:
            return
        self.syncing = None
        if answer.error_code:
            assert answer.error_code in REJOIN
            self.forget_id(answer.error_code)
        else:
            self.assignment = answer.assignment

    def beat(self) -> None:
        error = self.home.heartbeat(self.member, self.generation, instance=self.instance)
        if error:
            assert error in REJOIN
            self.assignment = None
            self.forget_id(error)

    def forget_id(self, error: int) -> None:
        if error not in (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION):
            self.member = ""

    def restart(self) -> None:
        """The process is started anew; what it waits for is lost."""
        self.member, self.generation, self.assignment = "", -1, None
        self.joining = self.syncing = None


class Rebalances(RuleBasedStateMachine):
    """Whatever happens, members of one generation that the group believes in never share an assignment."""

    @initialize(static=st.integers(0, 2), dynamic=st.integers(1, 4))
    def begin(self, static: int, dynamic: int) -> None:
        self.home = Home()
        instances = [f"i{n}" for n in range(static)] + [None] * dynamic
        self.consumers = [Consumer(self.home, instance) for instance in instances]

    @property
    def group(self) -> ClassicGroup | None:
        group = self.home.machine.groups.get("g")
        assert group is None or isinstance(group, ClassicGroup)
        return group

    @rule(which=st.integers(0, 5), times=st.integers(1, 3))
    def let_one_act(self, which: int, times: int) -> None:
        for _ in range(times):
            self.consumers[which % len(self.consumers)].step()

    @rule()
    def let_all_act(self) -> None:
        for consumer in self.consumers:
            consumer.step()

    @rule(ms=st.sampled_from([1, 1000, 3000, 9999, 10_000, 40_000]))
    def let_time_pass(self, ms: int) -> None:
        self.home.advance(ms)

    @rule(which=st.integers(0, 5))
    def restart_one(self, which: int) -> None:
        self.consumers[which % len(self.consumers)].restart()

    @rule(which=st.integers(0, 5))
    def one_leaves(self, which: int) -> None:
        consumer = self.consumers[which % len(self.consumers)]
        if consumer.member:
            self.home.leave((consumer.member, consumer.instance))
        consumer.restart()

    @rule()
    def crash(self) -> None:
        self.home.crash()
        for consumer in self.consumers:
            consumer.joining = consumer.syncing = None

    @rule()
    def settles(self) -> None:
        """Left alone with clients that act, a group becomes stable with all that fit into it."""
        for _ in range(60):
            self.let_all_act()
            self.home.advance(1500)
        group = self.group
        assert group is not None and group.state is State.STABLE
        assert len(group.members) == min(len(self.consumers), self.home.settings["group.max.size"])
        held = [consumer.assignment for consumer in self.consumers if consumer.assignment is not None]
        assert sorted(set(held)) == sorted(held) and len(held) == len(group.members)

    @invariant()
    def nobody_shares(self) -> None:
        holders = [
            (consumer.generation, consumer.assignment)
            for consumer in self.consumers
            if consumer.assignment is not None and self.believed(consumer)
        ]
        assert len(set(holders)) == len(holders)

    def believed(self, consumer: Consumer) -> bool:
        return self.group is not None and consumer.member in self.group.members

    @invariant()
    def instances_belong_to_members(self) -> None:
        if self.group is not None:
            held = {x.instance_id: x.id for x in self.group.members.values() if x.instance_id is not None}
            assert held == self.group.instances
            assert self.group.leader is None or self.group.leader in self.group.members
            assert (self.group.state is State.EMPTY or self.group.initial) or self.group.members
            assert not (self.group.state is State.EMPTY and self.group.members)

    @invariant()
    def the_log_tells_what_was_lived(self) -> None:
        group, again = self.group, self.home.load().groups.get("g")
        if group is not None and group.state is State.STABLE:
            assert isinstance(again, ClassicGroup) and again.state is State.STABLE
            assert again.generation == group.generation and again.leader == group.leader
            assert again.assignments() == group.assignments() and again.instances == group.instances


TestRebalances = Rebalances.TestCase
TestRebalances.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def stable(home: Home) -> tuple[str, int]:
    """A group with one member, that has its assignment."""
    member, joined = home.enter()
    home.advance(3000)
    generation = joined.answer.generation_id
    assert home.sync(member, generation, {member: b"all"}).answer.assignment == b"all"
    return member, generation


def group_of(home: Home) -> ClassicGroup:
    group = home.machine.groups["g"]
    assert isinstance(group, ClassicGroup)
    return group


def test_first_rebalance_waits_as_long_as_members_come_up_to_their_timeout() -> None:
    home = Home()
    _, first = home.enter(rebalance_timeout_ms=7000)
    home.advance(2000)
    _, second = home.enter(rebalance_timeout_ms=7000)
    home.advance(2000)
    assert first.answer is None
    home.enter(rebalance_timeout_ms=7000)
    home.advance(2900)
    assert first.answer is None
    home.advance(100)
    assert [joined.answer.generation_id for joined in (first, second)] == [1, 1]


def test_member_that_does_not_rejoin_in_time_is_left_behind() -> None:
    home = Home()
    old, generation = stable(home)
    _, joined = home.enter(rebalance_timeout_ms=5000)
    for _ in range(6):
        home.advance(5000)
        home.heartbeat(old, generation)
    assert joined.answer.error_code == Error.NONE
    assert home.heartbeat(old, generation) == Error.UNKNOWN_MEMBER_ID


def test_static_member_is_not_left_behind_by_a_rebalance_but_by_its_session() -> None:
    home = Home()
    joined = home.join(group_instance_id="i", session_timeout_ms=60_000, rebalance_timeout_ms=5000)
    home.advance(3000)
    member = joined.answer.member_id
    home.sync(member, 1, {member: b"all"}, group_instance_id="i")
    _, other = home.enter(rebalance_timeout_ms=5000)
    home.advance(5000)
    assert other.answer.error_code == Error.NONE and member in group_of(home).members
    home.advance(60_000)
    assert member not in group_of(home).members


def test_candidate_that_never_joins_leaves_nothing_behind() -> None:
    home = Home()
    for n in range(100):
        home.join(f"g{n}")
    assert len(home.machine.groups) == 100
    home.advance(10_000)
    assert not home.machine.groups and not home.log
    assert home.machine.next_deadline_ms() > home.now_ms


def test_refused_join_makes_no_group() -> None:
    home = Home()
    assert home.join(protocols=()).answer.error_code == Error.INCONSISTENT_GROUP_PROTOCOL
    assert home.join(member="nobody").answer.error_code == Error.UNKNOWN_MEMBER_ID
    assert not home.machine.groups


def test_member_that_waits_for_an_answer_needs_no_heartbeats() -> None:
    home = Home()
    old, generation = stable(home)
    member, _ = home.enter()
    home.join(member=old)
    home.sync(old, generation + 1, {})
    home.sync(member, generation + 1)
    assert home.join(member=old, rebalance_timeout_ms=60_000).answer is None
    for _ in range(11):
        home.advance(5000)
        assert home.heartbeat(member, generation + 1) == Error.REBALANCE_IN_PROGRESS
    assert old in group_of(home).members


def test_new_member_whose_client_is_gone_is_given_up_after_five_minutes() -> None:
    home = Home()
    home.join(group_instance_id="i", session_timeout_ms=3_600_000)
    home.advance(3000)
    home.sync(next(iter(group_of(home).members)), 1, {}, group_instance_id="i")
    member, joined = home.enter(rebalance_timeout_ms=3_600_000)
    home.advance(5 * 60 * 1000 - 1)
    assert member in group_of(home).members
    home.advance(1)
    assert joined.answer.error_code == Error.UNKNOWN_MEMBER_ID


def test_members_that_do_not_sync_are_removed() -> None:
    home = Home()
    member, joined = home.enter(session_timeout_ms=60_000, rebalance_timeout_ms=10_000)
    home.advance(3000)
    assert joined.answer.error_code == Error.NONE
    home.advance(10_000)
    assert not group_of(home).members
    assert home.sync(member, 1).answer.error_code == Error.UNKNOWN_MEMBER_ID


def test_group_is_emptied_and_its_generation_is_remembered() -> None:
    home = Home()
    member, generation = stable(home)
    assert home.leave((member, None)) == [Error.NONE]
    home.crash()
    assert (group_of(home).state, group_of(home).generation) == (State.EMPTY, generation + 1)


def test_empty_group_without_offsets_is_deleted_by_the_next_look() -> None:
    home = Home()
    member, _ = stable(home)
    home.crash()
    home.leave((member, None))
    home.advance(60_000)
    assert not home.machine.groups and home.log[-1][1] is None


def test_lowered_limit_lets_the_last_to_rejoin_go() -> None:
    home = Home()
    members = [home.enter()[0] for _ in range(3)]
    home.advance(6000)
    home.sync(members[0], 1, {})
    home.settings["group.max.size"] = 2
    home.crash()
    assert group_of(home).state is State.PREPARING
    answers = [home.join(member=member) for member in members]
    assert answers[2].answer.error_code == Error.GROUP_MAX_SIZE_REACHED
    home.advance(30_000)
    assert [answer.answer.error_code for answer in answers[:2]] == [Error.NONE, Error.NONE]


def test_protocol_with_the_most_votes_wins_among_those_all_know() -> None:
    home = Home()
    for names in (("sticky", "range"), ("range", "sticky"), ("roundrobin", "sticky", "range")):
        home.enter(protocols=names)
    home.advance(9000)
    assert group_of(home).protocol == "sticky"
    assert home.join(protocols=("roundrobin",)).answer.error_code == Error.INCONSISTENT_GROUP_PROTOCOL


def test_assignment_too_large_to_be_written_starts_another_rebalance() -> None:
    home = Home()
    member, _ = home.enter()
    home.advance(3000)
    request = m.SyncGroupRequest("g", 1, member)
    effects = classic_requests.sync(home.machine, Promise(str), request, Client("", ""), 5, home.now_ms)
    assert effects.changes and effects.undo is not None
    home.run(effects.undo())
    assert group_of(home).state is State.PREPARING
