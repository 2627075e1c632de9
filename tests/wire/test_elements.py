"""No request makes a node read more elements than it allows: the worst frames that the table lets one build."""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from moldau.settings import Settings
from moldau.wire import messages as m
from moldau.wire import schema
from moldau.wire.codec import decode_from, encode
from moldau.wire.errors import WireError
from moldau.wire.frames import request_header
from moldau.wire.schema import Field, Message, Struct
from tests.wire.message_values import full
from tests.wire.worst_frames import REQUESTS, Frame, cases, charge, latest_refusal, widest

BOUND: int = Settings.load({})["moldau.request.max.elements"]
MOST_S, MOST_BYTES = 0.050, 10_000_000
SHARE = 100  # all versions of all messages are tried at a hundredth of the bound: the cost is linear in it
TRIES = 30
STEPS, STEPS_S = 20_000, 0.00045  # of a loop: the bounds are those of a machine that takes 45 million a second


def slowness() -> float:
    """How much slower than that machine this one is now, with whatever else it does; at least 1."""

    def measure() -> float:
        begin, total = time.process_time(), 0
        for number in range(STEPS):
            total += number
        return time.process_time() - begin

    return max(1.0, min(measure() for _ in range(3)) / STEPS_S)


def refused(frame: Frame, bound: int, share: int = 1) -> None:
    """The frame is refused for its elements, and that costs no more than this share of what it may."""
    cls, data = m.message(frame.spec.name), memoryview(frame.body())
    label = f"{frame.spec.name} v{frame.version} {'.'.join(f.name for f in frame.path)}"

    def attempt() -> float:
        begin = time.process_time()
        with pytest.raises(WireError, match=r"moldau\.request\.max\.elements"):
            decode_from(cls, frame.version, data, 0, bound)
        return time.process_time() - begin

    attempt()  # compiles the reader
    assert any(attempt() < MOST_S / share * slowness() for _ in range(TRIES)), label
    assert any(traced(attempt) < MOST_BYTES / share for _ in range(TRIES)), label


