"""Answers that say no to a whole request."""

from __future__ import annotations

import pytest

from moldau.broker.api import known_to_controllers
from moldau.broker.controller import ANYBODY
from moldau.broker.forwarding import refusal
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error


@pytest.mark.parametrize("key", sorted(known_to_controllers().keys() - ANYBODY))
def test_a_controller_that_is_not_the_active_one_can_refuse_everything(key: int) -> None:
    request = m.request_class(key)()
    version = request.SCHEMA.versions[1]
    codec.encode(refusal(request, version, Error.NOT_CONTROLLER), version)


def test_every_topic_of_a_request_is_refused() -> None:
    request = m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic(name, 1, 1) for name in ("a", "b")])
    rows = refusal(request, 7, Error.NOT_CONTROLLER).topics
    assert [(row.name, row.error_code) for row in rows] == [("a", Error.NOT_CONTROLLER), ("b", Error.NOT_CONTROLLER)]
