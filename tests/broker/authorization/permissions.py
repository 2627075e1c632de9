"""What each API asks for, as Apache Kafka 4.3 was seen to: a request, its version, a resource and an operation.

Each request is made so that its answer has the code of a refusal if, and only if, the operation is not allowed. The
topic is `t`, the group `g`, the transactional id `x`; what the request needs besides is granted.
"""

from __future__ import annotations

from typing import Any

from moldau.machines.metadata.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from moldau.wire import messages as m

MEMBER = "AAAAAAAAAAAAAAAAAAAAAA"

Row = tuple[Any, int, int, int | tuple[int, ...]]


def topics(topic_id: bytes) -> list[Row]:
    part = m.ProduceRequest_PartitionProduceData(0, b"x")
    named = m.ProduceRequest(None, -1, 1000, [m.ProduceRequest_TopicProduceData("t", partition_data=[part])])
    by_id = m.ProduceRequest(
        None, -1, 1000, [m.ProduceRequest_TopicProduceData(topic_id=topic_id, partition_data=[part])]
    )
    wanted = [m.FetchRequest_FetchPartition(partition=0)]
    at = m.ListOffsetsRequest_ListOffsetsPartition(0, -1, -1)
    epoch = m.OffsetForLeaderEpochRequest_OffsetForLeaderTopic(
        "t", [m.OffsetForLeaderEpochRequest_OffsetForLeaderPartition(0)]
    )
    cut = m.DeleteRecordsRequest_DeleteRecordsPartition(0, 0)
    return [
        (named, 9, TOPIC, WRITE),
        (by_id, 13, TOPIC, WRITE),
        (m.FetchRequest(topics=[m.FetchRequest_FetchTopic("t", partitions=wanted)]), 12, TOPIC, READ),
        (m.FetchRequest(topics=[m.FetchRequest_FetchTopic(topic_id=topic_id, partitions=wanted)]), 18, TOPIC, READ),
        (m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequest_ListOffsetsTopic("t", [at])]), 9, TOPIC, DESCRIBE),
        (m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="t")]), 0, TOPIC, DESCRIBE),
        (m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(topic_id, None)]), 13, TOPIC, DESCRIBE),
        (m.DeleteTopicsRequest(topic_names=["none"]), 5, TOPIC, DESCRIBE),
        (m.DeleteRecordsRequest([m.DeleteRecordsRequest_DeleteRecordsTopic("t", [cut])]), 2, TOPIC, DELETE),
        (m.CreatePartitionsRequest([m.CreatePartitionsRequest_CreatePartitionsTopic("t", 1, None)]), 3, TOPIC, ALTER),
        (m.OffsetForLeaderEpochRequest(-1, [epoch]), 4, TOPIC, DESCRIBE),
        (m.DescribeTopicPartitionsRequest([m.DescribeTopicPartitionsRequest_TopicRequest("t")]), 0, TOPIC, DESCRIBE),
        (m.DescribeProducersRequest([m.DescribeProducersRequest_TopicRequest("t", [0])]), 0, TOPIC, READ),
    ]


def configs() -> list[Row]:
    def describe(kind: int, name: str) -> Any:
        return m.DescribeConfigsRequest([m.DescribeConfigsRequest_DescribeConfigsResource(kind, name, None)])

    def alter(kind: int, name: str) -> Any:
        return m.AlterConfigsRequest([m.AlterConfigsRequest_AlterConfigsResource(kind, name, [])], True)

    def change(kind: int, name: str) -> Any:
        row = m.IncrementalAlterConfigsRequest_AlterConfigsResource(kind, name, [])
        return m.IncrementalAlterConfigsRequest([row], True)

    resources = [(2, "t", TOPIC), (32, "g", GROUP), (4, "1", CLUSTER), (4, "", CLUSTER), (16, "c", CLUSTER)]
    rows: list[Row] = []
    for kind, name, resource in resources:
        rows.append((describe(kind, name), 4, resource, DESCRIBE_CONFIGS))
        rows.append((alter(kind, name), 2, resource, ALTER_CONFIGS))
        rows.append((change(kind, name), 1, resource, ALTER_CONFIGS))
    rows.append((describe(8, "1"), 4, CLUSTER, DESCRIBE_CONFIGS))
    rows.append((change(8, "1"), 1, CLUSTER, ALTER_CONFIGS))
    return rows


