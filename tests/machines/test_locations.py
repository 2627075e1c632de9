"""Which partitions lie on a broker: what the image keeps up must be what a look at all partitions finds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.locations import Locations
from moldau.wire import messages as m

IDS = [bytes([number] * 16) for number in range(3)]
BROKERS = st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True)
TOPICS = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("create"), TOPICS, BROKERS),
    st.tuples(st.just("place"), TOPICS, BROKERS),
    st.tuples(st.just("move"), TOPICS, BROKERS),
    st.tuples(st.just("lead"), TOPICS, st.sampled_from((-1, 1, 2))),
    st.tuples(st.just("make eligible"), TOPICS, BROKERS),
    st.tuples(st.just("clear"), TOPICS, st.none()),
    st.tuples(st.just("delete"), TOPICS, st.none()),
)


def record_of(image: Cluster, what: str, number: int, value: Any) -> Any:
    """The record of a step, or None where it makes no sense."""
    name, topic_id = f"t{number}", IDS[number]
    if what == "create":
        return None if name in image.topics else m.TopicRecord(name, topic_id)
    if name not in image.topics:
        return None
    if what == "place":
        return m.PartitionRecord(0, topic_id, replicas=value, isr=value, leader=value[0])
    if what == "clear":
        return m.ClearElrRecord(name)
    if what == "delete":
        return m.RemoveTopicRecord(topic_id)
    if not image.topics[name].partitions:
        return None
    fields = {"move": "replicas", "lead": "leader", "make eligible": "eligible_leader_replicas"}
    return m.PartitionChangeRecord(0, topic_id, **{fields[what]: value})


def found(locations: Locations) -> dict[int, set[tuple[str, int]]]:
    named = {
        broker: {(topic.name, part.index) for topic, part in places.values()}
        for broker, places in locations.by_broker.items()
    }
    return {broker: places for broker, places in named.items() if places}


@given(st.lists(STEPS, max_size=30))
def test_locations_follow_every_change(steps: list[tuple[str, int, Any]]) -> None:
    image = Cluster()
    assert list(image.partitions_of(1)) == []
    for step in steps:
        record = record_of(image, *step)
        if record is not None:
            image.replay(record)
            assert image.locations is not None
            assert found(image.locations) == found(Locations(image.topics.values()))


def test_those_without_a_leader_are_found() -> None:
    image = Cluster()
    image.replay(m.TopicRecord("t", IDS[0]))
    image.replay(m.PartitionRecord(0, IDS[0], replicas=[1, 2], isr=[1, 2], leader=1))
    assert not list(image.partitions_of(-1))
    image.replay(m.PartitionChangeRecord(0, IDS[0], leader=-1))
    assert [(topic.name, part.index) for topic, part in image.partitions_of(-1)] == [("t", 0)]
    assert [part.index for _, part in image.partitions_of(2)] == [0]


def test_an_image_that_nobody_asks_keeps_nothing() -> None:
    image = Cluster()
    image.replay(m.TopicRecord("t", IDS[0]))
    image.replay(m.PartitionRecord(0, IDS[0], replicas=[1], isr=[1], leader=1))
    assert image.locations is None
