"""The members of classic groups: they join, get their assignments, stay alive and leave.

JoinGroup (key 11), v0-9: become a member, or stay one through a rebalance. v1 rebalance timeout (KIP-62).  v4 a new
member gets an id first (KIP-394).  v5 static members (KIP-345).  v7 protocol type in the answer (KIP-559).  v8 reason
(KIP-800).  v9 a leader may skip the assignment (KIP-814).
SyncGroup (key 14), v0-5: a member's assignment; the leader brings those of all. v3 static members (KIP-345).  v5
protocol type and name (KIP-559).
Heartbeat (key 12), v0-4: a member is alive, and learns whether to join again. v3 static members (KIP-345).
LeaveGroup (key 13), v0-5: members leave, or are sent away by their instance ids. v3 many members at once, static ones
too (KIP-345).  v5 reason (KIP-800).
Deviates: a group that nobody joined with the id he got is gone with that id; Kafka writes it and deletes it later. A
join that its member repeats is answered with REBALANCE_IN_PROGRESS; Kafka leaves it unanswered. When all have left in
the delay before the first rebalance, others may join; Kafka answers INCONSISTENT_GROUP_PROTOCOL until it is over.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import ask_member
from moldau.broker.node import Node
from moldau.broker.wait import finish
from moldau.wire import messages as m
from moldau.wire.errors import Error

WITH_PROTOCOL = 5  # versions of SyncGroup, and of LeaveGroup
BATCHED = 3
LOADING = Error.COORDINATOR_LOAD_IN_PROGRESS


@api(11, versions=(0, 9))
def join_group(node: Node, connection: Connection, request: m.JoinGroupRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        protocol = None if version >= 7 else ""
        return m.JoinGroupResponse(error_code=error, protocol_name=protocol, member_id=request.member_id)

    shortest, longest = node.settings["group.min.session.timeout.ms"], node.settings["group.max.session.timeout.ms"]
    if request.group_id and not shortest <= request.session_timeout_ms <= longest:
        return refuse(Error.INVALID_SESSION_TIMEOUT)
    return ask_member(node, connection, request, version, lambda kind: kind.join, refuse)


@api(14, versions=(0, 5))
def sync_group(node: Node, connection: Connection, request: m.SyncGroupRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        return m.SyncGroupResponse(error_code=error)

    if version >= WITH_PROTOCOL and (request.protocol_type is None or request.protocol_name is None):
        return refuse(Error.INCONSISTENT_GROUP_PROTOCOL)
    return ask_member(node, connection, request, version, lambda kind: kind.sync, refuse)


@api(12, versions=(0, 4))
def heartbeat(node: Node, connection: Connection, request: m.HeartbeatRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        # While groups are loaded a member lives: an error would only make it join again.
        return m.HeartbeatResponse(error_code=Error.NONE if error is LOADING else error)

    return ask_member(node, connection, request, version, lambda kind: kind.heartbeat, refuse)


@api(13, versions=(0, 5))
def leave_group(node: Node, connection: Connection, request: m.LeaveGroupRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        return m.LeaveGroupResponse(error_code=error)

    if version < BATCHED:
        request.members = [m.LeaveGroupRequest_MemberIdentity(request.member_id)]
    answer = ask_member(node, connection, request, version, lambda kind: kind.leave, refuse)
    return answer if version >= BATCHED else finish(answer, answer_single)


def answer_single(answer: m.LeaveGroupResponse) -> m.LeaveGroupResponse:
    """Make the answer for the one member of an older request."""
    errors = [answer.error_code, *(row.error_code for row in answer.members)]
    return m.LeaveGroupResponse(error_code=next((error for error in errors if error), Error.NONE))
