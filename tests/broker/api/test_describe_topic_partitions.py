"""DescribeTopicPartitions: topics in pages, in the order of their names."""

import pytest

from moldau.broker import operations
from moldau.wire import messages as m
from moldau.wire.errors import Error


@pytest.fixture
def topics(world):
    return {name: world.create(name, count) for name, count in (("b", 2), ("a", 3), ("c", 1))}


def ask(world, names=(), limit=2000, cursor=None):
    request = m.DescribeTopicPartitionsRequest(
        [m.DescribeTopicPartitionsRequest_TopicRequest(name) for name in names],
        limit,
        None if cursor is None else m.DescribeTopicPartitionsRequest_Cursor(*cursor),
    )
    return world.call(request)


def page(answer):
    """Names with the numbers of their partitions, and where the next page begins."""
    rows = [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]
    cursor = answer.next_cursor
    return rows, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_all_topics_come_by_name(world, topics):
    answer = ask(world)
    assert page(answer) == ([("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])], None)
    topic = answer.topics[0]
    assert (topic.topic_id, topic.is_internal) == (topics["a"], False)
    assert topic.topic_authorized_operations == operations.TOPIC == 3576
    assert topic.partitions[1] == m.DescribeTopicPartitionsResponse_DescribeTopicPartitionsResponsePartition(
        0, 1, 1, 0, [1], [1], [], [], []
    )


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (6, ([("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])], None)),
        (4, ([("a", [0, 1, 2]), ("b", [0])], ("b", 1))),
        (3, ([("a", [0, 1, 2])], ("b", 0))),
        (1, ([("a", [0])], ("a", 1))),
        (0, ([("a", [0])], ("a", 1))),
        (-1, ([("a", [0])], ("a", 1))),
    ],
)
def test_a_page_ends_at_the_limit(world, topics, limit, expected):
    assert page(ask(world, limit=limit)) == expected


def test_the_broker_has_a_limit_of_its_own(make_world):
    world = make_world(max_request_partition_size_limit="2")
    world.create("a", 3)
    assert page(ask(world)) == ([("a", [0, 1])], ("a", 2))


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        (("a", 1), [("a", [1, 2]), ("b", [0, 1]), ("c", [0])]),
        (("a", 3), [("a", []), ("b", [0, 1]), ("c", [0])]),
        (("aa", 1), [("b", [0, 1]), ("c", [0])]),
        (("zz", 0), []),
        (("", 0), [("a", [0, 1, 2]), ("b", [0, 1]), ("c", [0])]),
    ],
)
def test_a_cursor_says_where_to_begin(world, topics, cursor, expected):
    assert page(ask(world, cursor=cursor)) == (expected, None)


def test_pages_together_are_everything(world, topics):
    found, cursor = [], None
    while True:
        rows, cursor = page(ask(world, limit=2, cursor=cursor))
        found += [(name, index) for name, indexes in rows for index in indexes]
        if cursor is None:
            break
    assert found == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0)]


def test_asked_topics_come_once_each_by_name(world, topics):
    assert page(ask(world, ["c", "a", "c"])) == ([("a", [0, 1, 2]), ("c", [0])], None)
    assert page(ask(world, ["c", "b", "a"], cursor=("b", 1))) == ([("b", [1]), ("c", [0])], None)


def test_unknown_and_illegal_topics_cost_nothing(world, topics):
    answer = ask(world, ["a", "aaa", "b/d", ".."], limit=3)
    assert [(t.name, t.error_code) for t in answer.topics] == [("..", Error.INVALID_TOPIC_EXCEPTION), ("a", 0)]
    assert page(answer)[1] == ("aaa", 0)
    (unknown,) = ask(world, ["aaa"]).topics
    assert (unknown.error_code, unknown.topic_id) == (Error.UNKNOWN_TOPIC_OR_PARTITION, bytes(16))


@pytest.mark.parametrize(("names", "cursor"), [(["a"], ("b", 1)), (["a", "c"], ("b", 1)), (["a"], ("a", -1))])
def test_a_cursor_must_point_into_what_is_asked_for(world, topics, names, cursor):
    answer = ask(world, names, cursor=cursor)
    assert [(t.name, t.error_code, t.partitions) for t in answer.topics] == [
        (name, Error.INVALID_REQUEST, []) for name in names
    ]
    assert answer.next_cursor is None
