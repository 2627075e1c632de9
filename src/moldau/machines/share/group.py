"""A share group (KIP-932): consumers that share the records of partitions, rather than the partitions.

It has members, a target assignment and epochs as a consumer group has them, but a partition may be given to any number
of members, so nobody waits for anybody, and the group is either Empty or Stable. It commits no offsets: how far its
records are is the business of the share coordinator, and `states` tells for which partitions that has a state.
State changes only by replay; the commands are in heartbeats.py and offsets.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

from moldau.machines.consumer.assignors import NO_TARGET, Partitions
from moldau.machines.consumer.group import add
from moldau.machines.consumer.members import target_of
from moldau.machines.effects import Change
from moldau.machines.epochs import group as epochs
from moldau.machines.epochs.group import FIRST_EPOCH
from moldau.machines.epochs.records import tombstones
from moldau.machines.group import CheckPartition, Expiry, refuse
from moldau.machines.replaying import members_with_epochs, put_epoch, row
from moldau.machines.share.members import ShareMember, with_assignment, with_subscription
from moldau.machines.share.topics import States, Topics, states_of
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


class ShareGroup:
    """All that the log says about a group, and what follows from it."""

    kind = "share"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.names: Counter[str] = Counter()
        self.target: dict[str, Partitions] = {}
        self.target_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        self.states: States | None = None
        # Soft: at which state of the metadata, and in which epoch, the topics were last looked at; and which partitions
        # the share coordinator has been asked to set up, which a second heartbeat must not do again.
        self.seen: tuple[int, int] = (-1, -1)
        self.setting_up: Topics = {}

    # What all kinds of groups are asked.

    protocol_name = epochs.protocol_name
    is_empty = epochs.is_empty

    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
    ) -> CheckPartition | None:
        self.refuse_offsets()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anybody may: there are none."""

    def check_offset_delete(self) -> None:
        self.refuse_offsets()

    def refuse_offsets(self) -> NoReturn:
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {self.id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            refuse(Error.NON_EMPTY_GROUP, Error.NON_EMPTY_GROUP.message)

    def subscribes(self, topic: str) -> bool:
        return topic in self.names

    def offset_expiry(self) -> Expiry | None:
        return None

    def tombstones(self) -> list[Change]:
        return tombstones(self, m.ShareGroupStatePartitionMetadataKey(self.id))

    # Questions of the commands.

    member = epochs.member

    def known_states(self) -> States:
        return States() if self.states is None else self.states

    # Replay: the only writers.

    def put(self, member: ShareMember) -> None:
        self.remove(member.id)
        self.members[member.id] = member
        add(self.names, member.topics, 1)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        add(self.names, member.topics if member else (), -1)


def existing_or_new(groups: Groups, group_id: str) -> ShareGroup:
    """Return the group, which may be new; raises Refused if a group of another kind has the id."""
    if group_id in groups.groups:
        return groups.get(group_id, ShareGroup.kind)
    groups.check_room_for(group_id)
    return ShareGroup(group_id)


def unassigned(member: ShareMember) -> ShareMember:
    return member.at(-1, NO_TARGET)


def put_states(group: ShareGroup, key: Any, value: Any) -> None:
    group.states = states_of(value)


def take_states(group: ShareGroup, key: Any) -> None:
    group.states = None


REPLAY = {
    **members_with_epochs(
        ShareGroup, ShareMember, with_subscription, with_assignment, unassigned, target_of, put_epoch
    ),
    "ShareGroupStatePartitionMetadataKey": row(ShareGroup, put_states, take_states),
}
