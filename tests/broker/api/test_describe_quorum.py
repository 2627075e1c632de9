"""DescribeQuorum: one voter, which leads and is up to date."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_ID = bytes(16)


def ask(world, *topics, version=2):
    rows = [
        m.DescribeQuorumRequest_TopicData(name, [m.DescribeQuorumRequest_PartitionData(i) for i in indexes])
        for name, indexes in topics
    ]
    return world.call(m.DescribeQuorumRequest(rows), version)


def only_partition(answer):
    (topic,) = answer.topics
    (partition,) = topic.partitions
    return partition


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_one_voter_leads(world, version):
    answer = ask(world, ("__cluster_metadata", [0]), version=version)
    found = only_partition(answer)
    end, now = world.node.metadata.log.end_offset, world.clock.wall_ms() if version else -1
    assert (found.error_code, found.leader_id, found.leader_epoch, found.high_watermark) == (0, 1, 1, end)
    assert found.current_voters == [m.DescribeQuorumResponse_ReplicaState(1, NO_ID, end, now, now)]
    assert found.observers == []


def test_the_voter_has_an_address_since_version_2(world):
    (node,) = ask(world, ("__cluster_metadata", [0])).nodes
    assert node == m.DescribeQuorumResponse_Node(1, [m.DescribeQuorumResponse_Listener("PLAINTEXT", "127.0.0.1", 9092)])
    assert ask(world, ("__cluster_metadata", [0]), version=1).nodes == ()


def test_the_epoch_grows_with_each_start(world):
    world.restart()
    assert only_partition(ask(world, ("__cluster_metadata", [0]))).leader_epoch == 2


@pytest.mark.parametrize(
    "topics",
    [
        [("__cluster_metadata", [1])],
        [("t", [0])],
        [("__cluster_metadata", [0, 1])],
        [("__cluster_metadata", [0]), ("t", [0])],
    ],
)
def test_anything_else_is_unknown_altogether(world, topics):
    answer = ask(world, *topics)
    assert answer.error_code == 0
    assert answer.nodes == []
    found = [partition for topic in answer.topics for partition in topic.partitions]
    assert len(found) == sum(len(indexes) for _, indexes in topics)
    assert {partition.error_code for partition in found} == {Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert all(not partition.current_voters and partition.leader_id == 0 for partition in found)


def test_no_topic_is_no_error(world):
    assert ask(world).topics == []


def test_directory_ids_are_told_from_kraft_version_1_on(world):
    world.call(m.UpdateFeaturesRequest(feature_updates=[m.UpdateFeaturesRequest_FeatureUpdateKey("kraft.version", 1)]))
    (voter,) = only_partition(ask(world, ("__cluster_metadata", [0]))).current_voters
    assert voter.replica_directory_id == world.node.cluster.brokers[1].log_dirs[0] != NO_ID
