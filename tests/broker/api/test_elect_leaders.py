"""ElectLeaders: with one node there is nothing to elect, and that is the answer."""

import pytest

from moldau.wire import messages as m
from moldau.wire.errors import Error


def ask(world, topics, kind=0, version=2):
    rows = None if topics is None else [m.ElectLeadersRequest_TopicPartitions(*topic) for topic in topics]
    return world.call(m.ElectLeadersRequest(kind, rows), version)


def codes(answer):
    return [
        (topic.topic, [(row.partition_id, row.error_code) for row in topic.partition_result])
        for topic in answer.replica_election_results
    ]


@pytest.mark.parametrize(("kind", "version"), [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2)])
def test_partitions_that_are_led_need_no_election(world, kind, version):
    world.create("t", 2)
    answer = ask(world, [("t", [0, 1, 9]), ("unknown", [0]), ("t", [])], kind, version)
    unneeded, unknown = Error.ELECTION_NOT_NEEDED, Error.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == [
        ("t", [(0, unneeded), (1, unneeded), (9, unknown)]),
        ("unknown", [(0, unknown)]),
        ("t", []),
    ]
    assert answer.error_code == 0


def test_null_asks_for_all_and_leaves_out_what_needs_none(world):
    world.create("t", 2)
    world.create("u")
    assert codes(ask(world, None)) == [("t", []), ("u", [])]
    assert codes(ask(world, [])) == []


def test_an_unknown_election_type_is_refused(world):
    answer = ask(world, [("t", [0])], kind=2)
    assert (answer.error_code, codes(answer)) == (Error.INVALID_REQUEST, [("t", [(0, Error.INVALID_REQUEST)])])
    assert ask(world, None, kind=2).error_code == Error.INVALID_REQUEST
    assert ask(world, [], kind=2).error_code == Error.NONE
