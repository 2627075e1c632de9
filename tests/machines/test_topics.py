"""Commands on topics: what they refuse, and which records they return."""

import pytest

from moldau.machines.metadata import records
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.topics import NewTopic, add_partitions, check_name, create_topic
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ID = bytes(range(16))


@pytest.fixture
def cluster() -> Cluster:
    image = Cluster()
    for broker in (1, 2, 3):
        image.replay(m.RegisterBrokerRecord(broker_id=broker, fenced=False, log_dirs=[bytes([broker] * 16)]))
    return image


def commit(cluster: Cluster, changes):
    for record in changes:
        cluster.replay(records.decode(records.encode(record)))


def refusal(call, *args) -> Error:
    with pytest.raises(Refused) as caught:
        call(*args)
    return caught.value.error


def test_a_new_topic_is_spread_over_the_brokers(cluster):
    commit(cluster, create_topic(cluster, NewTopic("t", 3, 2, configs={"retention.ms": "1"}), ID))
    topic = cluster.topics["t"]
    assert cluster.topics_by_id[ID] is topic
    assert [p.replicas for p in topic.partitions.values()] == [(1, 2), (2, 3), (3, 1)]
    assert [p.leader for p in topic.partitions.values()] == [1, 2, 3]
    assert cluster.configs == {(2, "t"): {"retention.ms": "1"}}


def test_deciding_changes_nothing_before_replay(cluster):
    create_topic(cluster, NewTopic("t", 1, 1), ID)
    assert not cluster.topics


def test_deleting_takes_the_settings_along(cluster):
    commit(cluster, create_topic(cluster, NewTopic("t", 1, 1, configs={"retention.ms": "1"}), ID))
    commit(cluster, [m.RemoveTopicRecord(ID)])
    assert not cluster.topics and not cluster.topics_by_id and not cluster.configs


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a b", "ä", "x" * 250, "a\0b"])
def test_illegal_names_are_refused(name):
    assert refusal(check_name, name) == Error.INVALID_TOPIC_EXCEPTION


def test_a_name_that_is_taken_or_differs_by_dot_and_underscore_is_refused(cluster):
    commit(cluster, create_topic(cluster, NewTopic("a.b", 1, 1), ID))
    assert refusal(create_topic, cluster, NewTopic("a.b", 1, 1), ID) == Error.TOPIC_ALREADY_EXISTS
    assert refusal(create_topic, cluster, NewTopic("a_b", 1, 1), ID) == Error.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("t", 0, 1), Error.INVALID_PARTITIONS),
        (NewTopic("t", 1, 0), Error.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), Error.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 20_000, 1), Error.POLICY_VIOLATION),
        (NewTopic("t", 1, -1, {0: [1]}), Error.INVALID_REQUEST),
        (NewTopic("t", -1, 1, {0: [1]}), Error.INVALID_REQUEST),
        (NewTopic("t", -1, -1, {1: [1]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, {0: [1, 1]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, {0: [9]}), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, {0: []}), Error.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, {0: [1], 1: [1, 2]}), Error.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_impossible_placements_are_refused(cluster, new, error):
    assert refusal(create_topic, cluster, new, ID) == error


def test_partitions_are_added_but_never_taken_away(cluster):
    commit(cluster, create_topic(cluster, NewTopic("t", 2, 1), ID))
    commit(cluster, add_partitions(cluster, "t", 4, None))
    assert sorted(cluster.topics["t"].partitions) == [0, 1, 2, 3]
    assert refusal(add_partitions, cluster, "t", 4, None) == Error.INVALID_PARTITIONS
    assert refusal(add_partitions, cluster, "t", 1, None) == Error.INVALID_PARTITIONS
    assert refusal(add_partitions, cluster, "t", 6, [[1]]) == Error.INVALID_REPLICA_ASSIGNMENT
    assert refusal(add_partitions, cluster, "t", 5, [[1, 2]]) == Error.INVALID_REPLICA_ASSIGNMENT
    assert refusal(add_partitions, cluster, "nope", 5, None) == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_too_many_partitions_at_once_are_refused_for_a_new_topic_and_for_an_old_one(cluster):
    assert refusal(create_topic, cluster, NewTopic("t", 10_001, 1), ID) == Error.POLICY_VIOLATION
    commit(cluster, create_topic(cluster, NewTopic("t", 2, 1), ID))
    assert refusal(add_partitions, cluster, "t", 2_000_000, None) == Error.POLICY_VIOLATION


def test_a_partition_change_moves_the_leader_and_counts_the_epochs(cluster):
    commit(cluster, create_topic(cluster, NewTopic("t", 1, 2), ID))
    cluster.replay(m.PartitionChangeRecord(partition_id=0, topic_id=ID, leader=2, isr=[2]))
    part = cluster.topics["t"].partitions[0]
    assert (part.leader, part.leader_epoch, part.isr, part.partition_epoch) == (2, 1, (2,), 1)
