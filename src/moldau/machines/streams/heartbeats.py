"""StreamsGroupHeartbeat: the one request by which members of a streams group join, go on and leave (KIP-1071).

Checks come in Kafka's order, in its words where clients show them. What a heartbeat brings about is in
heartbeat_step.py. Internal topics that are missing are handed over with the answer: the broker creates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines import sessions
from moldau.machines.classic.group import ClassicGroup
from moldau.machines.consumer.members import JOIN, LEAVE, STATIC_LEAVE
from moldau.machines.effects import Effects, Promise
from moldau.machines.epochs import check_size, fence_member
from moldau.machines.group import Client, check_ids, refuse
from moldau.machines.replaying import existing
from moldau.machines.streams.configuring import InternalTopic, Status
from moldau.machines.streams.endpoints import partitions_by_endpoint
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.heartbeat_step import Turn, epoch_change, take_turn
from moldau.machines.streams.members import Member, removal, tags_of
from moldau.machines.streams.tasks import FIELDS, task_rows, tasks_of
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


def heartbeat(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Join, go on or leave."""
    try:
        if request.member_epoch in (LEAVE, STATIC_LEAVE):
            return leave(groups, promise, request)
        return beat(groups, promise, request, client, now_ms)
    except Refused as refused:
        return Effects(answers=[(promise, refusal(refused.error, refused.message))])


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to a heartbeat, and the internal topics that have to be created."""

    response: Any
    missing: tuple[InternalTopic, ...] = ()


def refusal(error: Error, why: str) -> Heard:
    return Heard(m.StreamsGroupHeartbeatResponse(error_code=error, error_message=why, status=[]))


def check_request(request: Any) -> None:
    """What can be said without looking at the group, by any broker; raises Refused."""
    check_supported(request)
    check_complete(request)


def check_supported(request: Any) -> None:
    """Parts of the protocol that Kafka 4.3 does not have yet, and that clients therefore do not expect."""
    for value, why in (
        (request.instance_id is not None, "Static membership is not yet supported."),
        (request.task_offsets is not None, "TaskOffsets are not supported yet."),
        (request.task_end_offsets is not None, "TaskEndOffsets are not supported yet."),
        (request.warmup_tasks, "WarmupTasks are not supported yet."),
    ):
        if value:
            refuse(Error.INVALID_REQUEST, why)
    if request.topology is not None and any(part.source_topic_regex for part in request.topology.subtopologies):
        refuse(Error.INVALID_REQUEST, "Regular expressions for source topics are not supported yet.")


def check_complete(request: Any) -> None:
    check_ids(MemberId=request.member_id, GroupId=request.group_id, RackId=request.rack_id)
    epoch = request.member_epoch
    if epoch == JOIN:
        check_join(request)
    elif epoch == STATIC_LEAVE:
        refuse(Error.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < STATIC_LEAVE:
        refuse(Error.INVALID_REQUEST, f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    told = [getattr(request, field) is not None for field in FIELDS.values()]
    if any(told) and not all(told):
        refuse(Error.INVALID_REQUEST, "If one task-type is non-null, all must be non-null.")
    if epoch != JOIN and request.topology is not None:
        refuse(Error.INVALID_REQUEST, "Topology can only be provided when (re-)joining.")


def check_join(request: Any) -> None:
    if request.rebalance_timeout_ms == -1:
        refuse(Error.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
    for role, field in FIELDS.items():
        if getattr(request, field) != []:
            refuse(Error.INVALID_REQUEST, f"{role.name.title()}Tasks must be empty when (re-)joining.")
    if request.topology is None:
        refuse(Error.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
    for part in request.topology.subtopologies:
        for topic in part.state_changelog_topics:
            if topic.partitions:
                problem = f"Changelog topic {topic.name} must have an undefined partition count,"
                refuse(Error.STREAMS_INVALID_TOPOLOGY, f"{problem} but it is set to {topic.partitions}.")


# Going on.


def beat(groups: Groups, promise: Promise, request: Any, client: Client, now_ms: int) -> Effects:
    """A member's turn, and what it is told; raises Refused."""
    turn = open_turn(groups, request, now_ms)
    member = find_member(turn.group, request)
    wanted = updated(member, request, client)
    owned = None if request.active_tasks is None else tasks_of(request)
    moved = take_turn(turn, member, wanted, request.topology, owned)
    touch(turn, moved.id)
    if moved != wanted:
        watch_revocation(turn, moved)
    if request.shutdown_application:
        turn.group.shutdown_by = turn.group.shutdown_by or moved.id
    changed = is_full(request) or moved.assigned != member.assigned
    missing = turn.group.configured.missing if turn.group.configured else ()
    return Effects(turn.changes, [(promise, Heard(answered(turn, request, moved, changed), missing))])


def is_full(request: Any) -> bool:
    """A client that sends everything wants to hear everything: it joins, or has missed the last answer."""
    return request.member_epoch == JOIN or (request.rebalance_timeout_ms != -1 and request.active_tasks is not None)


