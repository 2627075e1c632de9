"""The short way of a commit against the long one: the same answers, the same log, the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.broker import node as node_module
from moldau.broker.api.commit_one import commit_one
from moldau.wire import frames
from moldau.wire import messages as m

from ..conftest import Client, World

Make = Callable[..., World]
PARTITIONS = 70

parts = st.lists(
    st.tuples(
        st.integers(0, PARTITIONS + 1),
        st.integers(-1, 1 << 60),
        st.integers(-1, 1 << 30),
        st.sampled_from([None, "", "", "", "m"]),
    ),
    min_size=1,
    max_size=PARTITIONS,
)
members = st.sampled_from([("", None, -1), ("", None, 3), ("x", None, -1), ("x", "i", 1)])


def request(topics: list[bytes], version: int, group: str, member: tuple[str, str | None, int], rows: Any) -> Any:
    kind = m.OffsetCommitRequest_OffsetCommitRequestPartition
    named = [("", topic) if version >= 10 else ("t" * 20, bytes(16)) for topic in topics]
    built = [m.OffsetCommitRequest_OffsetCommitRequestTopic(*name, [kind(*row) for row in rows]) for name in named]
    name, instance, epoch = member
    return m.OffsetCommitRequest(group, epoch, name, instance, topics=built)


@pytest.fixture
def two(make_world: Make) -> tuple[World, World]:
    worlds = make_world(offsets_topic_num_partitions="1"), make_world(offsets_topic_num_partitions="1")
    for world in worlds:
        world.create("t" * 20, PARTITIONS)
        world.call(m.FindCoordinatorRequest(coordinator_keys=["g"]))
    return worlds


def log_of(world: World) -> bytes:
    log = world.node.replicas.leader("__consumer_offsets", 0).log
    span = log.read(0, 1 << 24).span if log.end_offset else None
    return b"" if span is None else bytes(span.read())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(8, 10), st.sampled_from(["g", "h"]), members, parts), max_size=4))
def test_both_ways_say_and_write_the_same(two: tuple[World, World], steps: list[Any]) -> None:
    answers: list[list[Any]] = []
    for world, table in zip(two, ({8: commit_one}, {}), strict=True):
        client, said = Client(world.node), list[Any]()
        topic_id = world.node.cluster.topics["t" * 20].id
        for version, group, member, rows in steps:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(node_module, "QUICK", table)
                asked = request([topic_id], version, group, member, rows)
                answer = client.call(asked, version)
            said.append(answer)
        answers.append(said)
    quick, slow = two
    assert answers[0] == answers[1]
    assert log_of(quick) == log_of(slow)
    known = [world.node.groups.machine(0).offsets.committed for world in two]
    assert known[0] == known[1]


@pytest.mark.parametrize("version", [8, 9, 10])
def test_usual_commit_takes_the_short_way(world: World, version: int) -> None:
    topic_id = world.create("t" * 20, 3)
    rows = [(index, 5, 0, "") for index in range(3)]
    asked = request([topic_id], version, "g", ("", None, -1), rows)
    world.call(asked, version)
    assert short_way(world, asked, version) is not None


def test_unusual_commits_take_the_long_way(world: World) -> None:
    topic_id = world.create("t" * 20, 3)
    rows = [(0, 5, 0, "")]
    nobody = "", None, -1
    usual = request([topic_id], 10, "g", nobody, rows)
    assert short_way(world, usual, 10) is None, "the group is not known yet"
    world.call(usual, 10)
    for asked in (
        request([topic_id, topic_id], 10, "g", nobody, rows),
        request([], 10, "g", nobody, rows),
        request([topic_id], 10, "g", nobody, []),
        request([b"x" * 16], 10, "g", nobody, rows),
        request([topic_id], 10, "g", nobody, [(9, 5, 0, "")]),
        request([topic_id], 10, "g", nobody, [(0, 5, 0, "m")]),
        request([topic_id], 10, "g" * 130, nobody, rows),
        request([topic_id], 10, "g", ("x", None, 1), rows),
    ):
        assert short_way(world, asked, 10) is None
    assert short_way(world, usual, 7) is None


def short_way(world: World, asked: Any, version: int) -> bytes | None:
    frame = memoryview(bytearray(frames.request_frame(asked, version, 1, "test")[4:]))
    position = frames.request_header(frame)[4]
    return commit_one(world.node, frame, position, version, 1)


def test_torn_requests_are_left_to_the_long_way(world: World) -> None:
    topic_id = world.create("t" * 20, 3)
    asked = request([topic_id], 10, "g", ("", None, -1), [(0, 5, 0, "")])
    world.call(asked, 10)
    whole = bytes(frames.request_frame(asked, 10, 1, "test")[4:])
    position = frames.request_header(memoryview(whole))[4]
    for size in range(position, len(whole)):
        assert commit_one(world.node, memoryview(whole[:size]), position, 10, 1) is None
