"""ConsumerGroupHeartbeat: the one request by which members of a consumer group join, go on and leave (KIP-848).

Checks come in Kafka's order, in its words where clients show them. What follows from a heartbeat is in
heartbeat_step.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines.classic.group import ClassicGroup
from moldau.machines.consumer import migration
from moldau.machines.consumer.assignors import NO_TARGET, Partitions
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.heartbeat_step import Turn, assignors, regex_change, take_turn
from moldau.machines.consumer.members import (
    Member,
    assignment_change,
    partitions_of,
    subscription_change,
    target_change,
)
from moldau.machines.consumer.subscriptions import Visible, anything
from moldau.machines.effects import Effects, Promise
from moldau.machines.epochs import heartbeats, sessions
from moldau.machines.epochs.group import JOIN, LEAVE, STATIC_LEAVE, check_epoch, check_size, config
from moldau.machines.epochs.hashing import metadata_hash
from moldau.machines.epochs.records import removal
from moldau.machines.epochs.sessions import touch
from moldau.machines.group import Client, check_ids, fresh_id, refuse
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

NOTHING_SAID = (None,) * 6
CLIENT_IDS = 1  # from this version on members choose their ids


def heartbeat(
    groups: Groups, promise: Promise, request: Any, client: Client, now_ms: int, visible: Visible = anything
) -> Effects:
    """Join, go on or leave, with a request that was checked."""
    steps = STEPS if visible is anything else replace(STEPS, open_turn=partial(open_turn, visible=visible))
    return heartbeats.heartbeat(steps, groups, promise, request, client, now_ms)


def check_request(setting: Callable[[str], Any], request: Any, version: int) -> None:
    """What can be said without looking at the group, by any broker; raises Refused."""
    epoch = request.member_epoch
    if version >= CLIENT_IDS or epoch > 0 or epoch == LEAVE:
        check_ids(MemberId=request.member_id)
    check_ids(GroupId=request.group_id, InstanceId=request.instance_id, RackId=request.rack_id)
    if epoch == JOIN:
        check_join(request)
    elif epoch == STATIC_LEAVE and request.instance_id is None:
        refuse(Error.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < STATIC_LEAVE:
        refuse(Error.INVALID_REQUEST, "MemberEpoch is invalid.")
    offered = assignors(setting)
    if request.server_assignor is not None and request.server_assignor not in offered:
        known = ", ".join(offered)
        problem = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        refuse(Error.UNSUPPORTED_ASSIGNOR, problem)


def check_join(request: Any) -> None:
    if request.rebalance_timeout_ms == -1:
        refuse(Error.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        refuse(Error.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        problem = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        refuse(Error.INVALID_REQUEST, problem)


def is_full(request: Any) -> bool:
    """Return whether the client sends everything: then it wants to hear everything."""
    subscribed = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    complete = request.rebalance_timeout_ms != -1 and subscribed and request.topic_partitions is not None
    return request.member_epoch == JOIN or complete


# Finding the group and the member.


def open_turn(groups: Groups, request: Any, now_ms: int, visible: Visible = anything) -> Turn:
    """Find the group, which a member that joins may create, or take over from the classic protocol."""
    group_id = request.group_id
    group = groups.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return Turn(groups, group, now_ms, visible=visible)
    if request.member_epoch != JOIN:
        what = "not found" if group is None else "is not a consumer group"
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
    if group is None:
        groups.check_room_for(group_id)
        return Turn(groups, ConsumerGroup(group_id), now_ms, visible=visible)
    if not isinstance(group, ClassicGroup):
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if group.is_empty():
        return Turn(groups, ConsumerGroup(group_id), now_ms, group.tombstones(), visible=visible)
    upgraded, changes, answers = migration.upgrade(groups, group)
    for member in upgraded.members.values():
        assert member.classic is not None
        touch(groups, upgraded, member.id, now_ms, member.classic.session_timeout_ms)
    return Turn(groups, upgraded, now_ms, changes, answers, visible=visible)


def owned_of(request: Any) -> Partitions | None:
    return None if request.topic_partitions is None else partitions_of(request.topic_partitions)


def find_member(turn: Turn, request: Any, owned: Partitions | None) -> Member:
    """Return the member that sends the heartbeat, as it was before it."""
    check_size(turn.groups, turn.group, request.member_id)
    member_id = request.member_id or fresh_id(turn.groups.random)
    joins = request.member_epoch == JOIN
    if request.instance_id is not None:
        member = find_static(turn, member_id, request.instance_id, joins, guest=False)
    else:
        member = turn.group.members.get(member_id) or (Member(member_id) if joins else turn.group.member(member_id))
    if not joins:
        check_epoch(turn.group.kind, member, request.member_epoch, owned)
    return member


def find_static(turn: Turn, member_id: str, instance_id: str, joins: bool, *, guest: bool) -> Member:
    """Return a static member; one that comes back under a new id takes over what the instance had (KIP-345)."""
    holder = turn.group.static_member(instance_id)
    if not joins:
        return check_holder(holder, member_id, instance_id)
    if holder is None:
        return turn.group.members.get(member_id) or Member(member_id)
    if not guest and holder.classic is None and holder.epoch != STATIC_LEAVE:
        problem = f"Static member {member_id} with instance id {instance_id} cannot join the group because the"
        refuse(Error.UNRELEASED_INSTANCE_ID, f"{problem} instance id is owned by {holder.id} member.")
    return take_over(turn, holder, member_id)


def check_holder(holder: Member | None, member_id: str, instance_id: str) -> Member:
    if holder is None:
        refuse(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.id != member_id:
        problem = f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.id}."
        refuse(Error.FENCED_INSTANCE_ID, problem)
    return holder


def take_over(turn: Turn, holder: Member, member_id: str) -> Member:
    """Write everything of one member under the id of another."""
    group_id = turn.group.id
    heir = holder._replace(id=member_id, epoch=0, previous_epoch=0)
    sessions.cancel_timers(turn.groups, group_id, holder.id)
    turn.replaced = holder
    turn.changes += removal(turn.group.kind, group_id, holder.id)
    turn.changes.append(subscription_change(group_id, heir))
    turn.changes.append(target_change(group_id, member_id, turn.group.target.get(holder.id, NO_TARGET)))
    turn.changes.append(assignment_change(group_id, heir))
    return heir


def update(member: Member, request: Any, client: Client) -> Member:
    """Return the member with what the heartbeat says; null leaves a field as it was."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout = request.rebalance_timeout_ms
    says = request.instance_id, request.rack_id, request.server_assignor, names, regex, member.classic
    if says == NOTHING_SAID and timeout == -1 and (member.client_id, member.client_host) == client:
        return member
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=client.id,
        client_host=client.host,
        classic=None,
    )


