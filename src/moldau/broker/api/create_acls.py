"""CreateAcls (key 30), v1-3: new access control entries; one that is there already counts as created.

v1 prefixed patterns (KIP-290).  v2 is flexible.  v3 users as resources (KIP-373).
Deviates: an entry with a code that only a filter may have (any, match) is refused by itself with INVALID_REQUEST, and
so is a code of 0; Kafka fails the whole request, or hangs up.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.api.describe_acls import NO_AUTHORIZER
from moldau.broker.node import Node
from moldau.broker.topics import fresh_id
from moldau.machines.metadata.acls import Acl, create
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(30, versions=(1, 3))
async def create_acls(node: Node, connection: Connection, request: m.CreateAclsRequest, version: int) -> Answer:
    if node.authorizer is None:
        off = row_of(Refused(Error.SECURITY_DISABLED, NO_AUTHORIZER))
        return m.CreateAclsResponse(results=[off] * len(request.creations))
    asked = [
        Acl(
            one.resource_type,
            one.resource_name,
            one.resource_pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for one in request.creations
    ]
    proposal = node.metadata.propose()
    records, problems = create(proposal.image.acls, asked, lambda: fresh_id(node))
    proposal.add(records)
    rows = [row_of(problem) for problem in problems]
    return await proposal.answer(m.CreateAclsResponse(results=rows), rows)


def row_of(problem: Refused | None) -> Any:
    if problem is None:
        return m.CreateAclsResponse_AclCreationResult()
    return m.CreateAclsResponse_AclCreationResult(problem.error, problem.message)