def cluster() -> list[Row]:
    move = m.AlterReplicaLogDirsRequest_AlterReplicaLogDir(
        "/x", [m.AlterReplicaLogDirsRequest_AlterReplicaLogDirTopic("t", [0])]
    )
    entity = m.AlterClientQuotasRequest_EntryData([m.AlterClientQuotasRequest_EntityData("user", "u")], [])
    part = m.AlterPartitionReassignmentsRequest_ReassignablePartition(9, None)
    topic = m.AlterPartitionReassignmentsRequest_ReassignableTopic("t", [part])
    return [
        (m.AlterReplicaLogDirsRequest([move]), 2, CLUSTER, ALTER),
        (m.DescribeLogDirsRequest(None), 4, CLUSTER, DESCRIBE),
        (m.ElectLeadersRequest(0, [m.ElectLeadersRequest_TopicPartitions("t", [0])]), 2, CLUSTER, ALTER),
        (m.ElectLeadersRequest(0, [m.ElectLeadersRequest_TopicPartitions("t", [0])]), 0, CLUSTER, ALTER),
        (m.AlterPartitionReassignmentsRequest(topics=[topic]), 1, CLUSTER, ALTER),
        (m.ListPartitionReassignmentsRequest(topics=None), 0, CLUSTER, DESCRIBE),
        (m.DescribeClientQuotasRequest(), 1, CLUSTER, DESCRIBE_CONFIGS),
        (m.AlterClientQuotasRequest([entity], True), 1, CLUSTER, ALTER_CONFIGS),
        (m.DescribeQuorumRequest(), 2, CLUSTER, DESCRIBE),
        (m.UpdateFeaturesRequest(), 2, CLUSTER, ALTER),
        (m.UnregisterBrokerRequest(99), 0, CLUSTER, ALTER),
        (m.ListConfigResourcesRequest(), 1, CLUSTER, DESCRIBE_CONFIGS),
        (m.DescribeAclsRequest(1, None, 1, None, None, 1, 1), 3, CLUSTER, DESCRIBE),
        (m.CreateAclsRequest([m.CreateAclsRequest_AclCreation()]), 3, CLUSTER, ALTER),
        (m.DeleteAclsRequest([m.DeleteAclsRequest_DeleteAclsFilter()]), 3, CLUSTER, ALTER),
        (m.DescribeUserScramCredentialsRequest(None), 0, CLUSTER, DESCRIBE),
        (
            m.AlterUserScramCredentialsRequest([m.AlterUserScramCredentialsRequest_ScramCredentialDeletion("u", 1)]),
            0,
            CLUSTER,
            ALTER,
        ),
        (m.AddRaftVoterRequest(), 0, CLUSTER, ALTER),
        (m.RemoveRaftVoterRequest(), 0, CLUSTER, ALTER),
    ]


