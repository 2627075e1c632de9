"""JoinGroup (key 11), v0-9: become a member of a classic group, or stay one through a rebalance.

v1 rebalance timeout (KIP-62).  v4 a new member gets an id first (KIP-394).  v5 static members (KIP-345).
v7 protocol type in the answer (KIP-559).  v8 reason (KIP-800).  v9 a leader may skip the assignment (KIP-814).
Deviates: a group that nobody joined with the id he got is gone with that id; Kafka writes it and deletes it later. A
join that its member repeats is answered with REBALANCE_IN_PROGRESS; Kafka leaves it unanswered. When all have left in
the delay before the first rebalance, others may join; Kafka answers INCONSISTENT_GROUP_PROTOCOL until it is over.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import ask_member
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(11, versions=(0, 9))
def join_group(node: Node, connection: Connection, request: m.JoinGroupRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        protocol = None if version >= 7 else ""
        return m.JoinGroupResponse(error_code=error, protocol_name=protocol, member_id=request.member_id)

    if request.group_id and not (
        node.settings["group.min.session.timeout.ms"]
        <= request.session_timeout_ms
        <= node.settings["group.max.session.timeout.ms"]
    ):
        return refuse(Error.INVALID_SESSION_TIMEOUT)
    return ask_member(node, connection, request, version, lambda kind: kind.join, refuse)
