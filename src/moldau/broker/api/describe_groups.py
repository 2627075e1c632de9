"""DescribeGroups (key 15), v0-6: members and assignments of classic groups.

v3 authorized operations (KIP-430).  v4 static members.  v6 a missing group is an error with a sentence (KIP-1043).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker import operations
from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.classic.group import ClassicGroup, Member, State
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

MISSING_IS_ERROR = 6


@api(15, versions=(0, 6), reads="groups")
def describe_groups(node: Node, connection: Connection, request: m.DescribeGroupsRequest, version: int) -> Answer:
    rows = [describe(node, group_id, version) for group_id in request.groups]
    operations.add_to_groups(request, rows)
    return m.DescribeGroupsResponse(groups=rows)


def describe(node: Node, group_id: str, version: int) -> Any:
    try:
        _, machine = node.groups.of(group_id)
        return described(machine.get(group_id, "classic"))
    except Refused as refused:
        row = m.DescribeGroupsResponse_DescribedGroup(refused.error, group_id=group_id)
        if refused.error == Error.GROUP_ID_NOT_FOUND:
            row.group_state = State.DEAD.value
            row.error_code = refused.error if version >= MISSING_IS_ERROR else Error.NONE
            row.error_message = refused.message if version >= MISSING_IS_ERROR else None
        return row


def described(group: ClassicGroup) -> Any:
    """Protocol and metadata are told while they are agreed on: when the group is stable."""
    stable = group.state is State.STABLE
    return m.DescribeGroupsResponse_DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[member_row(group, member, stable) for member in group.members.values()],
    )


def member_row(group: ClassicGroup, member: Member, stable: bool) -> Any:
    return m.DescribeGroupsResponse_DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client.id,
        client_host=member.client.host,
        member_metadata=member.metadata(group.protocol) if stable else b"",
        member_assignment=member.assignment,
    )
