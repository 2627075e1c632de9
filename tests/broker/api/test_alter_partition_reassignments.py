"""AlterPartitionReassignments and ListPartitionReassignments: the right answers of one node."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


def ask(world, *partitions, name="t", version=1, may_change=True):
    rows = [m.AlterPartitionReassignmentsRequest_ReassignablePartition(*row) for row in partitions]
    topic = m.AlterPartitionReassignmentsRequest_ReassignableTopic(name, rows)
    return world.call(m.AlterPartitionReassignmentsRequest(1000, may_change, [topic]), version)


def codes(answer):
    (topic,) = answer.responses
    return [row.error_code for row in topic.partitions]


def listed(world, topics=None):
    rows = None
    if topics is not None:
        rows = [m.ListPartitionReassignmentsRequest_ListPartitionReassignmentsTopics(*topic) for topic in topics]
    return world.call(m.ListPartitionReassignmentsRequest(1000, rows))


@pytest.mark.parametrize("version", [0, 1])
def test_each_partition_gets_its_answer(world, version):
    world.create("t", 2)
    answer = ask(world, (0, [1]), (1, None), (0, [7]), (9, [1]), (0, []), (0, [1, 1]), (0, [1, 7]), version=version)
    bad = Error.INVALID_REPLICA_ASSIGNMENT
    assert codes(answer) == [
        Error.NONE,
        Error.NO_REASSIGNMENT_IN_PROGRESS,
        bad,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        bad,
        bad,
        bad,
    ]
    assert (answer.error_code, answer.error_message) == (0, None)
    assert codes(ask(world, (0, [1]), name="unknown", version=version)) == [Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_to_stay_is_no_change(world):
    world.create("t")
    end = world.node.metadata.log.end_offset
    answer = ask(world, (0, [1]), may_change=False)
    assert (codes(answer), answer.allow_replication_factor_change) == ([Error.NONE], False)
    assert world.node.metadata.log.end_offset == end


def test_an_empty_request_has_an_empty_answer(world):
    answer = world.call(m.AlterPartitionReassignmentsRequest(1000, False, []))
    assert (answer.responses, answer.error_message, answer.allow_replication_factor_change) == ([], "", True)


def test_nothing_moves(world):
    world.create("t")
    for topics in (None, [], [("t", [0]), ("unknown", [0])]):
        answer = listed(world, topics)
        assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])


def test_a_move_to_another_broker_is_listed_and_can_be_cancelled(world):
    world.create("t")
    world.change(m.RegisterBrokerRecord(broker_id=7, fenced=False, log_dirs=[bytes(16)]))
    assert codes(ask(world, (0, [7]), may_change=False)) == [Error.NONE]
    (topic,) = listed(world).topics
    expected = m.ListPartitionReassignmentsResponse_OngoingPartitionReassignment(0, [7, 1], [7], [1])
    assert (topic.name, topic.partitions) == ("t", [expected])
    assert listed(world, [("t", [0])]).topics == [topic]
    assert listed(world, [("t", [1])]).topics == []
    assert codes(ask(world, (0, None))) == [Error.NONE]
    assert listed(world).topics == []
    assert world.node.cluster.topics["t"].partitions[0].replicas == (1,)
