"""DescribeClientQuotas (key 48), v0-1: the quotas of users, client ids and addresses that fit a filter (KIP-546).

v1 is flexible.
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.quotas import Component, describe_quotas
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(48, versions=(0, 1))
def describe_client_quotas(
    node: Node, connection: Connection, request: m.DescribeClientQuotasRequest, version: int
) -> Answer:
    components = [Component(c.entity_type, c.match_type, c.match) for c in request.components]
    try:
        found = describe_quotas(node.cluster, components, request.strict)
    except Refused as refused:
        return m.DescribeClientQuotasResponse(error_code=refused.error, error_message=refused.message, entries=None)
    entries = [
        m.DescribeClientQuotasResponse_EntryData(
            [m.DescribeClientQuotasResponse_EntityData(*part) for part in entity],
            [m.DescribeClientQuotasResponse_ValueData(*pair) for pair in sorted(values.items())],
        )
        for entity, values in found
    ]
    return m.DescribeClientQuotasResponse(entries=entries)
