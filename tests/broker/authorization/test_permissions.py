"""Each API asks for the operations that Apache Kafka asks for: no more, no less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moldau.broker import authorization
from moldau.broker.api import load
from moldau.machines.metadata.acls import ALL, CLUSTER, CLUSTER_NAME, GROUP, OPERATIONS, TOPIC, TRANSACTIONAL_ID
from moldau.machines.metadata.authorizer import IMPLIED_BY
from moldau.wire import messages as m
from tests.broker.authorization.conftest import Realm
from tests.broker.authorization.permissions import MEMBER, rows

NAMES = {TOPIC: ("t", "none"), GROUP: ("g",), TRANSACTIONAL_ID: ("x",), CLUSTER: (CLUSTER_NAME,)}


def codes(answer: Any) -> Iterator[int]:
    """Every error code in an answer."""
    for name in answer.__slots__:
        value = getattr(answer, name)
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, list | tuple):
            for item in value:
                if hasattr(item, "__slots__"):
                    yield from codes(item)


def suffices(operation: int | tuple[int, ...]) -> set[int]:
    """The operations that, if allowed, let a request through."""
    asked = operation if isinstance(operation, tuple) else (operation,)
    return {ALL, *asked}.union(*(IMPLIED_BY.get(one, ()) for one in asked))


@pytest.mark.parametrize("part", range(4))
def test_an_api_is_refused_unless_its_operation_is_allowed(realm: Realm, part: int):
    node = realm.world.node
    for request, version, kind, operation in rows(node.cluster.topics["t"].id)[part::4]:
        besides = [(other, "*", ALL) for other in (TOPIC, GROUP, TRANSACTIONAL_ID) if other != kind]
        for granted in OPERATIONS:
            realm.have_only(*besides, *((kind, name, granted) for name in NAMES[kind]))
            node.share_sessions.open("g", MEMBER, 0, ())  # which an acknowledgement needs
            refused = authorization.DENIED[kind] in codes(realm.ask(request, version))
            what = f"{request.SCHEMA.name} v{version}, resource type {kind}, operation {granted}"
            assert refused == (granted not in suffices(operation)), what


def test_every_api_has_a_guard():
    authorization.load()
    assert not load().keys() - authorization.GUARDS.keys()
    known = {m.message(name).SCHEMA.key for name in m.names() if name.endswith("Request")}
    assert not authorization.GUARDS.keys() - known
