"""Every API of a broker answers in every version that it says it answers."""

import pytest

from moldau.broker.api import CONTROLLERS_ONLY, load
from moldau.wire import messages as m
from moldau.wire.records import Record, build

CASES = [
    (key, version)
    for key, api in sorted(load().items())
    if key not in CONTROLLERS_ONLY
    for version in range(api.low, api.high + 1)
]
NO_ID = bytes(16)


def by_name(name, topic_id, since, version):
    return {"topic_id": topic_id} if version >= since else {name: "t"}


def requests(key: int, version: int, topic_id: bytes):
    """A request that touches a partition with records, where the API has such a thing."""
    batch = bytes(build([Record(0, 1, b"k", b"v")]))
    match key:
        case 0:
            data = m.ProduceRequest_PartitionProduceData(0, batch)
            topic = m.ProduceRequest_TopicProduceData(**by_name("name", topic_id, 13, version), partition_data=[data])
            return m.ProduceRequest(None, -1, 1000, [topic])
        case 1:
            wanted = m.FetchRequest_FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            topic = m.FetchRequest_FetchTopic(**by_name("topic", topic_id, 13, version), partitions=[wanted])
            return m.FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic])
        case 2:
            rows = [m.ListOffsetsRequest_ListOffsetsPartition(0, timestamp=-1)]
            return m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequest_ListOffsetsTopic("t", rows)])
        case 18:
            software = {"client_software_name": "test", "client_software_version": "1"} if version >= 3 else {}
            return m.ApiVersionsRequest(**software)
        case 23:
            rows = [m.OffsetForLeaderEpochRequest_OffsetForLeaderPartition(0, -1, 0)]
            topic = m.OffsetForLeaderEpochRequest_OffsetForLeaderTopic("t", rows)
            return m.OffsetForLeaderEpochRequest(-2, [topic])
        case _:
            return m.request_class(key)()


@pytest.mark.parametrize(("key", "version"), CASES, ids=lambda value: str(value))
def test_each_version_is_answered(make_world, key, version):
    world = make_world(moldau_telemetry="true")
    topic_id = world.create("t")
    for request in (requests(0, 9, topic_id), requests(key, version, topic_id)):
        answer = world.call(request, 9 if request.SCHEMA.key == 0 and key else version)
        assert answer is not None
