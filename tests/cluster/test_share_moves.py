"""A share group whose coordinator dies while a member acknowledges, on three nodes."""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.client import Client, check
from moldau.log.checkpoints import encode_id
from moldau.testing import cluster, eventually
from moldau.wire import messages as m

LEADER, ACCEPT = 1, 1
MEMBER = "a-member"


def coordinator(client: Client, key: str) -> int:
    """Return the node of the share coordinator of a partition; 0 while there is none."""
    (row,) = client.send(m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])).coordinators
    return 0 if row.error_code else row.node_id


def test_an_acknowledgement_outlasts_the_coordinator_that_was_to_store_it() -> None:
    with cluster(3) as made, Client({"bootstrap.servers": made.bootstrap_servers}) as client:
        settings: dict[str, Any] = {"bootstrap.servers": made.bootstrap_servers, "broker.address.family": "v4"}
        topic = NewTopic("t", 1, replica_assignment=[[LEADER, 2, 3]])
        admin = AdminClient(settings)
        admin.create_topics([topic])["t"].result(30)
        producer = Producer(settings)
        producer.produce("t", b"one", partition=0)
        assert producer.flush(30) == 0
        topic_id = client.topic("t").id
        groups = ((f"g{number}", f"g{number}:{encode_id(topic_id)}:0") for number in range(100))
        found = ((group, eventually(lambda key=key: coordinator(client, key))) for group, key in groups)
        group, stores = next((group, node) for group, node in found if node != LEADER)
        begin = m.InitializeShareGroupStateRequest_PartitionData(0, 0, 0)
        state = m.InitializeShareGroupStateRequest_InitializeStateData(topic_id, [begin])
        check(client.send(m.InitializeShareGroupStateRequest(group, [state]), stores))
        acquire(client, group, topic_id)
        made.kill(stores)
        batch = m.ShareAcknowledgeRequest_AcknowledgementBatch(0, 0, [ACCEPT])
        rows = [m.ShareAcknowledgeRequest_AcknowledgePartition(0, [batch])]
        said = m.ShareAcknowledgeRequest_AcknowledgeTopic(topic_id, rows)
        answer = client.send(m.ShareAcknowledgeRequest(group, MEMBER, 1, topics=[said]), LEADER, retry=False)
        row = answer.responses[0].partitions[0]
        assert (answer.error_code, row.error_code) == (0, 0), row.error_message
        elsewhere = next(node for node in (2, 3) if node != stores)
        eventually(lambda: lag(client, group, elsewhere) == 0, what="the lag, for which the leader is asked")


def lag(client: Client, group: str, node: int) -> int | None:
    """Return the lag in the only partition, by a broker that need not lead it; None while it cannot tell."""
    row = m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestTopic("t", [0])
    asked = m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestGroup(group, [row])
    answer = client.send(m.DescribeShareGroupOffsetsRequest([asked]), node)
    (part,) = answer.groups[0].topics[0].partitions
    return None if part.error_code else part.lag


def acquire(client: Client, group: str, topic_id: bytes) -> None:
    """Take the only record; the state of the partition is read meanwhile."""
    part = m.ShareFetchRequest_FetchTopic(topic_id, [m.ShareFetchRequest_FetchPartition(0)])
    request = m.ShareFetchRequest(
        group, MEMBER, 0, max_wait_ms=60_000, min_bytes=1, max_records=10, batch_size=10, topics=[part]
    )
    answer = client.send(request, LEADER)
    (row,) = answer.responses[0].partitions
    assert [(one.first_offset, one.last_offset) for one in row.acquired_records] == [(0, 0)], answer
