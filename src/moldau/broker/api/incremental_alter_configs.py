"""IncrementalAlterConfigs (key 44), v0-1: set, delete, append to and subtract from single settings (KIP-339).

Of one resource all changes are made, or none. Log levels are changed at once and are not kept (KIP-412).
v1 is flexible.
Deviates: an operation that does not exist gets INVALID_REQUEST; Kafka answers UNKNOWN_SERVER_ERROR for a topic. An
illegal topic name is refused before the changes are looked at. How fast thread pools may grow is not checked, since
there are none.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from moldau import settings as table
from moldau.broker.api import Answer, Connection, api
from moldau.broker.configs import alter_each, check_broker_id, check_stored, plan, scope_of
from moldau.broker.loggers import change_level, check_level
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.machines.metadata.cluster import BROKER_LOGGER
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(44, versions=(0, 1))
async def incremental_alter_configs(
    node: Node, connection: Connection, request: m.IncrementalAlterConfigsRequest, version: int
) -> Answer:
    row = m.IncrementalAlterConfigsResponse_AlterConfigsResourceResponse
    return await alter_each(node, request, alter_some, m.IncrementalAlterConfigsResponse, row)


def alter_some(node: Node, proposal: Proposal, validate_only: bool, resource: Any) -> None:
    kind, name = resource.resource_type, resource.resource_name
    changes = [(config.name, config.config_operation, config.value) for config in resource.configs]
    check_changes(changes)
    if kind == BROKER_LOGGER:
        alter_levels(node, name, changes, validate_only)
        return
    check_stored(node, kind, name)
    old = proposal.image.config(kind, name)
    new = partial(table.alter, scope_of(kind, name), node.settings, old, changes)
    records = plan(node, proposal.image, kind, name, new, [key for key, _, _ in changes])
    if not validate_only:
        proposal.add(records)


def check_changes(changes: list[tuple[str, int, str | None]]) -> None:
    if len({key for key, _, _ in changes}) < len(changes):
        raise Refused(Error.INVALID_REQUEST, "The request changes a setting twice.")
    missing = [key for key, operation, value in changes if value is None and operation != table.DELETE]
    if missing:
        raise Refused(Error.INVALID_REQUEST, f"The request has no value for {', '.join(missing)}.")


def alter_levels(node: Node, name: str, changes: list[tuple[str, int, str | None]], validate_only: bool) -> None:
    check_broker_id(node, name)
    for change in changes:
        check_level(*change)
    if not validate_only:
        for change in changes:
            change_level(*change)
