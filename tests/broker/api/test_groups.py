"""Classic groups through the node: members of two connections, waits, restarts, limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error

from ..conftest import FEW, Client, World

Make = Callable[..., World]
DELAY = 3000


@pytest.fixture
def world(make_world: Make) -> World:
    return make_world(**FEW).coordinate()


@pytest.fixture
def quick(make_world: Make) -> World:
    """A world that does not wait before the first rebalance."""
    return make_world(group_initial_rebalance_delay_ms="0", **FEW).coordinate()


def join(group: str = "g", member: str = "", **fields: Any) -> Any:
    fields = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer"} | fields
    metadata = bytes(2) + codec.encode(m.ConsumerProtocolSubscription(topics=["t"]), 0)
    fields.setdefault("protocols", [m.JoinGroupRequest_JoinGroupRequestProtocol("range", metadata)])
    return m.JoinGroupRequest(group, member_id=member, **fields)


def sync(member: str, generation: int, *assigned: tuple[str, bytes], **fields: Any) -> Any:
    rows = [m.SyncGroupRequest_SyncGroupRequestAssignment(*row) for row in assigned]
    return m.SyncGroupRequest("g", generation, member, assignments=rows, **fields)


def enter(world: World, client: Client | None = None) -> tuple[str, int]:
    """One member alone in its group, with an assignment."""
    client = client or world.client
    member = client.call(join()).member_id
    generation = client.call(join(member=member)).generation_id
    answer = client.call(sync(member, generation, (member, b"mine")), 4)
    assert (answer.error_code, answer.assignment) == (Error.NONE, b"mine")
    return member, generation


def describe(world: World, group: str = "g", version: int | None = None) -> Any:
    (row,) = world.call(m.DescribeGroupsRequest([group], include_authorized_operations=version is None), version).groups
    return row


def test_new_member_gets_an_id_first_and_then_waits_for_the_delay(world: World) -> None:
    first = world.call(join())
    assert first.error_code == Error.MEMBER_ID_REQUIRED and first.member_id.startswith("test-")
    assert world.call(join(member=first.member_id)) is None
    world.advance(DELAY)
    answer = world.client.take()
    assert (answer.error_code, answer.generation_id, answer.leader) == (Error.NONE, 1, first.member_id)
    assert [row.member_id for row in answer.members] == [first.member_id]


def test_older_clients_join_at_once(quick: World) -> None:
    for version in range(4):
        answer = quick.call(join(f"g{version}"), version)
        assert (answer.error_code, answer.generation_id) == (Error.NONE, 1)


def test_node_wakes_when_the_delay_is_over(world: World) -> None:
    world.call(join(member=world.call(join()).member_id))
    assert world.client.connection.wait is not None
    assert world.client.connection.wait.deadline_ms == world.clock.now_ms + DELAY
    assert world.node.tick() <= DELAY


def test_second_member_makes_the_first_join_again(quick: World) -> None:
    member, generation = enter(quick)
    other = Client(quick.node)
    new = other.call(join()).member_id
    assert other.call(join(member=new)) is None
    assert quick.call(m.HeartbeatRequest("g", generation, member)).error_code == Error.REBALANCE_IN_PROGRESS
    leader = quick.call(join(member=member))
    follower = other.take()
    assert {row.member_id for row in leader.members} == {member, new} and follower.members == []
    assert leader.generation_id == follower.generation_id == generation + 1
    other.send(sync(new, generation + 1), 4)
    assert other.take() is None
    quick.call(sync(member, generation + 1, (member, b"a"), (new, b"b")), 4)
    assert other.take().assignment == b"b"


def test_static_member_comes_back_without_a_rebalance(quick: World) -> None:
    first = quick.call(join(group_instance_id="i"))
    old, generation = first.member_id, first.generation_id
    quick.call(sync(old, generation, (old, b"mine"), group_instance_id="i"), 4)
    again = quick.call(join(group_instance_id="i"))
    assert again.member_id != old and again.generation_id == generation and again.skip_assignment
    answer = quick.call(m.HeartbeatRequest("g", generation, old, "i"))
    assert answer.error_code == Error.FENCED_INSTANCE_ID
    assert quick.call(sync(again.member_id, generation, group_instance_id="i"), 4).assignment == b"mine"


def test_group_survives_a_restart_and_a_crash(quick: World) -> None:
    member, generation = enter(quick)
    for clean in (True, False):
        quick.restart(clean)
        row = describe(quick)
        assert (row.group_state, row.protocol_type, row.protocol_data) == ("Stable", "consumer", "range")
        assert [(x.member_id, x.member_assignment, x.client_id) for x in row.members] == [(member, b"mine", "test")]
        assert quick.call(m.HeartbeatRequest("g", generation, member)).error_code == Error.NONE
    quick.advance(10_001)
    assert describe(quick).group_state == "Empty"


def test_who_waits_is_told_when_the_broker_stops(world: World) -> None:
    client = world.client
    client.call(join(member=client.call(join()).member_id))
    world.restart()
    assert client.take().error_code == Error.NOT_COORDINATOR


def test_client_that_hangs_up_while_it_waits_is_forgotten(quick: World) -> None:
    enter(quick)
    other = Client(quick.node)
    other.call(join(member=other.call(join()).member_id))
    quick.node.disconnect(other.connection)
    quick.advance(30_000)
    assert quick.node.waits.live == 0


@pytest.mark.parametrize("session_timeout_ms", [5999, 1_800_001])
def test_session_timeout_has_bounds(world: World, session_timeout_ms: int) -> None:
    answer = world.call(join(session_timeout_ms=session_timeout_ms))
    assert answer.error_code == Error.INVALID_SESSION_TIMEOUT


def test_group_without_an_id_is_refused(world: World) -> None:
    requests = (join(""), m.SyncGroupRequest(protocol_type="", protocol_name=""), m.HeartbeatRequest())
    for request in (*requests, m.LeaveGroupRequest(), m.OffsetDeleteRequest()):
        assert world.call(request).error_code == Error.INVALID_GROUP_ID


def test_group_has_a_largest_size(make_world: Make) -> None:
    world = make_world(group_max_size="1", group_initial_rebalance_delay_ms="0", **FEW).coordinate()
    enter(world)
    assert Client(world.node).call(join()).error_code == Error.GROUP_MAX_SIZE_REACHED


def test_members_leave_together(quick: World) -> None:
    member, _ = enter(quick)
    rows = [m.LeaveGroupRequest_MemberIdentity(name) for name in (member, "nobody", member)]
    answer = quick.call(m.LeaveGroupRequest("g", members=rows))
    assert answer.error_code == Error.NONE
    assert [row.error_code for row in answer.members] == [0, Error.UNKNOWN_MEMBER_ID, Error.UNKNOWN_MEMBER_ID]
    assert quick.call(m.LeaveGroupRequest("g", member), 2).error_code == Error.UNKNOWN_MEMBER_ID


def test_missing_group_is_dead_and_from_version_6_an_error(world: World) -> None:
    assert (describe(world, version=5).group_state, describe(world, version=5).error_code) == ("Dead", Error.NONE)
    row = describe(world)
    assert (row.group_state, row.error_code) == ("Dead", Error.GROUP_ID_NOT_FOUND)
    assert row.error_message and row.authorized_operations == -(2**31)


def test_groups_are_listed_by_state_and_type(quick: World) -> None:
    enter(quick)
    quick.call(join("pending"))

    def listed(states: list[str], types: list[str]) -> list[tuple[str, str, str]]:
        rows = quick.call(m.ListGroupsRequest(states, types)).groups
        return sorted((row.group_id, row.group_state, row.group_type) for row in rows)

    stable, pending = ("g", "Stable", "classic"), ("pending", "Empty", "classic")
    assert listed([], []) == [stable, pending]
    assert listed(["stable"], []) == listed(["STABLE", "Dead"], ["Classic"]) == [stable]
    assert listed([], ["share"]) == listed(["bogus"], []) == []


def test_only_empty_groups_are_deleted(quick: World) -> None:
    member, _ = enter(quick)

    def delete() -> list[tuple[str, int]]:
        return [(row.group_id, row.error_code) for row in quick.call(m.DeleteGroupsRequest(["g", "x"])).results]

    assert delete() == [("g", Error.NON_EMPTY_GROUP), ("x", Error.GROUP_ID_NOT_FOUND)]
    quick.call(m.LeaveGroupRequest("g", members=[m.LeaveGroupRequest_MemberIdentity(member)]))
    assert delete() == [("g", Error.NONE), ("x", Error.GROUP_ID_NOT_FOUND)]
    quick.restart()
    assert delete() == [("g", Error.GROUP_ID_NOT_FOUND), ("x", Error.GROUP_ID_NOT_FOUND)]


def test_a_client_that_only_asks_for_ids_leaves_nothing_behind(world: World) -> None:
    for n in range(300):
        world.call(join(f"g{n}", session_timeout_ms=6000))
    world.advance(6000)
    assert world.call(m.ListGroupsRequest()).groups == []
    assert (
        sum(partition.log.end_offset for partition in world.node.replicas.by_name["__consumer_offsets"].values()) == 0
    )


def test_coordinators_of_all_kinds_are_found_here(world: World) -> None:
    for key_type in (0, 1):
        rows = world.call(m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"])).coordinators
        assert [(row.key, row.error_code, row.node_id, row.port) for row in rows] == [
            ("a", 0, 1, 9092),
            ("b", 0, 1, 9092),
        ]
        old = world.call(m.FindCoordinatorRequest("a", key_type), 3)
        assert (old.error_code, old.node_id, old.host) == (0, 1, "127.0.0.1")
    assert {"__consumer_offsets", "__transaction_state"} <= world.node.cluster.topics.keys()
    configs = world.node.cluster.config(2, "__consumer_offsets")
    assert configs == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}


@pytest.mark.parametrize(("key_type", "key"), [(9, "a"), (2, "a"), (2, "g:short:0"), (2, "g:AAAAAAAAAAAAAAAAAAAAAA:x")])
def test_coordinator_of_nonsense_is_not_found(world: World, key_type: int, key: str) -> None:
    (row,) = world.call(m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])).coordinators
    assert (row.error_code, row.node_id) == (Error.INVALID_REQUEST, -1)


# What one client may take.


def commit(world: World, group: str) -> int:
    part = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 5)
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic("t", partitions=[part])
    (row,) = world.call(m.OffsetCommitRequest(group, topics=[topic]), 9).topics
    return row.partitions[0].error_code


def begin(world: World, group: str) -> int:
    """Join with the consumer protocol."""
    request = m.ConsumerGroupHeartbeatRequest(group, "m", 0, None, None, 1000, ["t"], topic_partitions=[])
    return world.call(request).error_code


WAYS = {
    "commit": commit,
    "join": lambda world, group: world.call(join(group), 3).error_code,
    "candidate": lambda world, group: world.call(join(group)).error_code,
    "begin": begin,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_client_that_makes_group_after_group_is_stopped(make_world: Make, way: str) -> None:
    limits = {"moldau_group_max_count": "3", "offsets_topic_num_partitions": "1"}
    world = make_world(group_initial_rebalance_delay_ms="0", **limits).coordinate()
    world.create("t")
    make = WAYS[way]
    usual = Error.MEMBER_ID_REQUIRED if way == "candidate" else Error.NONE
    answers = [make(world, f"g{number}") for number in range(1000)]
    assert answers == [usual] * 3 + [Error.GROUP_MAX_SIZE_REACHED] * 997
    assert len(world.node.groups.machines[0].groups) == 3
    for other in WAYS.values():
        assert other(world, "another") == Error.GROUP_MAX_SIZE_REACHED
    world.advance(60_000)  # longer than any session: who never sends a heartbeat is out
    world.call(m.DeleteGroupsRequest(["g1"]))
    assert make(world, "another") == usual


def test_a_member_whose_time_is_up_is_gone_even_if_the_node_ticks_late(quick: World) -> None:
    enter(quick)
    quick.clock.now_ms += 10_000
    assert [row.error_code for row in quick.call(m.DeleteGroupsRequest(["g"])).results] == [Error.NONE]
