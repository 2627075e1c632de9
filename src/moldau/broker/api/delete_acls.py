"""DeleteAcls (key 31), v1-3: remove the access control entries that fit filters, and tell which they were.

v1 prefixed patterns (KIP-290).  v2 is flexible.  v3 users as resources (KIP-373).
Deviates: a filter with a code of 0 is refused as one with any other code that does not exist; Kafka hangs up. More
entries at once than may be deleted are POLICY_VIOLATION (Kafka: UNKNOWN_SERVER_ERROR).
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.api.describe_acls import NO_AUTHORIZER, filter_of
from moldau.broker.node import Node
from moldau.machines.metadata.acls import Acl, delete
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(31, versions=(1, 3))
async def delete_acls(node: Node, connection: Connection, request: m.DeleteAclsRequest, version: int) -> Answer:
    if node.authorizer is None:
        off = row_of(Refused(Error.SECURITY_DISABLED, NO_AUTHORIZER))
        return m.DeleteAclsResponse(filter_results=[off] * len(request.filters))
    proposal = node.metadata.propose()
    records, outcomes = delete(proposal.image.acls, [filter_of(one) for one in request.filters])
    proposal.add(records)
    rows = [row_of(outcome) for outcome in outcomes]
    return await proposal.answer(m.DeleteAclsResponse(filter_results=rows), rows)


def row_of(outcome: list[Acl] | Refused) -> Any:
    """What one filter did."""
    if isinstance(outcome, Refused):
        return m.DeleteAclsResponse_DeleteAclsFilterResult(outcome.error, outcome.message)
    rows = [m.DeleteAclsResponse_DeleteAclsMatchingAcl(Error.NONE, None, *acl) for acl in outcome]
    return m.DeleteAclsResponse_DeleteAclsFilterResult(Error.NONE, None, rows)
