"""DescribeAcls (key 29), v1-3: the access control entries that fit a filter, by what they are about.

v1 prefixed patterns (KIP-290).  v2 is flexible.  v3 users as resources (KIP-373).
Deviates: a filter with a code of 0 finds nothing, as one with any other code that does not exist; Kafka hangs up.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.acls import Filter, describe
from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_AUTHORIZER = "This broker has no authorizer: set authorizer.class.name."


@api(29, versions=(1, 3))
def describe_acls(node: Node, connection: Connection, request: m.DescribeAclsRequest, version: int) -> Answer:
    if node.authorizer is None:
        return m.DescribeAclsResponse(error_code=Error.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    found: dict[tuple[int, str, int], list[Any]] = {}
    for acl in describe(node.cluster.acls, filter_of(request)):
        row = m.DescribeAclsResponse_AclDescription(acl.principal, acl.host, acl.operation, acl.permission)
        found.setdefault(acl[:3], []).append(row)
    resources = [m.DescribeAclsResponse_DescribeAclsResource(*key, rows) for key, rows in found.items()]
    return m.DescribeAclsResponse(resources=resources)


def filter_of(asked: Any) -> Filter:
    """The filter in a request to describe or delete."""
    return Filter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
