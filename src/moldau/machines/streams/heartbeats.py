"""StreamsGroupHeartbeat: the one request by which members of a streams group join, go on and leave (KIP-1071).

Checks come in Kafka's order, in its words where clients show them. What a heartbeat brings about is in
heartbeat_step.py. Internal topics that are missing are handed over with the answer: the broker creates them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.machines.classic.group import ClassicGroup
from moldau.machines.effects import Effects, Promise
from moldau.machines.epochs import heartbeats, sessions
from moldau.machines.epochs.group import JOIN, STATIC_LEAVE, check_epoch, check_size
from moldau.machines.group import Client, check_ids, refuse
from moldau.machines.replaying import existing
from moldau.machines.streams.configuring import InternalTopic, Status
from moldau.machines.streams.endpoints import partitions_by_endpoint
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.heartbeat_step import Turn, config_rows, take_turn
from moldau.machines.streams.members import Member, tags_of
from moldau.machines.streams.tasks import FIELDS, Tasks, task_rows, tasks_of
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


def heartbeat(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Join, go on or leave."""
    return heartbeats.heartbeat(STEPS, groups, promise, request, client, now_ms)


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


def is_full(request: Any) -> bool:
    """Return whether the client sends everything: it joins, or has missed the last answer, and wants to hear all."""
    return request.member_epoch == JOIN or (request.rebalance_timeout_ms != -1 and request.active_tasks is not None)


def open_turn(groups: Groups, request: Any, now_ms: int) -> Turn:
    """Find the group, which a member that joins may create, or take over from the classic protocol if empty."""
    group_id, joins = request.group_id, request.member_epoch == JOIN
    group = groups.groups.get(group_id)
    if group is None:
        if not joins:
            refuse(Error.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
        groups.check_room_for(group_id)
        return Turn(groups, StreamsGroup(group_id), now_ms, request.topology)
    if joins and isinstance(group, ClassicGroup) and group.is_empty():
        return Turn(groups, StreamsGroup(group_id), now_ms, request.topology, group.tombstones())
    if not isinstance(group, StreamsGroup):
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    if joins:
        check_size(groups, group, request.member_id)
    return Turn(groups, group, now_ms, request.topology)


def owned_of(request: Any) -> Tasks | None:
    return None if request.active_tasks is None else tasks_of(request)


def find_member(turn: Turn, request: Any, owned: Tasks | None) -> Member:
    """Return the member that sends the heartbeat, as it was before it."""
    group, member_id = turn.group, request.member_id
    if request.member_epoch == JOIN:
        return group.members.get(member_id) or Member(member_id)
    member = group.member(member_id)
    check_epoch(group.kind, member, request.member_epoch, owned)
    return member


def update(member: Member, request: Any, client: Client) -> Member:
    """Return the member with what the heartbeat says; null leaves a field as it was."""
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


def answer(turn: Turn, request: Any, before: Member, member: Member) -> Heard:
    """Tell the member its epoch, its tasks if they changed or it may have missed them, and what else it should know."""
    group = turn.group
    if request.shutdown_application:
        group.shutdown_by = group.shutdown_by or member.id
    response = m.StreamsGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=turn.config("heartbeat.interval.ms"),
        status=[m.StreamsGroupHeartbeatResponse_Status(*told) for told in (*turn.told, *standing(group))],
    )
    if is_full(request) or member.assigned != before.assigned:
        for field, rows in task_rows(member.assigned, m.StreamsGroupHeartbeatResponse_TaskIds).items():
            setattr(response, field, rows)
        group.endpoint_epoch += member.endpoint is not None
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = partitions_by_endpoint(group, member, turn.groups.cluster())
    if turn.groups.groups.get(group.id) is group:
        response.endpoint_information_epoch = group.endpoint_epoch
    return Heard(response, group.configured.missing if group.configured else ())


def standing(group: StreamsGroup) -> list[tuple[Status, str]]:
    """Return what everybody in the group is told, for as long as it is so."""
    told = [group.configured.problem] if group.configured and group.configured.problem else []
    if group.shutdown_by is not None:
        who = f"Streams group member {group.shutdown_by} encountered a fatal error"
        told.append((Status.SHUTDOWN_APPLICATION, f"{who} and requested a shutdown for the entire application."))
    return told


# Leaving.


def leave(groups: Groups, request: Any, now_ms: int) -> tuple[Effects, Heard]:
    group = existing(groups, request.group_id, StreamsGroup)
    if group is None:
        what = "is not a streams group" if request.group_id in groups.groups else "not found"
        refuse(Error.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {what}.")
    if request.shutdown_application:
        group.shutdown_by = group.shutdown_by or request.member_id
    member = group.member(request.member_id)
    response = m.StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, status=[]
    )
    return fence(groups, group, [member], now_ms), Heard(response)


def fence(groups: Groups, group: StreamsGroup, gone: Collection[Member], now_ms: int) -> Effects:
    """Take members out. Those who stay go on with the same topics."""
    configs = config_rows(group.assignment_configs)
    return sessions.fence(groups, group, gone, group.metadata_hash, group.validated_epoch, configs)


STEPS = heartbeats.Steps(leave, open_turn, owned_of, find_member, update, take_turn, answer, refusal)
