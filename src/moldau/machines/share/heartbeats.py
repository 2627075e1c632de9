"""ShareGroupHeartbeat: the one request by which members of a share group join, go on and leave (KIP-932).

A heartbeat may begin a new epoch of the group: a subscription has changed, or the topics have, or partitions have got
their state and may now be assigned. If the target is behind the group it is computed, but not more often than
`share.assignment.interval.ms`, and the member goes to it. Partitions without a state are not assigned: the heartbeat
says which ones need it, and whoever carries it out tells how that went (`initialized`, `uninitialized`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.machines.consumer.assignors import NO_TARGET, Assignment, Partitions, Subscriber
from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.epochs import heartbeats, sessions
from moldau.machines.epochs.group import JOIN, LEAVE, check_size, config, fence_member
from moldau.machines.epochs.hashing import metadata_hash
from moldau.machines.epochs.heartbeats import is_assignment_due, update_epoch, write_target
from moldau.machines.group import Client, check_ids, refuse
from moldau.machines.share.assignor import simple
from moldau.machines.share.group import ShareGroup, existing_or_new
from moldau.machines.share.members import (
    ShareMember,
    assignment_change,
    rows_of,
    subscription_change,
    target_change,
    update,
)
from moldau.machines.share.topics import Known, Topics, difference, missing, states_change
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to a heartbeat, and the partitions that the share coordinator has to set up before it is given."""

    response: Any
    set_up: Topics = field(default_factory=dict[bytes, Known])


@dataclass(slots=True)
class Turn:
    """A heartbeat in the making: the group before it, and the changes so far."""

    groups: Groups
    group: ShareGroup
    now_ms: int
    epoch: int
    changes: list[Change] = field(default_factory=list[Change])
    answers: list[tuple[Promise, Any]] = field(default_factory=list[tuple[Promise, Any]])


def heartbeat(groups: Groups, promise: Promise, request: Any, client: Client, now_ms: int) -> Effects:
    """Join, go on or leave."""
    return heartbeats.heartbeat(STEPS, groups, promise, request, client, now_ms)


def check_request(request: Any) -> None:
    """What can be said without looking at the group, by any broker; raises Refused."""
    check_ids(MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id)
    if request.member_epoch == JOIN and not request.subscribed_topic_names:
        refuse(Error.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE:
        refuse(Error.INVALID_REQUEST, "MemberEpoch is invalid.")


def refusal(error: Error, why: str) -> Heard:
    return Heard(m.ShareGroupHeartbeatResponse(error_code=error, error_message=why))


def open_turn(groups: Groups, request: Any, now_ms: int) -> Turn:
    """Find the group, which a member that joins may create."""
    joins = request.member_epoch == JOIN
    group = existing_or_new(groups, request.group_id) if joins else groups.get(request.group_id, ShareGroup.kind)
    return Turn(groups, group, now_ms, group.epoch)


def find_member(turn: Turn, request: Any, owned: None) -> ShareMember:
    """Return the member that sends it, as it was before it. An answer may have been lost: the epoch before is good."""
    group, epoch = turn.group, request.member_epoch
    check_size(turn.groups, group, request.member_id)
    if epoch == JOIN:
        return group.members.get(request.member_id) or ShareMember(request.member_id)
    member = group.member(request.member_id)
    if epoch > member.epoch:
        fence_member(group.kind, epoch, member.epoch)
    if epoch not in (member.epoch, member.previous_epoch):
        unlike = f", and it does not match the previous member epoch ({member.previous_epoch})"
        fence_member(group.kind, epoch, member.epoch, unlike)
    return member


def take_turn(turn: Turn, before: ShareMember, wanted: ShareMember, owned: None) -> ShareMember:
    """Subscription, epoch, target, assignment: each writes what it changes. Returns the member after it."""
    group, topics = turn.group, turn.groups.cluster().topics_by_id
    if wanted != before:
        turn.changes.append(subscription_change(group.id, wanted))
    force = wanted.topics != before.topics or (group.target_epoch >= group.epoch and is_target_behind(turn))
    bumped = update_epoch(turn, lambda: names(group, wanted), force=force)
    epoch, target = update_target(turn, wanted)
    if wanted.epoch == epoch and not bumped:
        return wanted
    mine = {topic: some for topic, some in target.items() if topic in topics and topics[topic].name in wanted.topics}
    moved = wanted.at(epoch, mine)
    if moved != wanted:
        turn.changes.append(assignment_change(group.id, moved))
    return moved


def members_after(group: ShareGroup, wanted: ShareMember) -> list[ShareMember]:
    return [*(other for other in group.members.values() if other.id != wanted.id), wanted]


def names(group: ShareGroup, wanted: ShareMember) -> set[str]:
    """Return the topics that the members subscribe to after the turn."""
    return {name for member in members_after(group, wanted) for name in member.topics}


def is_target_behind(turn: Turn) -> bool:
    """Return whether partitions have got their state since the target was computed."""
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


def update_target(turn: Turn, wanted: ShareMember) -> tuple[int, Partitions]:
    """Return the target's epoch and the member's part of it, computed anew if it is behind and that is due."""
    group = turn.group
    if turn.epoch <= group.target_epoch or not is_assignment_due(turn):
        return group.target_epoch, group.target.get(wanted.id, NO_TARGET)
    target = assign(turn, members_after(group, wanted))
    write_target(turn, target, target_change)
    return turn.epoch, target[wanted.id]


def assign(turn: Turn, members: Iterable[ShareMember]) -> Assignment:
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


def answer(turn: Turn, request: Any, before: ShareMember, moved: ShareMember) -> Heard:
    """Return the member's epoch, and its partitions if they are others than before or it may have missed them."""
    full = request.member_epoch == JOIN or request.subscribed_topic_names is not None
    assignment = None
    if full or moved.assigned != before.assigned:
        rows = rows_of(moved.assigned, m.ShareGroupHeartbeatResponse_TopicPartitions)
        assignment = m.ShareGroupHeartbeatResponse_Assignment(rows)
    response = m.ShareGroupHeartbeatResponse(
        member_id=moved.id,
        member_epoch=moved.epoch,
        heartbeat_interval_ms=config(turn.groups, turn.group.id, "heartbeat.interval.ms", turn.group.kind),
        assignment=assignment,
    )
    return Heard(response, begin_states(turn, moved))


def begin_states(turn: Turn, member: ShareMember) -> Topics:
    """Note the partitions that need a state, and return them."""
    group, states = turn.group, turn.group.known_states()
    topics = difference(missing(states, names(group, member), turn.groups.cluster()), group.setting_up)
    if topics:
        turn.changes.append(states_change(group.id, states.begin(topics)))
    return topics


def leave(groups: Groups, request: Any, now_ms: int) -> tuple[Effects, Heard]:
    group: ShareGroup = groups.get(request.group_id, ShareGroup.kind)
    member = group.member(request.member_id)
    response = m.ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return fence(groups, group, [member], now_ms), Heard(response)


def fence(groups: Groups, group: ShareGroup, gone: Collection[ShareMember], now_ms: int) -> Effects:
    """Take members out."""
    stay = [member for member in group.members.values() if member not in gone]
    names = {name for member in stay for name in member.topics}
    return sessions.fence(groups, group, gone, metadata_hash(names, groups.cluster()))


STEPS = heartbeats.Steps(leave, open_turn, lambda request: None, find_member, update, take_turn, answer, refusal)
