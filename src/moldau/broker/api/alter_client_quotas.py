"""AlterClientQuotas (key 49), v0-1: set and remove quotas of users, client ids and addresses (KIP-546).

An entity that is named twice is refused, yet what its first row asks for is done, as in Kafka. v1 is flexible.
Deviates: a quota that is not a number (NaN) is refused. Host names are not looked up: of them only localhost is
taken for an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.cluster import quota_entity
from moldau.machines.metadata.quotas import Alteration, alter_quotas
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(49, versions=(0, 1))
async def alter_client_quotas(
    node: Node, connection: Connection, request: m.AlterClientQuotasRequest, version: int
) -> Answer:
    alterations = [
        Alteration(quota_entity(distinct(row.entity)), [(op.key, None if op.remove else op.value) for op in row.ops])
        for row in request.entries
    ]
    proposal = node.metadata.propose()
    records, problems = alter_quotas(proposal.image, alterations)
    if not request.validate_only:
        proposal.add(records)
    rows = [row_of(entity, problem) for entity, problem in problems.items()]
    return await proposal.answer(m.AlterClientQuotasResponse(entries=rows), rows)


def distinct(parts: Sequence[Any]) -> list[Any]:
    """Drop repeated types of an entity; the last one counts."""
    return list({part.entity_type: part for part in parts}.values())


def row_of(entity: Any, problem: Refused | None) -> Any:
    parts = [m.AlterClientQuotasResponse_EntityData(*part) for part in entity]
    if problem is None:
        return m.AlterClientQuotasResponse_EntryData(error_message=None, entity=parts)
    return m.AlterClientQuotasResponse_EntryData(problem.error, problem.message, parts)
