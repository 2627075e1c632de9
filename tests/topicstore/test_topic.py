"""Waiting for a topic that somebody else creates."""

from __future__ import annotations

from moldau.client import Client
from moldau.testing import Broker
from moldau.topicstore import await_topic, exists
from tests.services import unique


def test_a_topic_is_awaited_and_not_created(store_broker: Broker) -> None:
    name, settings = unique("awaited"), {"bootstrap.servers": store_broker.bootstrap_servers}
    assert not await_topic(settings, name, lambda _: True)
    with Client(settings) as client:
        assert not exists(client, name)
    looks = list[float]()

    def create_later(seconds: float) -> bool:
        looks.append(seconds)
        if len(looks) == 2:
            store_broker.create_topic(name)
        return False

    assert await_topic(settings, name, create_later) and len(looks) == 2
