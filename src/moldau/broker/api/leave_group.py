"""LeaveGroup (key 13), v0-5: members leave a classic group, or are sent away by their instance ids.

v3 many members at once, static ones too (KIP-345).  v5 reason (KIP-800).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import ask_member
from moldau.broker.node import Node
from moldau.broker.wait import finish
from moldau.wire import messages as m
from moldau.wire.errors import Error

BATCHED = 3


@api(13, versions=(0, 5))
def leave_group(node: Node, connection: Connection, request: m.LeaveGroupRequest, version: int) -> Answer:
    def refuse(error: Error) -> object:
        return m.LeaveGroupResponse(error_code=error)

    if version < BATCHED:
        request.members = [m.LeaveGroupRequest_MemberIdentity(request.member_id)]
    answer = ask_member(node, connection, request, version, lambda kind: kind.leave, refuse)
    return answer if version >= BATCHED else finish(answer, single)


def single(answer: Any) -> Any:
    """The answer for the one member of an older request."""
    errors = [answer.error_code, *(row.error_code for row in answer.members)]
    return m.LeaveGroupResponse(error_code=next((error for error in errors if error), Error.NONE))
