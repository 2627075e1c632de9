"""ListConfigResources (key 74), v0-1: the resources that the config APIs can describe.

v0 lists client metrics (KIP-1000), v1 the asked types, all if none is given (KIP-1142).
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.cluster import CLIENT_METRICS
from moldau.machines.metadata.configs import LISTED, list_resources
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(74, versions=(0, 1))
def list_config_resources(
    node: Node, connection: Connection, request: m.ListConfigResourcesRequest, version: int
) -> Answer:
    kinds = (request.resource_types or LISTED) if version else (CLIENT_METRICS,)
    try:
        found = list_resources(node.cluster, kinds)
    except Refused as refused:
        return m.ListConfigResourcesResponse(error_code=refused.error)
    rows = [m.ListConfigResourcesResponse_ConfigResource(name, kind) for kind, name in found]
    return m.ListConfigResourcesResponse(config_resources=rows)
