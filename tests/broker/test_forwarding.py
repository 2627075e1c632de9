"""Requests that are the controller's to answer: what is looked at first, and how they are refused if it does not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.connection import Connection
from moldau.broker.forwarding import FORWARDED, forwarded, is_of_former_controller, refusal
from moldau.machines.effects import Promise
from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, TOPIC
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.schema import Field, Struct
from tests.broker.conftest import World

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


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_each_response_of_a_controller_that_was_replaced_is_recognized(key: int, version: int) -> None:
    cls = m.request_class(key)
    request = cls(**filled(cls.SCHEMA))
    assert is_of_former_controller(refusal(request, version, Error.NOT_CONTROLLER))
    assert not is_of_former_controller(refusal(request, version, LATE))


def test_who_asks_a_controller_that_is_replaced_gets_the_answer_of_the_next(tmp_path: Path) -> None:
    world, controller = World(tmp_path), Controller()
    world.node.membership = SimpleNamespace(call=controller.call)
    world.node.controller = SimpleNamespace()
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(TOPIC, "t", [])
    request = m.IncrementalAlterConfigsRequest([resource])
    handle = forwarded(44, lambda *_: refusal(request, 1, Error.NOT_CONTROLLER))
    answer = handle(world.node, Connection(1), request, 1)
    assert [Error(row.error_code) for row in answer.responses] == [Error.NONE]
    assert controller.seen == [(TOPIC, "t")]


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


class Controller:
    """It says yes to every change of settings, and remembers the resources."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def call(self, envelope: m.EnvelopeRequest, timeout_ms: float) -> Promise:
        _, version, _, _, position = frames.request_header(memoryview(envelope.request_data))
        request = codec.decode(m.IncrementalAlterConfigsRequest, version, memoryview(envelope.request_data), position)
        row = m.IncrementalAlterConfigsResponse_AlterConfigsResourceResponse
        rows = [row(0, None, one.resource_type, one.resource_name) for one in request.resources]
        self.seen += [(one.resource_type, one.resource_name) for one in request.resources]
        parts = frames.response_frame(44, version, 0, m.IncrementalAlterConfigsResponse(responses=rows))
        promise = Promise(lambda error: None)
        promise.resolve(m.EnvelopeResponse(b"".join(parts)[4:], 0))
        return promise


def alter(world: World, *resources: tuple[int, str, str, str | None]) -> tuple[list[tuple[int, str]], dict[str, Error]]:
    """Change settings of a broker that is no controller; returns what reached the controller, and all answers."""
    controller = Controller()
    world.node.membership = SimpleNamespace(call=controller.call, forwarding=forwarded, is_open=True)
    world.node.routes.clear()
    setting = m.IncrementalAlterConfigsRequest_AlterableConfig
    rows = [
        m.IncrementalAlterConfigsRequest_AlterConfigsResource(kind, name, [setting(key, 0 if value else 1, value)])
        for kind, name, key, value in resources
    ]
    try:
        answers = world.call(m.IncrementalAlterConfigsRequest(rows), 1).responses
    finally:
        world.node.membership = None
    return controller.seen, {f"{row.resource_type} {row.resource_name}": Error(row.error_code) for row in answers}


def test_settings_of_a_broker_are_checked_before_the_controller_takes_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    seen, answers = alter(
        world,
        (TOPIC, "t", "retention.ms", "1000"),
        (BROKER, "1", "message.max.bytes", "-5"),
        (BROKER, "2", "message.max.bytes", "5000"),
        (BROKER, "", "log.cleaner.threads", "2"),
        (BROKER_LOGGER, "1", "moldau.broker.replicas", None),
    )
    assert seen == [(TOPIC, "t"), (BROKER, "")]
    assert answers == {
        "2 t": Error.NONE,
        "4 1": Error.INVALID_REQUEST,
        "4 2": Error.INVALID_REQUEST,
        "4 ": Error.NONE,
        "8 1": Error.NONE,
    }
    seen, answers = alter(world, (BROKER, "1", "node.id", "7"))
    assert (seen, answers) == ([], {"4 1": Error.INVALID_REQUEST})


@pytest.mark.parametrize(
    ("kind", "name", "setting", "value"),
    [
        (BROKER, "", "message.max.bytes", "-5"),
        (BROKER, "1", "node.id", "77"),
        (BROKER, "1", "no.such.setting", "1"),
        (TOPIC, "t", "min.insync.replicas", "many"),
        (TOPIC, "t", "compression.type", "of.a.later.release"),
        (TOPIC, "t", "no.such.setting", "1"),
    ],
)
def test_settings_that_make_no_sense_here_are_ignored(
    tmp_path: Path, kind: int, name: str, setting: str, value: str
) -> None:
    """Another broker has let the controller take them."""
    world = World(tmp_path)
    world.create("t")
    world.change(m.ConfigRecord(kind, name, setting, value))
    world.restart()
    assert world.node.settings["node.id"] == 1
    assert world.node.settings["message.max.bytes"] > 0
    assert world.node.replicas.by_name["t"][0].min_insync_replicas == 1
