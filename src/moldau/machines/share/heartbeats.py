"""ShareGroupHeartbeat: the one request by which members of a share group join, go on and leave (KIP-932).

A heartbeat may begin a new epoch of the group: a subscription has changed, or the topics have, or partitions have got
their state and may now be assigned. If the target is behind the group it is computed, but not more often than
`share.assignment.interval.ms`, and the member goes to it. Partitions without a state are not assigned: the heartbeat
says which ones need it, and whoever carries it out tells how that went (`initialized`, `uninitialized`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines.consumer.assignors import Partitions, Subscriber
from moldau.machines.consumer.group import NO_TARGET
from moldau.machines.consumer.heartbeat_step import config, is_assignment_due
from moldau.machines.consumer.subscriptions import metadata_hash
from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.epochs import check_size, fence_member
from moldau.machines.group import Client, check_ids, refuse
from moldau.machines.replaying import existing
from moldau.machines.share.assignor import simple
from moldau.machines.share.group import ShareGroup, existing_or_new
from moldau.machines.share.members import (
    JOIN,
    LEAVE,
    ShareMember,
    assignment_change,
    epoch_change,
    removal,
    rows_of,
    subscription_change,
    target_change,
    target_epoch_change,
)
from moldau.machines.share.topics import initialization, missing, states_change, unset
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


@dataclass(slots=True)
class Beat:
    """What a heartbeat brings about: its effects, and then a request to the share coordinator, if one is due."""

    effects: Effects
    initialize: Any = None


@dataclass(slots=True)
class Turn:
    """A heartbeat in the making: the group before it, the member after it, and the changes so far."""

    groups: Groups
    group: ShareGroup
    wanted: ShareMember
    now_ms: int
    epoch: int
    changes: list[Change] = field(default_factory=list[Change])

    def members(self) -> list[ShareMember]:
        """The members after the turn."""
        return [*(other for other in self.group.members.values() if other.id != self.wanted.id), self.wanted]

    def names(self) -> set[str]:
        """The topics that they subscribe to."""
        return {name for member in self.members() for name in member.topics}


def heartbeat(groups: Groups, promise: Promise, request: Any, client: Client, now_ms: int) -> Beat:
    """Join, go on or leave."""
    try:
        if request.member_epoch == LEAVE:
            return Beat(leave(groups, promise, request))
        return beat(groups, promise, request, client, now_ms)
    except Refused as refused:
        answer = m.ShareGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)
        return Beat(Effects(answers=[(promise, answer)]))


def check_request(request: Any) -> None:
    """What can be said without looking at the group, by any broker; raises Refused."""
    check_ids(MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id)
    if request.member_epoch == JOIN and not request.subscribed_topic_names:
        refuse(Error.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE:
        refuse(Error.INVALID_REQUEST, "MemberEpoch is invalid.")


def beat(groups: Groups, promise: Promise, request: Any, client: Client, now_ms: int) -> Beat:
    """A member's turn, and what it is told; raises Refused."""
    group = find_group(groups, request)
    check_size(groups.setting, group.kind, group.members, request.member_id)
    before = find_member(group, request)
    turn = Turn(groups, group, before.after(request, client), now_ms, group.epoch)
    bumped = update_subscription(turn, before)
    moved = move(turn, *update_target(turn), bumped=bumped)
    touch(groups, group.id, moved.id, now_ms)
    full = request.member_epoch == JOIN or request.subscribed_topic_names is not None
    answer = m.ShareGroupHeartbeatResponse(
        member_id=moved.id,
        member_epoch=moved.epoch,
        heartbeat_interval_ms=config(groups, group.id, "heartbeat.interval.ms", "share"),
        assignment=assignment_rows(moved) if full or moved.assigned != before.assigned else None,
    )
    initialize = begin_states(turn)
    return Beat(Effects(turn.changes, [(promise, answer)]), initialize)


def find_group(groups: Groups, request: Any) -> ShareGroup:
    """The group, which a member that joins may create."""
    if request.member_epoch == JOIN:
        return existing_or_new(groups, request.group_id)
    return groups.get(request.group_id, ShareGroup.kind)


def find_member(group: ShareGroup, request: Any) -> ShareMember:
    """The member that sends it, as it was before it. An answer may have been lost: the epoch before is good."""
    epoch = request.member_epoch
    if epoch == JOIN:
        return group.members.get(request.member_id) or ShareMember(request.member_id)
    member = group.member(request.member_id)
    if epoch > member.epoch:
        fence_member(group.kind, epoch, member.epoch)
    if epoch not in (member.epoch, member.previous_epoch):
        unlike = f", and it does not match the previous member epoch ({member.previous_epoch})"
        fence_member(group.kind, epoch, member.epoch, unlike)
    return member


# A turn.


