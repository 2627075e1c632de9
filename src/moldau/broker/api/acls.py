"""Access control entries: DescribeAcls (key 29), CreateAcls (key 30) and DeleteAcls (key 31), each v1-3.

DescribeAcls lists the entries that fit a filter, by what they are about. CreateAcls adds entries; one that is there
already counts as created. DeleteAcls removes the entries that fit filters, and says which they were.

v1 prefixed patterns (KIP-290).  v2 is flexible.  v3 users as resources (KIP-373).
Deviates: a filter with a code of 0 is treated as one with any other code that does not exist: it finds nothing to
describe, and is refused in a deletion; Kafka hangs up. More entries at once than may be deleted are POLICY_VIOLATION
(Kafka: UNKNOWN_SERVER_ERROR). A new entry with a code that only a filter may have (any, match), or with a code of 0, is
refused by itself with INVALID_REQUEST; Kafka fails the whole request, or hangs up.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.broker.topics import fresh_id
from moldau.machines.metadata.acls import Acl, Filter, create, delete, describe
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_AUTHORIZER = Refused(Error.SECURITY_DISABLED, "This broker has no authorizer: set authorizer.class.name.")


@api(29, versions=(1, 3))
def describe_acls(node: Node, connection: Connection, request: m.DescribeAclsRequest, version: int) -> Answer:
    if node.authorizer is None:
        return m.DescribeAclsResponse(error_code=NO_AUTHORIZER.error, error_message=NO_AUTHORIZER.message)
    by_resource: dict[tuple[int, str, int], list[Any]] = {}
    for acl in describe(node.cluster.acls, filter_of(request)):
        row = m.DescribeAclsResponse_AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        by_resource.setdefault(acl[:3], []).append(row)
    resources = [m.DescribeAclsResponse_DescribeAclsResource(*key, rows) for key, rows in by_resource.items()]
    return m.DescribeAclsResponse(resources=resources)


@api(30, versions=(1, 3))
async def create_acls(node: Node, connection: Connection, request: m.CreateAclsRequest, version: int) -> Answer:
    if node.authorizer is None:
        return m.CreateAclsResponse(results=[created_row(NO_AUTHORIZER)] * len(request.creations))
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
    rows = [created_row(problem) for problem in problems]
    return await proposal.answer(m.CreateAclsResponse(results=rows), rows)


def created_row(problem: Refused | None) -> Any:
    if problem is None:
        return m.CreateAclsResponse_AclCreationResult()
    return m.CreateAclsResponse_AclCreationResult(problem.error, problem.message)


@api(31, versions=(1, 3))
async def delete_acls(node: Node, connection: Connection, request: m.DeleteAclsRequest, version: int) -> Answer:
    if node.authorizer is None:
        return m.DeleteAclsResponse(filter_results=[deleted_row(NO_AUTHORIZER)] * len(request.filters))
    proposal = node.metadata.propose()
    records, outcomes = delete(proposal.image.acls, [filter_of(one) for one in request.filters])
    proposal.add(records)
    rows = [deleted_row(outcome) for outcome in outcomes]
    return await proposal.answer(m.DeleteAclsResponse(filter_results=rows), rows)


def deleted_row(outcome: list[Acl] | Refused) -> Any:
    """Make the row for what one filter did."""
    if isinstance(outcome, Refused):
        return m.DeleteAclsResponse_DeleteAclsFilterResult(outcome.error, outcome.message)
    rows = [m.DeleteAclsResponse_DeleteAclsMatchingAcl(Error.NONE, None, *acl) for acl in outcome]
    return m.DeleteAclsResponse_DeleteAclsFilterResult(Error.NONE, None, rows)


def filter_of(asked: m.DescribeAclsRequest | m.DeleteAclsRequest_DeleteAclsFilter) -> Filter:
    """Return the filter in a request to describe or delete."""
    return Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
