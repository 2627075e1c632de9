"""Streams groups under random members, losses, crashes and changes of topics and settings.

An active task never has two owners, neither in the coordinator's books nor among clients that are members, and no
process has a task twice in whatever roles; epochs never go back; what is replayed is what was lived through; and once
everybody answers every task runs, with as many standbys as there are processes for.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from moldau.machines.reconciling import State, owned_slots
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.tasks import Role
from tests.machines.group_model import MEMBERS, GroupModel
from tests.machines.streamers import Streamer, StreamsCoordinator, converge, part, topology

NAMES = ["lines", "users"]
PROCESSES = ["p0", "p1", "p2"]
INTERNAL = ["words", "counts"]
APPLICATION = topology(
    part("0", "lines", sinks=["words"]),
    part("1", "users", reads=["words"], changelogs=["counts"], together=[([0], [0])]),
)


class StreamsGroups(GroupModel):
    topics = NAMES
    soft: ClassVar = {"seen", "configured", "shutdown_by", "endpoint_epoch"}
    coordinator: StreamsCoordinator

    @initialize()
    def start(self) -> None:
        self.begin(StreamsCoordinator(), lines=3, users=2)

    # What clients do.

    @rule(name=st.sampled_from(MEMBERS), served=st.booleans())
    def join(self, name, served) -> None:
        process = PROCESSES[MEMBERS.index(name) % len(PROCESSES)]
        endpoint = (process, 80) if served else None
        self.members[name] = Streamer(self.coordinator, name, process, APPLICATION, endpoint).join()

    # What happens to them.

    @rule(name=st.sampled_from([*NAMES, *INTERNAL]))
    def delete_topic(self, name) -> None:
        if name in self.coordinator.cluster.topics:
            self.coordinator.delete(name)

    @rule(copies=st.integers(0, 2))
    def want_standbys(self, copies) -> None:
        self.coordinator.configure("g", "streams.num.standby.replicas", str(copies))

    @rule(delay=st.sampled_from([0, 3000]))
    def wait_for_others(self, delay) -> None:
        self.coordinator.configure("g", "streams.initial.rebalance.delay.ms", str(delay))

    @rule()
    def everybody_answers(self) -> None:
        self.coordinator.advance(11_000)
        converge(self.coordinator, list(self.members.values()))
        self.check_converged()

    def check_converged(self) -> None:
        if not self.members:
            return
        group = self.coordinator.streams()
        assert group.epoch == group.target_epoch and group.configured is not None
        assert set(group.members) == {member.id for member in self.members.values()}
        parts = group.configured.subtopologies if group.configured.is_ready else {}
        running = Counter(slot for member in self.members.values() for slot in member.owned)
        tasks = [(name, index) for name, one in parts.items() for index in range(one.tasks)]
        assert {slot for slot in running if slot[0] == Role.ACTIVE} == {(Role.ACTIVE, *task) for task in tasks}
        processes = {member.process_id for member in self.members.values()}
        copies = min(int(group.assignment_configs["num.standby.replicas"]), len(processes) - 1)
        for name, index in tasks:
            assert running[Role.ACTIVE, name, index] == 1
            assert running[Role.STANDBY, name, index] == (copies if parts[name].is_stateful else 0)
        for member in self.members.values():
            known = group.members[member.id]
            assert (known.state, known.epoch) == (State.STABLE, group.epoch)
            assert {(*kind, index) for kind, index in owned_slots(known.assigned)} == member.owned

    # What always holds.

    @invariant()
    def tasks_have_one_owner(self) -> None:
        for group in self.coordinator.machine.groups.values():
            assert isinstance(group, StreamsGroup)
            books = [
                (kind, index, member)
                for member in group.members.values()
                for kind, index in (*owned_slots(member.assigned), *owned_slots(member.revoking))
            ]
            active = [(kind, index) for kind, index, _ in books if kind[0] == Role.ACTIVE]
            assert len(active) == len(set(active))
            placed = [(member.process_id, kind[1], index) for kind, index, member in books]
            assert len(placed) == len(set(placed))
            owners = {(k, i, who) for k, row in group.owners.items() for i, ids in row.items() for who in ids}
            assert owners == {(kind, index, member.id) for kind, index, member in books}

    @invariant()
    def clients_run_only_what_nobody_else_runs(self) -> None:
        """Clients that were taken out find out by themselves, by their own clocks."""
        if not self.coordinator.machine.groups:
            return
        members = self.coordinator.streams().members
        alive = [one for one in self.members.values() if one.id in members and one.epoch > 0]
        active = [slot for one in alive for slot in one.owned if slot[0] == Role.ACTIVE]
        assert len(active) == len(set(active))


StreamsGroups.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStreamsGroups = StreamsGroups.TestCase