def update_subscription(turn: Turn, before: ShareMember) -> bool:
    """Write a changed subscription, and begin a new epoch where that, the topics or their states ask for one."""
    group, wanted = turn.group, turn.wanted
    if wanted != before:
        turn.changes.append(subscription_change(group.id, wanted))
    force = wanted.topics != before.topics or (group.target_epoch >= group.epoch and is_target_behind(turn))
    cluster = turn.groups.cluster()
    if not force and group.seen == (cluster.topic_changes, group.epoch):
        return False
    number = metadata_hash(turn.names(), cluster)
    bumped = force or number != group.metadata_hash
    if bumped:
        turn.epoch += 1
        turn.changes.append(epoch_change(group.id, turn.epoch, number))
    group.seen = (cluster.topic_changes, turn.epoch)
    return bumped


def is_target_behind(turn: Turn) -> bool:
    """Whether partitions have got their state since the target was computed."""
    group, topics = turn.group, turn.groups.cluster().topics_by_id
    if not group.names:
        return False
    assigned: dict[bytes, set[int]] = {}
    for target in group.target.values():
        for topic, indexes in target.items():
            assigned.setdefault(topic, set()).update(indexes)
    return any(
        frozenset(assigned.get(topic, ())) != known.partitions
        for topic, known in group.known_states().initialized.items()
        if known.name in group.names and topic in topics
    )


def update_target(turn: Turn) -> tuple[int, Partitions]:
    """The target's epoch and what it gives to this member; computed anew if it is behind and its time has come."""
    group = turn.group
    if turn.epoch <= group.target_epoch or not is_assignment_due(turn.groups, group, turn.now_ms):
        return group.target_epoch, group.target.get(turn.wanted.id, NO_TARGET)
    assignment = assign(turn, turn.members())
    for member_id, partitions in assignment.items():
        if partitions != group.target.get(member_id):
            turn.changes.append(target_change(group.id, member_id, partitions))
    turn.changes.append(target_epoch_change(group.id, turn.epoch, turn.now_ms))
    return turn.epoch, assignment[turn.wanted.id]


def assign(turn: Turn, members: Sequence[ShareMember]) -> dict[str, Partitions]:
    """Ask the assignor, about partitions that have a state."""
    topics, states = turn.groups.cluster().topics, turn.group.known_states()
    subscribers = [
        Subscriber(
            member.id,
            frozenset(topics[name].id for name in member.topics if name in topics),
            turn.group.target.get(member.id, NO_TARGET),
        )
        for member in members
    ]
    return simple(subscribers, {topic: known.partitions for topic, known in states.initialized.items()})


def move(turn: Turn, epoch: int, target: Partitions, *, bumped: bool) -> ShareMember:
    """The member's step to the target, less the topics that it does not ask for any longer."""
    member, topics = turn.wanted, turn.groups.cluster().topics_by_id
    if member.epoch == epoch and not bumped:
        return member
    mine = {topic: some for topic, some in target.items() if topic in topics and topics[topic].name in member.topics}
    moved = member.at(epoch, mine)
    if moved != member:
        turn.changes.append(assignment_change(turn.group.id, moved))
    return moved


def assignment_rows(member: ShareMember) -> Any:
    rows = rows_of(member.assigned, m.ShareGroupHeartbeatResponse_TopicPartitions)
    return m.ShareGroupHeartbeatResponse_Assignment(rows)


# States of partitions.


def begin_states(turn: Turn) -> Any:
    """Note the partitions that need a state; the request that gets it for them, or None."""
    group, states = turn.group, turn.group.known_states()
    topics = missing(states, turn.names(), turn.groups.cluster())
    if not topics:
        return None
    turn.changes.append(states_change(group.id, states.begin(topics)))
    return initialization(group.id, turn.epoch, unset(topics))


# Going.


def leave(groups: Groups, promise: Promise, request: Any) -> Effects:
    group = find_group(groups, request)
    member = group.member(request.member_id)
    answer = m.ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return fence(groups, group, [member.id]).add(answers=[(promise, answer)])


def fence(groups: Groups, group: ShareGroup, gone: Collection[str]) -> Effects:
    """Take members out: a new epoch for those who stay."""
    changes = [change for member_id in gone for change in removal(group.id, member_id)]
    for member_id in gone:
        groups.timers.cancel(("session", group.id, member_id))
    names = {name for member in group.members.values() if member.id not in gone for name in member.topics}
    changes.append(epoch_change(group.id, group.epoch + 1, metadata_hash(names, groups.cluster())))
    return Effects(changes)


def touch(groups: Groups, group_id: str, member_id: str, now_ms: int) -> None:
    """A sign of life."""
    deadline = now_ms + config(groups, group_id, "session.timeout.ms", "share")
    groups.timers.renew(("session", group_id, member_id), deadline, partial(give_up, groups, group_id, member_id))


def give_up(groups: Groups, group_id: str, member_id: str, now_ms: int) -> Effects:
    """Take out a member that was not heard of."""
    group = existing(groups, group_id, ShareGroup)
    return fence(groups, group, [member_id]) if group and member_id in group.members else Effects()


def loaded(groups: Groups, group: ShareGroup, now_ms: int) -> Effects:
    """Go on with a group that was replayed: everybody has a session's time to be heard of."""
    for member_id in group.members:
        touch(groups, group.id, member_id, now_ms)
    return Effects()
