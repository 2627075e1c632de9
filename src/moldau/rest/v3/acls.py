"""Access control lists: search, add, remove."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from moldau.client import CONTROLLER
from moldau.client import messages as m
from moldau.http import Answer, Endpoint, HttpError
from moldau.rest.endpoints import Call
from moldau.rest.schemas import OPERATION, PATTERN, PERMISSION, RESOURCE

# Field -> its words, each at the place of its number on the wire.
WORDS = {
    "resource_type": RESOURCE,
    "pattern_type": PATTERN,
    "operation": OPERATION,
    "permission": PERMISSION,
}
NUMBERS = {field: {word: number for number, word in enumerate(text[1:-1].split(","))} for field, text in WORDS.items()}
FIELDS = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")


def number(field: str, word: str | None) -> int:
    found = NUMBERS[field].get((word or "ANY").upper())
    if found is None:
        raise HttpError(400, f"{field} is one of {', '.join(NUMBERS[field])}.")
    return found


def word(field: str, value: int) -> str:
    words = list(NUMBERS[field])
    return words[value] if value < len(words) else "UNKNOWN"


def wanted(call: Call) -> tuple[Any, ...]:
    """The filter in a query, in the order of FIELDS."""
    return tuple(
        number(field, call.query.get(field)) if field in NUMBERS else call.query.get(field) for field in FIELDS
    )


def shown(call: Call, *values: Any) -> dict[str, Any]:
    fields = {
        field: word(field, value) if field in NUMBERS else value for field, value in zip(FIELDS, values, strict=True)
    }
    metadata = {"self": f"{call.url('acls')}?{urlencode(fields)}"}
    return {"kind": "KafkaAcl", "metadata": metadata, "cluster_id": call.kafka.cluster_id, **fields}


def search(call: Call) -> dict[str, Any]:
    answer = call.kafka.send(m.DescribeAclsRequest(*wanted(call)))
    found = [
        shown(
            call,
            row.resource_type,
            row.resource_name,
            row.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for row in answer.resources
        for acl in row.acls
    ]
    return call.listing("KafkaAclList", found)


def create(call: Call) -> Answer:
    return _create(call, [call.body])


def create_many(call: Call) -> Answer:
    return _create(call, call.body["data"])


def _create(call: Call, rows: list[dict[str, Any]]) -> Answer:
    for row in rows:
        for field in NUMBERS:
            if row[field] in ("ANY", "UNKNOWN", "MATCH"):
                raise HttpError(400, f"{field} of a new ACL cannot be {row[field]}.")
    values: list[Any] = [
        [number(field, row[field]) if field in NUMBERS else row[field] for field in FIELDS] for row in rows
    ]
    call.kafka.send(m.CreateAclsRequest([m.CreateAclsRequest_AclCreation(*each) for each in values]), CONTROLLER)
    return Answer(201)


def delete(call: Call) -> dict[str, Any]:
    for field in NUMBERS:
        if (call.query.get(field) or "UNKNOWN").upper() == "UNKNOWN":
            raise HttpError(400, f"{field} cannot be left out or UNKNOWN.")
    answer = call.kafka.send(m.DeleteAclsRequest([m.DeleteAclsRequest_DeleteAclsFilter(*wanted(call))]), CONTROLLER)
    found = [
        shown(
            call,
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for acl in answer.filter_results[0].matching_acls
    ]
    return {"data": found}


ALL = "/v3/clusters/{cluster_id}/acls"
ACLS = (
    Endpoint("GET", ALL, search, "ACLs that fit a filter.", "AclList", query=FIELDS),
    Endpoint("POST", ALL, create, "Add one.", takes="NewAcl", status=201),
    Endpoint("DELETE", ALL, delete, "Remove those that fit a filter.", "Deleted", query=FIELDS),
    Endpoint("POST", f"{ALL}:batch", create_many, "Add some.", takes="NewAcls", status=201),
)
