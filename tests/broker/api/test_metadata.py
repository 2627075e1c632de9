"""Metadata: topics that come into being because somebody asks for them."""

from __future__ import annotations

from typing import Any

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
