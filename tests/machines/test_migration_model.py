"""Members of both protocols in one group, under random joins, losses, silences and crashes.

A partition never has two owners among clients that are members, and once everybody answers all of them are shared out.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moldau.wire.errors import Error
from tests.machines.classic_members import Guest
from tests.machines.consumers import Consumer, Coordinator, converge
from tests.machines.group_model import books

PARTITIONS = 4
SOFT = ("seen", "resolved")


class MixedGroups(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.coordinator = Coordinator(group_consumer_migration_policy="upgrade")
        self.coordinator.create("t", PARTITIONS)
        self.guests: dict[str, Guest] = {}
        self.consumers: dict[str, Consumer] = {"c0": Consumer(self.coordinator, "c0", ["t"]).join()}

    @rule(name=st.sampled_from(["g1", "g2", "g3"]), sync=st.booleans())
    def guest_joins(self, name, sync) -> None:
        guest = self.guests.setdefault(name, Guest(self.coordinator))
        if guest.join().error == Error.UNKNOWN_MEMBER_ID:
            self.guests[name] = guest = Guest(self.coordinator).join()
        if sync and not guest.error:
            guest.sync()

    @precondition(lambda self: self.guests)
    @rule(data=st.data(), rejoin=st.booleans())
    def guest_goes_on(self, data, rejoin) -> None:
        name = data.draw(st.sampled_from(sorted(self.guests)))
        guest = self.guests[name]
        error = guest.beat()
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            del self.guests[name]
            if error == Error.ILLEGAL_GENERATION:
                guest.leave()
        elif error == Error.REBALANCE_IN_PROGRESS and rejoin:
            guest.join().sync()

    @precondition(lambda self: self.guests)
    @rule(data=st.data())
    def guest_leaves(self, data) -> None:
        self.guests.pop(data.draw(st.sampled_from(sorted(self.guests)))).leave()

    @rule(name=st.sampled_from(["c0", "c1"]), settle=st.booleans())
    def consumer_goes_on(self, name, settle) -> None:
        consumer = self.consumers.setdefault(name, Consumer(self.coordinator, name, ["t"]))
        if settle:
            consumer.settle()
        consumer.beat() if consumer.epoch > 0 else consumer.join()

    @rule(ms=st.sampled_from([100, 1100, 6000]))
    def time_passes(self, ms) -> None:
        self.coordinator.advance(ms)
        self.consumers["c0"].settle()
        self.consumers["c0"].beat()

    @rule()
    def crash(self) -> None:
        self.coordinator.crash()

    @rule()
    def everybody_answers(self) -> None:
        for _ in range(8):
            converge(self.coordinator, list(self.consumers.values()), 1)
            for name, guest in list(self.guests.items()):
                error = guest.beat()
                if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
                    guest.leave()
                    self.guests[name] = Guest(self.coordinator).join().sync()
                elif error == Error.REBALANCE_IN_PROGRESS:
                    guest.join().sync()
                else:
                    guest.sync()
        assert sorted(self.owned()) == list(range(PARTITIONS))

    def owned(self) -> list[int]:
        members = self.coordinator.group().members
        rightful = [guest for guest in self.guests.values() if guest.id in members and not guest.lost]
        guests = [index for guest in rightful for index in guest.owned]
        return guests + [i for c in self.consumers.values() if c.id in members and c.epoch > 0 for _, i in c.owned]

    @invariant()
    def partitions_have_one_owner(self) -> None:
        owned = self.owned()
        assert len(owned) == len(set(owned))

    @invariant()
    def replay_is_what_was(self) -> None:
        assert books(self.coordinator.replayed(), SOFT) == books(self.coordinator.machine, SOFT)


MixedGroups.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMixedGroups = MixedGroups.TestCase
