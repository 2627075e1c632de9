"""The requests of the suite: those of tests/broker/authorization/permissions.py, and those that list or need more.

Each is sent in every version that can carry it. None of them changes anything for the others, allowed or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Unwritable, WireError
from tests.broker.authorization.permissions import rows

# The groups of these would come to be when they are allowed, and change the answers to others: they have their own.
OWN_GROUPS = {"ConsumerGroupHeartbeat": "gc", "ShareGroupHeartbeat": "gs", "StreamsGroupHeartbeat": "gt"}


def requests(topic_id: bytes) -> list[Any]:
    """Return each request once, in a fixed order."""
    found: dict[str, Any] = {}
    for request, *_ in [*rows(topic_id), *((one,) for one in more(topic_id))]:
        name = request.SCHEMA.name.removesuffix("Request")
        if name in OWN_GROUPS:
            request.group_id = OWN_GROUPS[name]
        found.setdefault(repr(request), request)
    return list(found.values())


def more(topic_id: bytes) -> Iterator[Any]:
    """Yield requests that list what there is, name several things, or say who asks."""
    yield m.MetadataRequest(None)
    yield m.MetadataRequest(None, False, True, True)
    yield m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name=name) for name in ("t", "u", "none")], False)
    yield m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="new")], True)
    yield m.ListGroupsRequest()
    yield m.ListTransactionsRequest()
    yield m.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield m.DescribeGroupsRequest(["g", "h"], True)
    yield m.DescribeTopicPartitionsRequest([])
    yield m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"])
    yield m.InitProducerIdRequest(None, 1000)
    wanted = [m.FetchRequest_FetchPartition(partition=0)]
    yield m.FetchRequest(replica_id=1, topics=[m.FetchRequest_FetchTopic("t", partitions=wanted)])
    at = m.ListOffsetsRequest_ListOffsetsPartition(0, -1, -1)
    yield m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequest_ListOffsetsTopic(name, [at]) for name in ("t", "u")])
    part = m.ProduceRequest_PartitionProduceData(0, b"x")
    names = [m.ProduceRequest_TopicProduceData(name, partition_data=[part]) for name in ("t", "u")]
    yield m.ProduceRequest(None, -1, 1000, names)
    yield m.ProduceRequest("x", -1, 1000, names[:1])
    topic = m.CreateTopicsRequest_CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    yield m.CreateTopicsRequest([topic], 1000, True)
    yield m.CreateTopicsRequest([topic, m.CreateTopicsRequest_CreatableTopic("t", 1, 1)], 1000, True)
    count = m.CreatePartitionsRequest_CreatePartitionsTopic("t", 2, None)
    yield m.CreatePartitionsRequest([count], 1000, True)
    yield m.DeleteTopicsRequest(topic_names=["none", "also-none"])
    yield m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState(None, b"n" * 16)])
    yield m.OffsetFetchRequest("g", None)
    yield m.DescribeLogDirsRequest([m.DescribeLogDirsRequest_DescribableLogDirTopic("t", [0])])
    yield m.DescribeDelegationTokenRequest(None)
    yield m.CreateDelegationTokenRequest("User", "somebody", [], -1)
    yield m.RenewDelegationTokenRequest(b"x" * 64, -1)
    yield m.ExpireDelegationTokenRequest(b"x" * 64, -1)
    yield m.ApiVersionsRequest("suite", "1")
    yield m.GetTelemetrySubscriptionsRequest(b"c" * 16)
    yield m.EnvelopeRequest(b"", b"", b"\x7f\0\0\1")


def versions(request: Any) -> Iterator[int]:
    """Yield the versions in which a request arrives as it was meant."""
    first, last = request.SCHEMA.versions
    for version in range(first, last + 1):
        try:
            frame = frames.request_frame(request, version, 1, "c")
            data = memoryview(frame)[4:]
            back = codec.decode(type(request), version, data, frames.request_header(data)[-1])
        except (
            WireError,
            Unwritable,
            AttributeError,
            TypeError,
        ):  # it has a field, or a null, that this version cannot carry
            continue
        if plain(back) == plain(request):
            yield version


def plain(value: Any) -> Any:
    """Return a message as tuples, in which a list and a tuple, bytes and a view of them, are the same."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, memoryview):
        return bytes(value)
    return tuple(plain(getattr(value, name)) for name in value.__slots__) if hasattr(value, "__slots__") else value
