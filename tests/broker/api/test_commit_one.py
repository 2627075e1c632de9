"""The short way of a commit against the long one: the same answers, the same log, the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moldau.broker.learned_requests import serve
from moldau.machines.metadata.acls import ALLOW, GROUP, LITERAL, READ, TOPIC
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.errors import WireError

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


ONE = {"offsets_topic_num_partitions": "1", "transaction_state_log_num_partitions": "1"}


@pytest.fixture
def world(make_world: Make) -> World:
    return make_world(**ONE).coordinate()


@pytest.fixture
def two(make_world: Make) -> tuple[World, World]:
    worlds = make_world(**ONE).coordinate(), make_world(**ONE).coordinate()
    for world in worlds:
        world.create("t" * 20, PARTITIONS)
    return worlds


def log_of(world: World) -> bytes:
    log = world.node.replicas.leader("__consumer_offsets", 0).log
    span = log.read(0, 1 << 24).span if log.end_offset else None
    return b"" if span is None else bytes(span.read())


def both_ways(two: tuple[World, World], play: Callable[[World], Any]) -> None:
    """What is said, written and known after the same play must be the same."""
    outcomes: list[Any] = []
    for world, way in zip(two, ("short", "long"), strict=True):
        with pytest.MonkeyPatch.context() as patched:
            if way == "long":
                patched.setattr("moldau.broker.learned_requests.serve", lambda *_: None)
            said = play(world)
        outcomes.append((said, log_of(world), world.node.groups.machine(0).offsets.committed))
    assert outcomes[0] == outcomes[1]


steps = st.lists(st.tuples(st.integers(8, 10), st.sampled_from(["g", "h"]), members, parts), max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps, st.integers(0, 1 << 40))
def test_both_ways_say_and_write_the_same(two: tuple[World, World], steps: list[Any], shift: int) -> None:
    def play(world: World) -> list[Any]:
        topic_id, said = world.node.cluster.topics["t" * 20].id, list[Any]()
        for more in (0, shift):  # the second time all that can be is known
            for version, group, member, rows in steps:
                moved = [(index, offset + more, *rest) for index, offset, *rest in rows]
                said.append(world.call(request([topic_id], version, group, member, moved), version))
        return said

    both_ways(two, play)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    version=st.sampled_from([8, 9, 10]),
    at=st.integers(0, 200),
    byte=st.integers(0, 255),
    cut=st.integers(0, 20),
    more=st.binary(max_size=3),
)
def test_a_damaged_request_fares_alike_both_ways(
    two: tuple[World, World], version: int, at: int, byte: int, cut: int, more: bytes
) -> None:
    def play(world: World) -> list[Any]:
        topic_id = world.node.cluster.topics["t" * 20].id
        asked = request([topic_id], version, "g", ("", None, -1), [(index, 5, 0, "") for index in range(3)])
        whole = bytes(frames.request_frame(asked, version, 1, "test")[4:])
        damaged = bytearray(whole[: len(whole) - cut] + more)
        damaged[at % len(damaged)] = byte
        return [send(world, frame) for frame in (whole, whole, damaged, whole)]

    both_ways(two, play)


def send(world: World, frame: Any) -> bytes:
    connection = world.client.connection
    try:
        world.node.receive(connection, memoryview(bytearray(frame)))
    except WireError as error:
        return str(error).encode()
    said = b"".join(connection.out)
    connection.out.clear()
    return said


def test_members_commit_alike_both_ways_and_stay_alive_by_it(two: tuple[World, World]) -> None:
    def play(world: World) -> list[Any]:
        topic_id, said = world.node.cluster.topics["t" * 20].id, list[Any]()
        member, generation = join(world, "m")
        for offset in range(6):
            world.advance(7_000)  # of a session of 10 s
            asked = request([topic_id], 9, "m", (member, None, generation), [(3, offset, 0, ""), (1, offset, 0, "")])
            said.append(world.call(asked, 9))
        late = request([topic_id], 9, "m", (member, None, generation - 1), [(3, 99, 0, ""), (1, 99, 0, "")])
        said.append(world.call(late, 9))
        world.advance(11_000)
        said.append(world.call(asked, 9))
        return said

    both_ways(two, play)


def join(world: World, group: str) -> tuple[str, int]:
    """A classic group with one member, whose session is 10 s."""
    asked = m.JoinGroupRequest(
        group, 10_000, 10_000, "", None, "consumer", [m.JoinGroupRequest_JoinGroupRequestProtocol("range", b"")]
    )
    asked.member_id = world.call(asked).member_id
    world.client.send(asked, 9)
    world.advance(3_000)
    joined = world.client.take()
    shares = [m.SyncGroupRequest_SyncGroupRequestAssignment(asked.member_id, b"x")]
    world.call(m.SyncGroupRequest(group, joined.generation_id, asked.member_id, None, "consumer", "range", shares))
    return asked.member_id, joined.generation_id


@pytest.mark.parametrize("version", [8, 9, 10])
def test_usual_commit_takes_the_short_way(world: World, version: int) -> None:
    topic_id = world.create("t" * 20, 3)
    rows = [(index, 5, 0, "") for index in range(2)]
    assert not goes_shortly(world, request([topic_id], version, "g", ("", None, -1), rows), version)
    world.call(request([topic_id], version, "g", ("", None, -1), rows), version)
    for others in ([(0, 6, 0, ""), (1, 1 << 40, 3, None)], [(2, 6, 0, ""), (0, 6, 0, "")]):
        assert goes_shortly(world, request([topic_id], version, "g", ("", None, -1), others), version)


def test_member_of_a_consumer_group_takes_the_short_way(world: World) -> None:
    topic_id = world.create("t" * 20, 3)
    joined = m.ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 60_000, ["t" * 20], None, None, [])
    epoch = world.call(joined, 1).member_epoch
    rows = [(index, 5, 0, "") for index in range(3)]
    asked = request([topic_id], 9, "g", ("m", None, epoch), rows)
    world.call(asked, 9)
    assert goes_shortly(world, asked, 9)


def test_with_a_codec_all_commits_take_the_long_way(make_world: Make) -> None:
    world = make_world(offsets_topic_compression_codec="4", **ONE).coordinate()
    asked = request([world.create("t" * 20)], 10, "g", ("", None, -1), [(0, 5, 0, "")])
    world.call(asked, 10)
    assert not goes_shortly(world, asked, 10)


def test_unusual_commits_take_the_long_way(world: World) -> None:
    topic_id = world.create("t" * 20, 3)
    nobody = "", None, -1
    usual = request([topic_id], 10, "g", nobody, [(0, 5, 0, "")])
    for asked in (
        request([topic_id, topic_id], 10, "g", nobody, [(0, 5, 0, "")]),
        request([topic_id], 10, "g", nobody, [(0, 5, 0, "m")]),
        request([topic_id], 10, "g", nobody, [(index % 3, 5, 0, "") for index in range(65)]),
    ):
        world.call(asked, 10)
        assert not goes_shortly(world, asked, 10)
    world.call(usual, 10)
    world.call(request([topic_id], 10, "g", nobody, [(9, 5, 0, "")]), 10)
    assert goes_shortly(world, usual, 10)
    for asked in (
        request([topic_id], 10, "g", nobody, [(9, 5, 0, "")]),
        request([topic_id], 10, "g", nobody, [(0, 5, 0, "m")]),
        request([topic_id], 10, "g", ("x", None, 1), [(0, 5, 0, "")]),
    ):
        assert not goes_shortly(world, asked, 10)
    world.call(usual, 7)
    assert not goes_shortly(world, usual, 7)


def test_sets_of_partitions_that_are_kept_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.broker.api.commit_one.MOST", 4)
    topic_id = world.create("t" * 20, 20)
    for index in range(20):
        world.call(request([topic_id], 10, "g", ("", None, -1), [(index, 5, 0, "")]), 10)
    ((known,),) = (heads.values() for heads in world.node.heads.values())
    assert 0 < len(known.known) <= 4


def goes_shortly(world: World, asked: Any, version: int) -> bool:
    frame = frames.request_frame(asked, version, 1, "test")[4:]
    return serve(world.node, world.client.connection, memoryview(bytearray(frame))) is not None


def test_with_an_authorizer_each_client_is_asked_about_each_time(make_world: Make) -> None:
    """Heads are shared by connections, permissions are not."""
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    world = make_world(authorizer_class_name=standard, super_users="User:ANONYMOUS")
    world.create("t" * 20)
    world.call(m.FindCoordinatorRequest(coordinator_keys=["g"]))
    frame = frames.request_frame(request([b""], 9, "g", ("", None, -1), [(0, 1, -1, "")]), 9, 1, "c")[4:]
    alice = Client(world.node)
    alice.connection.principal = "User:alice"

    def short(client: Client) -> bool:
        return serve(world.node, client.connection, memoryview(bytearray(frame))) is not None

    allowed: list[bool] = []
    for grants in ((), ((GROUP, "g"),), ((TOPIC, "t" * 20),)):
        rows = [m.CreateAclsRequest_AclCreation(*one, LITERAL, "User:alice", "*", READ, ALLOW) for one in grants]
        world.call(m.CreateAclsRequest(rows))
        world.node.receive(world.client.connection, memoryview(bytearray(frame)))  # the change has made it forget
        world.client.connection.out.clear()
        alice.connection.head_ends = world.client.connection.head_ends
        assert short(world.client)
        allowed.append(short(alice))
    assert allowed == [False, False, True]
