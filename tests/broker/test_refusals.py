"""Answers that say no to a whole request."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.broker.api import known_to_controllers
from moldau.broker.controller import ANYBODY
from moldau.broker.forwarding import refusal
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@pytest.mark.parametrize("key", sorted(known_to_controllers().keys() - ANYBODY))
def test_a_controller_that_is_not_the_active_one_can_refuse_everything(key: int) -> None:
    request = m.request_class(key)()
    version = request.SCHEMA.versions[1]
    codec.encode(refusal(request, version, Error.NOT_CONTROLLER), version)


def test_every_topic_of_a_request_is_refused() -> None:
    request = m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic(name, 1, 1) for name in ("a", "b")])
    rows = refusal(request, 7, Error.NOT_CONTROLLER).topics
    assert [(row.name, row.error_code) for row in rows] == [("a", Error.NOT_CONTROLLER), ("b", Error.NOT_CONTROLLER)]


def test_what_was_decided_on_changes_that_are_lost_is_not_said(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic may be unknown because of a removal that another controller has never heard of."""

    def deposed(*_: Any, **__: Any) -> None:
        raise Refused(Error.NOT_CONTROLLER, "another one leads")

    world.create("t")
    rows = [m.DeleteTopicsRequest_DeleteTopicState(name) for name in ("t", "unknown")]
    monkeypatch.setattr(world.node.metadata, "append", deposed)
    answer = world.call(m.DeleteTopicsRequest(rows))
    assert {row.name: row.error_code for row in answer.responses} == dict.fromkeys(
        ("t", "unknown"), Error.NOT_CONTROLLER
    )
