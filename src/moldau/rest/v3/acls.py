"""Access control lists: search, add, remove."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any
from urllib.parse import urlencode

from moldau.admin import acls
from moldau.admin.acls import Acl, Filter
from moldau.http import ADMIN, Answer, Endpoint, HttpError
from moldau.rest.endpoints import Call
from moldau.rest.schemas import ACL_WORDS

# In the order of an Acl and a Filter.
FIELDS = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")


def filter_of(call: Call) -> Filter:
    """Return the filter in a query."""
    return Filter(*(_word(field, call.query.get(field)) for field in FIELDS))


def _word(field: str, given: str | None) -> Any:
    if field not in ACL_WORDS:
        return given
    word = (given or acls.ANY).upper()
    if word not in ACL_WORDS[field]:
        raise HttpError(400, f"{field} is one of {', '.join(ACL_WORDS[field])}.")
    return word


def _resource(call: Call, acl: Acl) -> dict[str, Any]:
    fields: dict[str, str] = dict(zip(FIELDS, astuple(acl), strict=True))
    metadata = {"self": f"{call.url('acls')}?{urlencode(fields)}"}
    return {"kind": "KafkaAcl", "metadata": metadata, "cluster_id": call.kafka.cluster_id, **fields}


def search(call: Call) -> dict[str, Any]:
    found = acls.described(call.kafka.client, filter_of(call))
    return call.listing("KafkaAclList", [_resource(call, acl) for acl in found])


def create(call: Call) -> Answer:
    return _create(call, [call.body])


def create_many(call: Call) -> Answer:
    return _create(call, call.body["data"])


def _create(call: Call, rows: list[dict[str, Any]]) -> Answer:
    for row in rows:
        for field in ACL_WORDS:
            if row[field] in ("ANY", "UNKNOWN", "MATCH"):
                raise HttpError(400, f"{field} of a new ACL cannot be {row[field]}.")
    acls.create(call.kafka.client, [Acl(*(row[field] for field in FIELDS)) for row in rows])
    return Answer(201)


def delete(call: Call) -> dict[str, Any]:
    for field in ACL_WORDS:
        if (call.query.get(field) or "UNKNOWN").upper() == "UNKNOWN":
            raise HttpError(400, f"{field} cannot be left out or UNKNOWN.")
    gone = acls.delete(call.kafka.client, [filter_of(call)])
    return {"data": [_resource(call, acl) for acl in gone]}


ALL = "/v3/clusters/{cluster_id}/acls"
ACLS = (
    Endpoint("GET", ALL, search, "ACLs that fit a filter.", "AclList", query=FIELDS),
    Endpoint("POST", ALL, create, "Add one.", takes="NewAcl", status=201, role=ADMIN),
    Endpoint("DELETE", ALL, delete, "Remove those that fit a filter.", "Deleted", query=FIELDS, role=ADMIN),
    Endpoint("POST", f"{ALL}:batch", create_many, "Add some.", takes="NewAcls", status=201, role=ADMIN),
)