def answer(turn: Turn, request: Any, before: Member, moved: Member) -> Any:
    """Return the member's epoch, and its partitions if they are others than before or it may have missed them."""
    assignment = None
    if is_full(request) or moved.assigned != before.assigned:
        row = m.ConsumerGroupHeartbeatResponse_TopicPartitions
        rows = [row(topic, sorted(mine)) for topic, mine in moved.assigned.items()]
        assignment = m.ConsumerGroupHeartbeatResponse_Assignment(rows)
    return m.ConsumerGroupHeartbeatResponse(
        member_id=moved.id,
        member_epoch=moved.epoch,
        heartbeat_interval_ms=config(turn.groups, turn.group.id, "heartbeat.interval.ms", turn.group.kind),
        assignment=assignment,
    )


def refusal(error: Error, why: str) -> Any:
    return m.ConsumerGroupHeartbeatResponse(error_code=error, error_message=why)


# Leaving.


def leave(groups: Groups, request: Any, now_ms: int) -> tuple[Effects, Any]:
    """For good, or, for a static member, until it comes back or its session ends."""
    group = groups.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = check_holder(group.static_member(request.instance_id), request.member_id, request.instance_id)
    answer = m.ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE:
        away = member._replace(
            epoch=STATIC_LEAVE,
            revoking={},
            assigned={topic: dict.fromkeys(mine, 0) for topic, mine in member.assigned.items()},
        )
        return Effects([assignment_change(group.id, away)]), answer
    return fence(groups, group, [member], now_ms), answer


def fence(groups: Groups, group: ConsumerGroup, gone: Collection[Member], now_ms: int) -> Effects:
    """Take members out. If those who stay all speak the classic protocol, so does the group from now on."""
    if not gone:
        return Effects()
    if migration.may_downgrade(groups, group, gone):
        for member in gone:
            sessions.cancel_timers(groups, group.id, member.id)
        return migration.downgrade(groups, group, gone, now_ms)
    ids = {member.id for member in gone}
    stay = [member for member in group.members.values() if member.id not in ids]
    unused = {member.regex for member in gone} - {member.regex for member in stay} - {""}
    dropped = [regex_change(group.id, pattern, None) for pattern in sorted(unused)]
    names = {name for member in stay for name in group.topics_of(member)}
    return sessions.fence(groups, group, gone, metadata_hash(names, groups.cluster()), more=dropped)


STEPS = heartbeats.Steps(leave, open_turn, owned_of, find_member, update, take_turn, answer, refusal)
