"""A streams group (KIP-1071): its topology, its members, its target assignment, and who runs which task.

Epochs are those of consumer groups: the group's grows with each change of members, topology, topics or settings, the
target's is that for which the assignor has worked, each member's is that of the target it has reached. State changes
only by replay; what is soft is lost with the process. The commands are in heartbeats.py.
"""

from __future__ import annotations

from typing import Any

from moldau.machines.effects import Change
from moldau.machines.epochs import group as epochs
from moldau.machines.epochs.group import FIRST_EPOCH, check_given
from moldau.machines.epochs.records import tombstones
from moldau.machines.group import CheckPartition, Expiry, refuse
from moldau.machines.reconciling import owned_slots
from moldau.machines.replaying import members_with_epochs, put_epoch, row
from moldau.machines.streams.configuring import Configured
from moldau.machines.streams.members import Member, with_assignment, with_metadata
from moldau.machines.streams.tasks import Kind, OwnedTasks, Role, Tasks, tasks_of
from moldau.machines.streams.topology import input_topics
from moldau.wire import messages as m
from moldau.wire.errors import Error


class StreamsGroup:
    """All that the log says about a group, and what follows from it."""

    kind = "streams"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_epoch = 0  # of the topology that was last found ready to run, -1 if it was not
        self.assignment_configs: dict[str, str] = {}
        self.topology: Any = None
        self.inputs: dict[str, str] = {}
        self.members: dict[str, Member] = {}
        self.target: dict[str, Tasks] = {}
        self.target_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        self.owners: dict[Kind, dict[int, dict[str, None]]] = {}
        # Soft: the topology on the topics of a moment, and at which state of the metadata and in which epoch that was.
        self.configured: Configured | None = None
        self.seen: tuple[int, int] = (-1, -1)
        # Soft: who has asked to shut the whole application down, until the group is empty.
        self.shutdown_by: str | None = None
        # Soft: grows when members that can be asked for their state own other tasks than before.
        self.endpoint_epoch = 0

    # What all kinds of groups are asked.

    protocol_name = epochs.protocol_name
    is_empty = epochs.is_empty
    check_commit = epochs.check_commit
    check_fetch = epochs.check_fetch
    check_delete = epochs.check_delete

    def state_name(self) -> str:
        if self.members and (self.topology is None or self.topology.epoch != self.validated_epoch):
            return "NotReady"
        return epochs.state_name(self)

    def check_offset_delete(self) -> None:
        """Offsets of topics that the topology does not read may go at any time."""

    def subscribes(self, topic: str) -> bool:
        return bool(self.members) and topic in self.inputs

    def offset_expiry(self) -> Expiry | None:
        return Expiry()

    def tombstones(self) -> list[Change]:
        return [*tombstones(self), Change(m.StreamsGroupTopologyKey(self.id), None)]

    # Questions of the commands.

    member = epochs.member

    def partition_check(self, member: Member, epoch: int) -> CheckPartition:
        inputs = self.inputs

        def check(topic: str, topic_id: bytes, partition: int) -> None:
            if topic not in inputs:
                refuse(Error.STALE_MEMBER_EPOCH, f"Topic {topic} is not read by the topology.")
            task = f"Task {inputs[topic]}_{partition}"
            check_given(member, task, member.epoch_of(inputs[topic], partition), epoch)

        return check

    def is_taken(self, process_id: str, kind: Kind, index: int) -> bool:
        """Return whether a task that is to become active still runs, or the process has it in any role."""
        role, subtopology = kind
        if role == Role.ACTIVE and self.owners_of(kind, index):
            return True
        return any(
            self.members[owner].process_id == process_id
            for other in Role
            for owner in self.owners_of((other, subtopology), index)
        )

    def owners_of(self, kind: Kind, index: int) -> dict[str, None]:
        return self.owners.get(kind, {}).get(index, {})

    # Replay: the only writers.

    def put(self, member: Member) -> None:
        old = self.members.get(member.id)
        self.members[member.id] = member
        if old is None or old.assigned is not member.assigned or old.revoking is not member.revoking:
            self.release(old)
            self.own(member.id, member.assigned)
            self.own(member.id, member.revoking)

    def remove(self, member_id: str) -> None:
        self.release(self.members.pop(member_id, None))
        if not self.members:
            self.shutdown_by = None

    def own(self, member_id: str, owned: OwnedTasks) -> None:
        for kind, index in owned_slots(owned):
            self.owners.setdefault(kind, {}).setdefault(index, {})[member_id] = None

    def release(self, member: Member | None) -> None:
        if member is None:
            return
        for kind, index in (*owned_slots(member.assigned), *owned_slots(member.revoking)):
            by_index = self.owners.get(kind, {})
            owners = by_index.get(index, {})
            owners.pop(member.id, None)
            if not owners:
                by_index.pop(index, None)
            if not by_index:
                self.owners.pop(kind, None)


def unassigned(member: Member) -> Member:
    return member._replace(epoch=-1, previous_epoch=-1, assigned={}, revoking={})


def put_epochs(group: StreamsGroup, key: Any, value: Any) -> None:
    put_epoch(group, key, value)
    group.validated_epoch = value.validated_topology_epoch
    group.assignment_configs = {pair.key: pair.value for pair in value.last_assignment_configs or ()}


def put_topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.topology, group.inputs = value, input_topics(value)


def take_topology(group: StreamsGroup, key: Any) -> None:
    group.topology, group.inputs = None, {}


REPLAY = {
    **members_with_epochs(StreamsGroup, Member, with_metadata, with_assignment, unassigned, tasks_of, put_epochs),
    "StreamsGroupTopologyKey": row(StreamsGroup, put_topology, take_topology),
}
