"""A share group (KIP-932): consumers that share the records of partitions, rather than the partitions.

It has members, a target assignment and epochs as a consumer group has them, but a partition may be given to any number
of members, so nobody waits for anybody, and the group is either Empty or Stable. It commits no offsets: how far its
records are is the business of the share coordinator, and `states` tells for which partitions that has a state.
State changes only by replay; the commands are in share_heartbeats.py and share_offsets.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from moldau.machines.assignors import Partitions
from moldau.machines.consumer import FIRST_EPOCH, NO_TARGET, add
from moldau.machines.effects import Change
from moldau.machines.group import CheckPartition, Expiry, refuse
from moldau.machines.share_members import ShareMember, partitions_of, with_assignment, with_subscription
from moldau.machines.share_topics import States, states_of
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
        # Soft: at which state of the metadata, and in which epoch, the topics were last looked at.
        self.seen: tuple[int, int] = (-1, -1)

    # What all kinds of groups are asked.

    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def protocol_name(self) -> str:
        return "share"

    def is_empty(self) -> bool:
        return not self.members

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
        members = [*dict.fromkeys([*self.members, *self.target])]
        keys = [
            *(m.ShareGroupCurrentMemberAssignmentKey(self.id, member) for member in members),
            *(m.ShareGroupTargetAssignmentMemberKey(self.id, member) for member in members),
            m.ShareGroupTargetAssignmentMetadataKey(self.id),
            *(m.ShareGroupMemberMetadataKey(self.id, member) for member in members),
            m.ShareGroupStatePartitionMetadataKey(self.id),
            m.ShareGroupMetadataKey(self.id),
        ]
        return [Change(key, None) for key in keys]

    # Questions of the commands.

    def member(self, member_id: str) -> ShareMember:
        member = self.members.get(member_id)
        if member is None:
            refuse(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return member

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


def persisted(groups: Groups, group_id: str) -> ShareGroup:
    """The group that a record is about."""
    group = groups.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        group = groups.groups[group_id] = ShareGroup(group_id)
    return group


def existing(groups: Groups, group_id: str) -> ShareGroup | None:
    group = groups.groups.get(group_id)
    return group if isinstance(group, ShareGroup) else None


def existing_or_new(groups: Groups, group_id: str) -> ShareGroup:
    """The group, which need not be there yet; raises Refused, for it does not take over the id of another kind."""
    if group_id in groups.groups:
        return groups.get(group_id, ShareGroup.kind)
    groups.check_room_for(group_id)
    return ShareGroup(group_id)


def replay_subscription(groups: Groups, key: Any, value: Any) -> None:
    if value is not None:
        group = persisted(groups, key.group_id)
        group.put(with_subscription(group.members.get(key.member_id) or ShareMember(key.member_id), value))
    elif found := existing(groups, key.group_id):
        found.remove(key.member_id)


def replay_assignment(groups: Groups, key: Any, value: Any) -> None:
    if value is not None:
        group = persisted(groups, key.group_id)
        group.put(with_assignment(group.members.get(key.member_id) or ShareMember(key.member_id), value))
    elif (found := existing(groups, key.group_id)) and (member := found.members.get(key.member_id)):
        found.put(member.at(-1, NO_TARGET))


def replay_target(groups: Groups, key: Any, value: Any) -> None:
    if value is not None:
        persisted(groups, key.group_id).target[key.member_id] = partitions_of(value.topic_partitions)
    elif group := existing(groups, key.group_id):
        group.target.pop(key.member_id, None)


def replay_target_epoch(groups: Groups, key: Any, value: Any) -> None:
    if value is not None:
        group = persisted(groups, key.group_id)
        group.target_epoch, group.assigned_ms = value.assignment_epoch, value.assignment_timestamp
    elif group := existing(groups, key.group_id):
        group.target_epoch = -1


def replay_epoch(groups: Groups, key: Any, value: Any) -> None:
    if value is not None:
        group = persisted(groups, key.group_id)
        group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif existing(groups, key.group_id):
        del groups.groups[key.group_id]


def replay_states(groups: Groups, key: Any, value: Any) -> None:
    if value is not None:
        persisted(groups, key.group_id).states = states_of(value)
    elif group := existing(groups, key.group_id):
        group.states = None


REPLAY: dict[str, Callable[[Groups, Any, Any], None]] = {
    "ShareGroupMetadataKey": replay_epoch,
    "ShareGroupMemberMetadataKey": replay_subscription,
    "ShareGroupTargetAssignmentMetadataKey": replay_target_epoch,
    "ShareGroupTargetAssignmentMemberKey": replay_target,
    "ShareGroupCurrentMemberAssignmentKey": replay_assignment,
    "ShareGroupStatePartitionMetadataKey": replay_states,
}