def open_turn(groups: Groups, request: Any, now_ms: int) -> Turn:
    """The group, which a member that joins may create, or take over from the classic protocol if it is empty."""
    group_id, joins = request.group_id, request.member_epoch == JOIN
    group = groups.groups.get(group_id)
    if group is None:
        if not joins:
            refuse(Error.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        groups.check_room_for(group_id)
        return Turn(groups, StreamsGroup(group_id), now_ms)
    if joins and isinstance(group, ClassicGroup) and group.is_empty():
        return Turn(groups, StreamsGroup(group_id), now_ms, group.tombstones())
    if not isinstance(group, StreamsGroup):
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    if joins:
        check_size(groups.setting, group.kind, group.members, request.member_id)
    return Turn(groups, group, now_ms)


def find_member(group: StreamsGroup, request: Any) -> Member:
    """The member that sends the heartbeat, as it was before it."""
    if request.member_epoch == JOIN:
        return group.members.get(request.member_id) or Member(request.member_id)
    member = group.member(request.member_id)
    check_epoch(member, request)
    return member


def check_epoch(member: Member, request: Any) -> None:
    """An answer may have been lost: the epoch before is good, as long as the client owns nothing beyond."""
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch < member.epoch and epoch == member.previous_epoch and request.active_tasks is not None:
        owned = tasks_of(request)
        if all(owned[kind] <= member.assigned.get(kind, {}).keys() for kind in owned):
            return
    fence_member(StreamsGroup.kind, epoch, member.epoch)


def updated(member: Member, request: Any, client: Client) -> Member:
    """The member with what the heartbeat says; null leaves a field as it was."""
    timeout, endpoint, tags = request.rebalance_timeout_ms, request.user_endpoint, request.client_tags
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        tags=member.tags if tags is None else tags_of(tags),
        client_id=client.id,
        client_host=client.host,
    )


def answered(turn: Turn, request: Any, member: Member, changed: bool) -> Any:
    """The member's epoch, its tasks if they are others than before, and whatever else it should know."""
    group = turn.group
    answer = m.StreamsGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=turn.config("heartbeat.interval.ms"),
        status=[m.StreamsGroupHeartbeatResponse_Status(*told) for told in (*turn.told, *standing(group))],
    )
    if changed:
        for field, rows in task_rows(member.assigned, m.StreamsGroupHeartbeatResponse_TaskIds).items():
            setattr(answer, field, rows)
        group.endpoint_epoch += member.endpoint is not None
    if group.endpoint_epoch != request.endpoint_information_epoch:
        answer.partitions_by_user_endpoint = partitions_by_endpoint(group, member, turn.groups.cluster())
    if turn.groups.groups.get(group.id) is group:
        answer.endpoint_information_epoch = group.endpoint_epoch
    return answer


def standing(group: StreamsGroup) -> list[tuple[Status, str]]:
    """What everybody in the group is told, for as long as it is so."""
    told = [group.configured.problem] if group.configured and group.configured.problem else []
    if group.shutdown_by is not None:
        who = f"Streams group member {group.shutdown_by} encountered a fatal error"
        told.append((Status.SHUTDOWN_APPLICATION, f"{who} and requested a shutdown for the entire application."))
    return told


# Leaving.


def leave(groups: Groups, promise: Promise, request: Any) -> Effects:
    group = existing(groups, request.group_id, StreamsGroup)
    if group is None:
        what = "is not a streams group" if request.group_id in groups.groups else "not found"
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
    if request.shutdown_application:
        group.shutdown_by = group.shutdown_by or request.member_id
    group.member(request.member_id)
    answer = m.StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=[])
    return fence(groups, group, request.member_id).add(answers=[(promise, Heard(answer))])


def fence(groups: Groups, group: StreamsGroup, member_id: str) -> Effects:
    """Take a member out: a new epoch for those who stay."""
    sessions.cancel_timers(groups, group.id, member_id)
    known = group.metadata_hash, group.validated_epoch, group.assignment_configs
    return Effects([*removal(group.id, member_id), epoch_change(group.id, group.epoch + 1, *known)])


def give_up(groups: Groups, group_id: str, member_id: str, epoch: int | None, now_ms: int) -> Effects:
    """Take out a member that was not heard of, or that is still in the epoch in which it was to give up tasks."""
    group = existing(groups, group_id, StreamsGroup)
    member = group.members.get(member_id) if group else None
    if group is None or member is None or epoch not in (None, member.epoch):
        return Effects()
    return fence(groups, group, member_id)


def touch(turn: Turn, member_id: str) -> None:
    action = partial(give_up, turn.groups, turn.group.id, member_id, None)
    deadline = turn.now_ms + turn.config("session.timeout.ms")
    turn.groups.timers.renew(("session", turn.group.id, member_id), deadline, action)


def watch_revocation(turn: Turn, member: Member) -> None:
    action = partial(give_up, turn.groups, turn.group.id, member.id, member.epoch)
    sessions.watch_revocation(turn.groups, turn.group.id, member, turn.now_ms, action)


def loaded(groups: Groups, group: StreamsGroup, now_ms: int) -> Effects:
    """Go on with a group that was replayed."""
    turn = Turn(groups, group, now_ms)
    for member in group.members.values():
        touch(turn, member.id)
        watch_revocation(turn, member)
    return Effects()
