"""DeleteGroups (key 42), v0-2: delete empty groups of any kind, with their offsets, or with what they share.

Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.share.groups import delete_states
from moldau.broker.steps import start
from moldau.machines.effects import Effects, Promise
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(42, versions=(0, 2))
async def delete_groups(node: Node, connection: Connection, request: m.DeleteGroupsRequest, version: int) -> Answer:
    rows = [start(node, delete(node, group_id)) for group_id in dict.fromkeys(request.groups_names)]
    return m.DeleteGroupsResponse(results=[await row for row in rows])


async def delete(node: Node, group_id: str) -> Any:
    def row(error: Error) -> Any:
        return m.DeleteGroupsResponse_DeletableGroupResult(group_id, error)

    try:
        index, machine = node.groups.of(group_id)
        error = await delete_states(node, index, machine, group_id)
        if error:
            return row(error)
        index, machine = node.groups.of(group_id)  # it may have been loaded again meanwhile
        changes = machine.delete(group_id)
    except Refused as refused:
        return row(refused.error)
    promise = Promise(row)
    return await node.groups.start(index, promise, Effects(changes, [(promise, row(Error.NONE))]))