def groups(topic_id: bytes) -> list[Row]:
    offset = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 1)
    commit = m.OffsetCommitRequest(
        "g", topics=[m.OffsetCommitRequest_OffsetCommitRequestTopic("t", partitions=[offset])]
    )
    by_id = m.OffsetCommitRequest(
        "g", topics=[m.OffsetCommitRequest_OffsetCommitRequestTopic(topic_id=topic_id, partitions=[offset])]
    )
    fetch = m.OffsetFetchRequest("g", [m.OffsetFetchRequest_OffsetFetchRequestTopic("t", [0])])
    many = m.OffsetFetchRequest_OffsetFetchRequestTopics
    one = m.OffsetFetchRequest_OffsetFetchRequestGroup
    fetch_many = m.OffsetFetchRequest(groups=[one("g", topics=[many("t", partition_indexes=[0])])])
    fetch_ids = m.OffsetFetchRequest(groups=[one("g", topics=[many(topic_id=topic_id, partition_indexes=[0])])])
    forget = m.OffsetDeleteRequest(
        "g",
        [m.OffsetDeleteRequest_OffsetDeleteRequestTopic("t", [m.OffsetDeleteRequest_OffsetDeleteRequestPartition(0)])],
    )
    join = m.JoinGroupRequest("g", 1, 1, "", None, "consumer", [m.JoinGroupRequest_JoinGroupRequestProtocol("range")])
    beat = m.ConsumerGroupHeartbeatRequest(
        "g", MEMBER, 0, subscribed_topic_names=["t"], topic_partitions=[], rebalance_timeout_ms=1000
    )
    share = m.ShareGroupHeartbeatRequest("g", MEMBER, 0, subscribed_topic_names=["t"])
    topology = m.StreamsGroupHeartbeatRequest_Topology(
        1, [m.StreamsGroupHeartbeatRequest_Subtopology("0", source_topics=["t"])]
    )
    streams = m.StreamsGroupHeartbeatRequest("g", MEMBER, 0, topology=topology)
    return [
        *both(commit, 9, (GROUP, READ), (TOPIC, READ)),
        *both(by_id, 10, (GROUP, READ), (TOPIC, READ)),
        *both(fetch, 1, (GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
        *both(fetch, 7, (GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
        *both(fetch_many, 9, (GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
        *both(fetch_ids, 10, (GROUP, DESCRIBE), (TOPIC, DESCRIBE)),
        *both(forget, 0, (GROUP, DELETE), (TOPIC, READ)),
        (m.FindCoordinatorRequest("g", 0), 3, GROUP, DESCRIBE),
        (m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 6, GROUP, DESCRIBE),
        (m.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 6, TRANSACTIONAL_ID, DESCRIBE),
        (m.FindCoordinatorRequest(key_type=2, coordinator_keys=["g:a:0"]), 6, CLUSTER, CLUSTER_ACTION),
        (join, 9, GROUP, READ),
        (m.HeartbeatRequest("g", 1, "m"), 4, GROUP, READ),
        (m.LeaveGroupRequest("g", "", [m.LeaveGroupRequest_MemberIdentity("m")]), 5, GROUP, READ),
        (m.SyncGroupRequest("g", 1, "m"), 4, GROUP, READ),
        (m.DescribeGroupsRequest(["g"]), 5, GROUP, DESCRIBE),
        (m.DeleteGroupsRequest(["g"]), 2, GROUP, DELETE),
        *both(beat, 1, (GROUP, READ), (TOPIC, DESCRIBE)),
        (m.ConsumerGroupDescribeRequest(["g"]), 1, GROUP, DESCRIBE),
        *both(share, 1, (GROUP, READ), (TOPIC, DESCRIBE)),
        (m.ShareGroupDescribeRequest(["g"]), 1, GROUP, DESCRIBE),
        *both(streams, 0, (GROUP, READ), (TOPIC, DESCRIBE)),
        (m.StreamsGroupDescribeRequest(["g"]), 0, GROUP, DESCRIBE),
        *shares(topic_id),
    ]


def shares(topic_id: bytes) -> list[Row]:
    fetch = m.ShareFetchRequest(
        "g", MEMBER, 0, topics=[m.ShareFetchRequest_FetchTopic(topic_id, [m.ShareFetchRequest_FetchPartition(0)])]
    )
    done = m.ShareAcknowledgeRequest_AcknowledgeTopic(topic_id, [m.ShareAcknowledgeRequest_AcknowledgePartition(0)])
    offsets = m.DescribeShareGroupOffsetsRequest_DescribeShareGroupOffsetsRequestGroup("g", None)
    alter = m.AlterShareGroupOffsetsRequest_AlterShareGroupOffsetsRequestTopic("t")
    topics = [
        ("InitializeShareGroupState", "InitializeStateData"),
        ("ReadShareGroupState", "ReadStateData"),
        ("WriteShareGroupState", "WriteStateData"),
        ("DeleteShareGroupState", "DeleteStateData"),
        ("ReadShareGroupStateSummary", "ReadStateSummaryData"),
    ]
    states = [
        getattr(m, f"{name}Request")(
            "g", [getattr(m, f"{name}Request_{row}")(topic_id, [getattr(m, f"{name}Request_PartitionData")(0)])]
        )
        for name, row in topics
    ]
    return [
        *((state, 0, CLUSTER, CLUSTER_ACTION) for state in states),
        *both(fetch, 1, (GROUP, READ), (TOPIC, READ)),
        *both(m.ShareAcknowledgeRequest("g", MEMBER, 1, topics=[done]), 1, (GROUP, READ), (TOPIC, READ)),
        (m.DescribeShareGroupOffsetsRequest([offsets]), 0, GROUP, DESCRIBE),
        (m.AlterShareGroupOffsetsRequest("g", [alter]), 0, GROUP, READ),
        (m.DeleteShareGroupOffsetsRequest("g"), 0, GROUP, DELETE),
    ]


def transactions() -> list[Row]:
    txn, topic = (TRANSACTIONAL_ID, WRITE), m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic("t", [0])
    add = m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=1, v3_and_below_topics=[topic]
    )
    add_many = m.AddPartitionsToTxnRequest(
        [m.AddPartitionsToTxnRequest_AddPartitionsToTxnTransaction("x", 1, 0, False, [topic])]
    )
    offset = m.TxnOffsetCommitRequest_TxnOffsetCommitRequestPartition(0, 1)
    commit = m.TxnOffsetCommitRequest(
        "x", "g", 1, 0, topics=[m.TxnOffsetCommitRequest_TxnOffsetCommitRequestTopic("t", [offset])]
    )
    marker = m.WriteTxnMarkersRequest_WritableTxnMarker(
        1, 0, True, [m.WriteTxnMarkersRequest_WritableTxnMarkerTopic("none", [0])]
    )
    return [
        (m.InitProducerIdRequest("x", 1000), 4, *txn),
        *both(add, 3, txn, (TOPIC, WRITE)),
        (add_many, 5, CLUSTER, CLUSTER_ACTION),
        *both(m.AddOffsetsToTxnRequest("x", 1, 0, "g"), 4, txn, (GROUP, READ)),
        (m.EndTxnRequest("x", 1, 0, True), 5, *txn),
        *both(commit, 5, txn, (GROUP, READ), (TOPIC, READ)),
        (m.WriteTxnMarkersRequest([marker]), 1, CLUSTER, (ALTER, CLUSTER_ACTION)),
        (m.DescribeTransactionsRequest(["x"]), 0, TRANSACTIONAL_ID, DESCRIBE),
    ]


def both(request: Any, version: int, *asks: tuple[int, int]) -> list[Row]:
    return [(request, version, *ask) for ask in asks]


def rows(topic_id: bytes) -> list[Row]:
    return [*topics(topic_id), *configs(), *cluster(), *groups(topic_id), *transactions()]
