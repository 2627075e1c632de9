"""ListGroups (key 16), v0-5: the groups of this broker.

v4 states, and a filter by them (KIP-518).  v5 types, and a filter by them (KIP-848).
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.group import Group
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(16, versions=(0, 5), reads="groups")
def list_groups(node: Node, connection: Connection, request: m.ListGroupsRequest, version: int) -> Answer:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    try:
        rows = [row_of(group) for group in all_groups(node) if matches(group, states, types)]
    except Refused as refused:
        return m.ListGroupsResponse(error_code=refused.error)
    return m.ListGroupsResponse(groups=rows)


def all_groups(node: Node) -> Iterator[Group]:
    return (group for _, machine in node.groups.all() for group in machine.groups.values())


def matches(group: Group, states: set[str], types: set[str]) -> bool:
    return (not states or group.state_name().lower() in states) and (not types or group.kind in types)


def row_of(group: Group) -> Any:
    return m.ListGroupsResponse_ListedGroup(group.id, group.protocol_name(), group.state_name(), group.kind)