def traced(work: Callable[[], object]) -> int:
    """Return the most bytes held at once during some work, with what other threads of the process took meanwhile."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", REQUESTS)
def test_elements_of_a_request_are_bounded(name: str) -> None:
    spec = schema.message(name)
    for version, path in cases(name):
        frame = widest(spec, version, path, 3_000_000)
        assert charge(path[-1], version, frame.elements) > BOUND, "an element of more than a hundred bytes"
        refused(frame, BOUND, SHARE)


@pytest.mark.parametrize("name", REQUESTS)
def test_what_was_read_before_a_refusal_costs_little(name: str) -> None:
    spec = schema.message(name)
    for version, path in cases(name):
        frame = latest_refusal(spec, version, path, BOUND // SHARE)
        if frame is not None:
            refused(frame, BOUND // SHARE, SHARE)


@pytest.mark.parametrize(
    ("name", "array"),
    [("Fetch", "partitions"), ("WriteShareGroupState", "partitions"), ("StreamsGroupHeartbeat", "subtopologies")],
)
def test_the_largest_elements_are_refused_in_bounds_at_the_whole_bound(name: str, array: str) -> None:
    spec = schema.message(name + "Request")
    version, path = [case for case in cases(spec.name) if case[1][-1].name == array][-1]
    frame = latest_refusal(spec, version, path, BOUND)
    assert frame is not None
    refused(frame, BOUND)


@pytest.mark.parametrize("name", REQUESTS)
def test_unknown_tagged_fields_count(name: str) -> None:
    spec = schema.message(name)
    first = spec.versions[1] + 1 if spec.flexible is None else max(spec.flexible, spec.versions[0])
    for version in range(first, spec.versions[1] + 1):
        tags = b"\xe0\xa7\x12" + b"\x7f\0" * 300_000
        refused(Frame(spec, version, (), 0, tail=tags), BOUND, SHARE)


def test_tagged_fields_of_a_header_count() -> None:
    data = struct.pack(">hhih", 3, 12, 1, -1) + b"\x81\x80\x02" + b"\x7f\0" * 32769 + b"body"
    assert request_header(data, 32769)[-1] == len(data) - 4
    with pytest.raises(WireError, match=r"moldau\.request\.max\.elements"):
        request_header(data, 32768)


def count(owner: Message | Struct, value: Any, version: int) -> int:
    """Count by the message what a reader counts by the bytes."""
    here = [(field, getattr(value, field.name)) for field in owner.fields if field.at(version)]
    tags = sum(field.tag is not None and given != field.default for field, given in here)
    return tags + sum(count_field(field, given, version) for field, given in here)


def count_field(field: Field, given: Any, version: int) -> int:
    items: Iterable[Any] = given if field.is_array else [given]
    below = sum(count(field.struct, item, version) for item in items) if field.struct else 0
    return below + (charge(field, version, len(given)) if field.is_array else 0)


@pytest.mark.parametrize("name", REQUESTS)
def test_all_elements_count_and_nothing_else(name: str) -> None:
    spec, cls = schema.message(name), m.message(name)
    for version in range(spec.versions[0], spec.versions[1] + 1):
        value = full(spec, version)
        data, most = encode(value, version), count(spec, value, version)
        assert decode_from(cls, version, data, 0, most) == (value, len(data))
        if most:
            assert most < len(data), "a message of few bytes is read without counting"
            with pytest.raises(WireError, match=r"moldau\.request\.max\.elements"):
                decode_from(cls, version, data, 0, most - 1)


def wide_requests() -> dict[str, Any]:
    """What clients with ten thousand partitions send, each of another topic."""
    names = [f"topic-{number}" for number in range(10_000)]
    ids = [number.to_bytes(16) for number in range(10_000)]
    part, records = m.FetchRequest_FetchPartition(), memoryview(bytes(20))
    produced = [m.ProduceRequest_PartitionProduceData(0, records)]
    moved = m.AlterPartitionReassignmentsRequest_ReassignablePartition(0, [1, 2, 3])
    topic = m.CreateTopicsRequest_CreatableTopic
    configs = [m.CreateTopicsRequest_CreatableTopicConfig("retention.ms", "1")]
    offsets = [m.OffsetFetchRequest_OffsetFetchRequestTopics(topic_id=i, partition_indexes=[0]) for i in ids]
    return {
        "Fetch": m.FetchRequest(
            topics=[m.FetchRequest_FetchTopic(topic_id=i, partitions=[part]) for i in ids],
            forgotten_topics_data=[
                m.FetchRequest_ForgottenTopic(topic_id=i, partitions=[*range(40)]) for i in ids[:900]
            ],
        ),
        "OffsetFetch": m.OffsetFetchRequest(groups=[m.OffsetFetchRequest_OffsetFetchRequestGroup("g", topics=offsets)]),
        "Metadata": m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=name) for name in names]),
        "Produce": m.ProduceRequest(
            topic_data=[m.ProduceRequest_TopicProduceData(topic_id=i, partition_data=produced) for i in ids]
        ),
        "CreateTopics": m.CreateTopicsRequest([topic(name, 1, 1, [], configs) for name in names]),
        "AlterPartitionReassignments": m.AlterPartitionReassignmentsRequest(
            topics=[m.AlterPartitionReassignmentsRequest_ReassignableTopic(n, [moved] * 10) for n in names[:1000]]
        ),
    }


@pytest.mark.parametrize(("name", "request_"), wide_requests().items())
def test_a_request_about_ten_thousand_partitions_is_read(name: str, request_: Any) -> None:
    version = request_.SCHEMA.versions[1]
    data = encode(request_, version)
    assert len(data) > BOUND
    assert decode_from(type(request_), version, data, 0, BOUND)[0] == request_
