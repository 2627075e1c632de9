"""Metadata: topics that come into being because somebody asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


def mention(name: str, create: bool = True) -> Any:
    return m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=name)], create)


def test_a_topic_made_by_asking_is_there_from_the_next_request_on(world: Any) -> None:
    (first,), (then,) = world.call(mention("new"), 9).topics, world.call(mention("new"), 9).topics
    assert (first.error_code, first.partitions) == (Error.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert (then.error_code, len(then.partitions)) == (Error.NONE, world.node.settings["num.partitions"])


def test_who_looks_whether_a_topic_is_gone_does_not_see_the_one_that_he_makes(world: Any) -> None:
    old = world.create("t")
    world.call(m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState(name="t")]), 6)
    assert world.call(mention("t"), 9).topics[0].partitions == []
    assert world.call(mention("t", create=False), 12).topics[0].topic_id != old


def test_a_topic_is_made_only_where_both_sides_want_it(world: Any) -> None:
    assert world.call(mention("never", create=False), 9).topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert "never" not in world.node.cluster.topics


@pytest.mark.parametrize("request_of", [lambda: m.MetadataRequest([]), m.DescribeClusterRequest])
def test_the_controller_that_clients_are_told_of_is_a_live_broker(world: Any, request_of: Any) -> None:
    """They wait a minute for one that is not in the list: one that has just started, and does not know it is live."""
    assert world.call(request_of()).controller_id == 1
    world.change(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch_of(world), fenced=1))
    assert (world.call(request_of()).controller_id, world.call(request_of()).brokers) == (-1, [])
    there = [m.RegisterBrokerRecord_BrokerEndpoint("PLAINTEXT", "127.0.0.1", 9093, 0)]
    world.change(m.RegisterBrokerRecord(broker_id=2, broker_epoch=50, end_points=there, fenced=False))
    assert world.call(request_of()).controller_id == 2
    world.change(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch_of(world), fenced=-1))
    assert world.call(request_of()).controller_id == 1


def epoch_of(world: Any) -> int:
    return world.node.cluster.brokers[1].epoch
