"""AlterConfigs (key 33), v0-2: replace all settings of a resource; what is not given goes back to its default.

v2 is flexible. IncrementalAlterConfigs (key 44) is the better one.
Deviates: a resource that is named twice gets INVALID_REQUEST each time; Kafka does not answer such a request.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from moldau import settings as table
from moldau.broker.api import Answer, Connection, api
from moldau.broker.configs import alter_each, check_stored, plan, scope_of
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(33, versions=(0, 2))
async def alter_configs(node: Node, connection: Connection, request: m.AlterConfigsRequest, version: int) -> Answer:
    row = m.AlterConfigsResponse_AlterConfigsResourceResponse
    return await alter_each(node, request, replace_all, m.AlterConfigsResponse, row)


def replace_all(node: Node, proposal: Proposal, validate_only: bool, resource: Any) -> None:
    kind, name = resource.resource_type, resource.resource_name
    given = {config.name: config.value for config in resource.configs}
    if len(given) < len(resource.configs):
        raise Refused(Error.INVALID_REQUEST, "The request names a setting twice.")
    if None in given.values():
        raise Refused(Error.INVALID_REQUEST, "A setting in the request has no value.")
    check_stored(node, kind, name)
    new = partial(table.replace, scope_of(kind, name), node.settings, given)
    records = plan(node, proposal.image, kind, name, new, given)
    if not validate_only:
        proposal.add(records)
