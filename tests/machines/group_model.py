"""What models of groups with epochs have in common: what clients do, what befalls them, and what always holds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moldau.machines.groups import Groups
from tests.machines.consumers import REBALANCE_MS, SESSION_MS, Coordinator

MEMBERS = ["m0", "m1", "m2", "m3", "m4"]


class GroupModel(RuleBasedStateMachine):
    """A coordinator and clients, by their names. A subclass makes them, and checks who owns what."""

    topics: ClassVar[list[str]]  # that are made and extended
    soft: ClassVar[set[str]]  # what of a group is lost with the process
    coordinator: Coordinator
    members: dict[str, Any]
    epochs: dict[str, tuple[int, int]]

    def begin(self, coordinator: Coordinator, **topics: int) -> None:
        self.coordinator, self.members, self.epochs = coordinator, {}, {}
        for name, partitions in topics.items():
            coordinator.create(name, partitions)

    def drawn(self, data: st.DataObject) -> Any:
        return self.members[data.draw(st.sampled_from(sorted(self.members)))]

    # What clients do.

    @precondition(lambda self: self.members)
    @rule(data=st.data(), settle=st.booleans(), lost=st.booleans())
    def beat(self, data, settle, lost) -> None:
        member = self.drawn(data)
        if settle:
            member.settle()
        if member.epoch > 0:
            member.send(member.full(member.epoch), lost=lost)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def short_beat(self, data) -> None:
        member = self.drawn(data)
        if member.epoch > 0 and not member.unsure:
            member.send(member.request())

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def send_again(self, data) -> None:
        """A duplicate of the last request, of which the client hears nothing."""
        member = self.drawn(data)
        if member.epoch > 0 and member.last.member_epoch > 0:
            member.send(member.last, lost=True)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data) -> None:
        self.members.pop(data.draw(st.sampled_from(sorted(self.members)))).leave()

    # What happens to them.

    @rule(ms=st.sampled_from([100, 1100, 11_000]))
    def time_passes(self, ms) -> None:
        self.coordinator.advance(ms)

    @rule(silent=st.sampled_from(MEMBERS))
    def somebody_is_silent(self, silent) -> None:
        """All others go on through a session timeout."""
        for _ in range(SESSION_MS // REBALANCE_MS + 1):
            self.coordinator.advance(REBALANCE_MS - 1)
            for name, member in self.members.items():
                if name != silent and member.epoch > 0:
                    member.settle()
                    member.beat()
        groups: Any = self.coordinator.machine.groups
        if silent in self.members and groups:
            assert self.members[silent].id not in groups["g"].members
            del self.members[silent]

    @rule()
    def crash(self) -> None:
        self.coordinator.crash()

    @rule(data=st.data(), count=st.integers(1, 4))
    def create_or_extend(self, data, count) -> None:
        name = data.draw(st.sampled_from(self.topics))
        if name not in self.coordinator.cluster.topics:
            self.coordinator.create(name, count)
        else:
            self.coordinator.extend(name, count)

    # What always holds.

    @invariant()
    def epochs_never_go_back(self) -> None:
        groups: Any = self.coordinator.machine.groups
        for group in groups.values():
            before = self.epochs.get(group.id, (0, 0))
            assert (group.epoch, group.target_epoch) >= before and group.target_epoch >= before[1]
            assert group.target_epoch <= group.epoch
            assert all(member.epoch <= group.target_epoch for member in group.members.values())
            self.epochs[group.id] = group.epoch, group.target_epoch

    @invariant()
    def replay_is_what_was(self) -> None:
        lived, replayed = self.coordinator.machine, self.coordinator.replayed()
        assert books(replayed, self.soft) == books(lived, self.soft)


def books(machine: Groups, soft: Collection[str]) -> dict[str, dict[str, object]]:
    """All that is not soft."""
    return {name: {k: v for k, v in vars(g).items() if k not in soft} for name, g in machine.groups.items()}
