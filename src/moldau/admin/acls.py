"""ACLs: who may do what, in the words of Kafka's tools and the numbers of the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from moldau.client import CONTROLLER, Client, check
from moldau.client import messages as m

ANY, UNKNOWN = "ANY", "UNKNOWN"
RESOURCES = {"ANY": 1, "TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5, "DELEGATION_TOKEN": 6, "USER": 7}
PATTERNS = {"ANY": 1, "MATCH": 2, "LITERAL": 3, "PREFIXED": 4}
OPERATIONS = {
    "ANY": 1, "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12, "CREATE_TOKENS": 13, "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}  # fmt: skip
PERMISSIONS = {"ANY": 1, "DENY": 2, "ALLOW": 3}
CLUSTER_NAME = "kafka-cluster"


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """A rule: a principal from a host is allowed or denied an operation on a resource."""

    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rules are meant; None and ANY stand for all."""

    resource: str = ANY
    name: str | None = None
    pattern: str = ANY
    principal: str | None = None
    host: str | None = None
    operation: str = ANY
    permission: str = ANY


def described(client: Client, wanted: Filter) -> list[Acl]:
    """Return the rules that match a filter, in order."""
    answer = check(client.send(m.DescribeAclsRequest(*_numbers(wanted))))
    return sorted(
        _acl(row.resource_type, row.resource_name, row.pattern_type, one)
        for row in answer.resources
        for one in row.acls
    )


def create(client: Client, rules: Iterable[Acl]) -> None:
    """Add rules; ClientError for the first that is refused (the others may have been added)."""
    rows = [m.CreateAclsRequest_AclCreation(*_numbers(one)) for one in rules]
    check(client.send(m.CreateAclsRequest(rows), CONTROLLER))


def delete(client: Client, filters: Iterable[Filter]) -> list[Acl]:
    """Delete the rules that match filters, and return them."""
    rows = [m.DeleteAclsRequest_DeleteAclsFilter(*_numbers(one)) for one in filters]
    answer = check(client.send(m.DeleteAclsRequest(rows), CONTROLLER))
    return sorted(
        _acl(one.resource_type, one.resource_name, one.pattern_type, one)
        for result in answer.filter_results
        for one in result.matching_acls
    )


def _numbers(one: Acl | Filter) -> tuple[Any, ...]:
    return (
        _number(RESOURCES, one.resource),
        one.name,
        _number(PATTERNS, one.pattern),
        one.principal,
        one.host,
        _number(OPERATIONS, one.operation),
        _number(PERMISSIONS, one.permission),
    )


def _acl(resource: int, name: str, pattern: int, row: Any) -> Acl:
    operation, permission = _word(OPERATIONS, row.operation), _word(PERMISSIONS, row.permission_type)
    what = _word(RESOURCES, resource), name, _word(PATTERNS, pattern)
    return Acl(*what, row.principal, row.host, operation, permission)


def _number(table: dict[str, int], word: str) -> int:
    return 0 if word == UNKNOWN else table[word]


def _word(table: dict[str, int], number: int) -> str:
    return next((word for word, known in table.items() if known == number), UNKNOWN)
