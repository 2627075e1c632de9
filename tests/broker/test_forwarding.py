"""Requests that no controller has answered are refused, each in the way of its response."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.forwarding import FORWARDED, refusal
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.schema import Field, Struct

LATE = Error.REQUEST_TIMED_OUT
VERSIONS = [
    (key, version)
    for key in sorted(FORWARDED)
    for version in range(m.request_class(key).SCHEMA.versions[0], m.request_class(key).SCHEMA.versions[1] + 1)
]


def filled(schema: Struct | Any) -> dict[str, Any]:
    """Values for all arrays of a message: two items each."""
    return {field.name: [item(field, number) for number in range(2)] for field in schema.fields if field.is_array}


def item(field: Field, number: int) -> Any:
    if field.struct is None:
        return f"n{number}" if field.item == "string" else number
    names = {one.name: f"n{number}" for one in field.struct.fields if one.type == "string"}
    return getattr(m, field.struct.name)(**(names | filled(field.struct)))


def errors(value: Any, schema: Any) -> list[int]:
    """Return all error codes of a response, of the whole and of its rows."""
    found = [value.error_code] if hasattr(value, "error_code") else []
    for field in schema.fields:
        if field.is_array and field.struct is not None:
            for row in getattr(value, field.name) or ():
                found += errors(row, field.struct)
    return found


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_response_can_say_that_no_controller_has_answered(key: int, version: int) -> None:
    cls = m.request_class(key)
    request = cls(**filled(cls.SCHEMA))
    response = m.response_class(key)
    sent = codec.encode(refusal(request, version, LATE), version)
    seen = codec.decode(response, version, memoryview(bytes(sent)))
    assert LATE in errors(seen, response.SCHEMA)


def refused(request: Any, version: int) -> Any:
    return refusal(request, version, LATE)


def test_each_topic_is_named_with_the_error() -> None:
    created = refused(m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic(name) for name in ("a", "b")]), 7)
    assert [(row.name, row.error_code, row.error_message) for row in created.topics] == [
        ("a", LATE, LATE.message),
        ("b", LATE, LATE.message),
    ]
    deleted = refused(m.DeleteTopicsRequest(topic_names=["a", "b"]), 5)
    assert [(row.name, row.error_code) for row in deleted.responses] == [("a", LATE), ("b", LATE)]
    by_id = refused(m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest_DeleteTopicState(None, bytes(15) + b"1")]), 6)
    assert [(row.name, row.topic_id, row.error_code) for row in by_id.responses] == [(None, bytes(15) + b"1", LATE)]


def test_resources_users_and_entities_are_named_with_the_error() -> None:
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(2, "t", [])
    altered = refused(m.IncrementalAlterConfigsRequest([resource]), 1)
    assert [(row.resource_type, row.resource_name, row.error_code) for row in altered.responses] == [(2, "t", LATE)]
    gone = m.AlterUserScramCredentialsRequest_ScramCredentialDeletion
    users = refused(m.AlterUserScramCredentialsRequest([gone("u", 1), gone("u", 2), gone("v", 1)], []), 0)
    assert [(row.user, row.error_code) for row in users.results] == [("u", LATE), ("v", LATE)]
    entity = m.AlterClientQuotasRequest_EntityData("user", "u")
    quotas = refused(m.AlterClientQuotasRequest([m.AlterClientQuotasRequest_EntryData([entity], [])]), 1)
    ((row,), (named,)) = quotas.entries, quotas.entries[0].entity
    assert (row.error_code, named.entity_type, named.entity_name) == (LATE, "user", "u")
