"""Membership in groups of other protocol types, on both brokers: leaders, rebalances, static members, failures."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from moldau.client import Client, ClientError, Generation, Member, Peer, group
from moldau.testing import Broker, eventually
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.client.fake import Fake


def assign(protocol: str, peers: Sequence[Peer]) -> dict[str, bytes]:
    """Everybody is told of everybody."""
    everybody = {"protocol": protocol, "members": sorted(peer.metadata.decode() for peer in peers)}
    return {peer.id: json.dumps(everybody).encode() for peer in peers}


def members_told(generation: Generation | None) -> list[str]:
    return json.loads(generation.assignment)["members"] if generation else []


class Diary:
    """What the callbacks of a member were told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def callbacks(self) -> dict[str, Callable[[Generation], None]]:
        return {
            "on_assigned": lambda g: self.lines.append(("assigned", g.id)),
            "on_revoked": lambda g: self.lines.append(("revoked", g.id)),
            "on_lost": lambda g: self.lines.append(("lost", g.id)),
        }


@pytest.fixture
def join(client: Client, request: pytest.FixtureRequest) -> Iterator[Callable[..., Member]]:
    """Starts members of a group of this test."""
    with ExitStack() as stack:

        def made(name: str, background: bool = True, **more: Any) -> Member:
            given = {"protocols": [("v0", name.encode())], "assign": assign, **more}
            protocols, leader = given.pop("protocols"), given.pop("assign")
            member = stack.enter_context(Member(client, f"g-{request.node.name}", "sr", protocols, leader, **given))
            return member.start() if background else member

        yield made


def told(members: Sequence[Member], names: Sequence[str]) -> None:
    eventually(lambda: all(members_told(one.generation) == sorted(names) for one in members), what="the rebalance")


def test_members_find_each_other_and_one_leads(join: Callable[..., Member]) -> None:
    members = [join(name) for name in "abc"]
    told(members, "abc")
    generations = [one.generation for one in members]
    assert all(generations)
    assert sum(g.is_leader for g in generations if g) == 1
    assert len({g.id for g in generations if g}) == 1


def test_a_member_that_has_news_while_it_joins_joins_again(join: Callable[..., Member]) -> None:
    """Its metadata was written before the news: nobody else would ever tell the leader."""
    owned, made = ["x"], list[Member]()

    def release(protocol: str, peers: Sequence[Peer]) -> dict[str, bytes]:
        if owned:
            owned.clear()
            made[0].rejoin()
        return assign(protocol, peers)

    made.append(join("a", background=False, protocols=lambda: [("v0", ",".join(owned).encode())], assign=release))
    made[0].start()
    told(made, [""])


def test_the_group_has_the_protocol_type_of_its_members(join: Callable[..., Member], client: Client) -> None:
    member = join("a")
    told([member], "a")
    answer = client.send(m.DescribeGroupsRequest(groups=[member.group_id]), group(member.group_id)).groups[0]
    assert (answer.group_state, answer.protocol_type, answer.protocol_data) == ("Stable", "sr", "v0")


def test_callbacks_follow_each_other(join: Callable[..., Member]) -> None:
    diary = Diary()
    first = join("a", **diary.callbacks())
    told([first], "a")
    second = join("b")
    told([first, second], "ab")
    second.close()
    told([first], "a")
    kinds = [kind for kind, _ in diary.lines]
    assert kinds[0] == "assigned" and kinds[1::2] == ["revoked"] * len(kinds[1::2]) and set(kinds[::2]) == {"assigned"}


def test_a_member_may_poll_by_itself(join: Callable[..., Member]) -> None:
    member = join("a", background=False)
    assert member.generation is None
    generation = member.poll()
    assert generation is not None and generation.is_leader
    assert member.poll(0.05) is generation


def test_new_metadata_is_told_by_joining_again(join: Callable[..., Member]) -> None:
    names = ["old"]
    member = join("a", protocols=lambda: [("v0", names[0].encode())])
    told([member], ["old"])
    names[0] = "new"
    member.rejoin()
    told([member], ["new"])


def test_the_protocol_that_all_members_have_is_chosen(join: Callable[..., Member]) -> None:
    new = join("a", protocols=[("v1", b"a"), ("v0", b"a")])
    told([new], "a")
    assert new.generation and new.generation.protocol == "v1"
    old = join("b", protocols=[("v0", b"b")])
    told([new, old], "ab")
    assert new.generation and new.generation.protocol == "v0"


def test_members_of_other_types_are_refused(join: Callable[..., Member], client: Client) -> None:
    member = join("a")
    told([member], "a")
    with Member(client, member.group_id, "connect", [("v0", b"")], assign) as other:
        with pytest.raises(ClientError, match="refuses this member") as caught:
            other.poll()
        assert caught.value.error is Error.INCONSISTENT_GROUP_PROTOCOL
        started = Member(client, member.group_id, "connect", [("v0", b"")], assign).start()
        eventually(lambda: started.failure)
        started.close()


def test_a_static_member_comes_back_as_itself(join: Callable[..., Member], client: Client) -> None:
    first = join("a", instance_id="one")
    other = join("b")
    told([first, other], "ab")
    before = first.generation
    first.close()
    again = join("a", instance_id="one")
    eventually(lambda: again.generation)
    assert before and again.generation and members_told(again.generation) == ["a", "b"]
    described = client.send(m.DescribeGroupsRequest(groups=[first.group_id]), group(first.group_id)).groups[0]
    assert len(described.members) == 2


def test_a_static_member_that_is_replaced_is_fenced(join: Callable[..., Member]) -> None:
    first = join("a", instance_id="one")
    told([first], "a")
    second = join("a", instance_id="one")
    eventually(lambda: second.generation)
    failure = eventually(lambda: first.failure)
    assert isinstance(failure, ClientError) and failure.error is Error.FENCED_INSTANCE_ID
    with pytest.raises(ClientError):
        first.poll()


def test_a_callback_may_take_longer_than_the_session(servers: str, request: pytest.FixtureRequest) -> None:
    settings = {"bootstrap.servers": servers, "heartbeat.interval.ms": 100, "session.timeout.ms": 3000}
    diary = Diary()
    slow = {**diary.callbacks(), "on_assigned": lambda g: time.sleep(3.5)}
    with (
        Client(settings) as client,
        Member(client, f"g-{request.node.name}", "sr", [("v", b"")], assign, **slow) as one,
    ):
        first = one.poll()
        assert one.poll(0.3) is first
    assert diary.lines == []


def test_a_member_that_does_not_poll_leaves(servers: str, request: pytest.FixtureRequest) -> None:
    settings = {"bootstrap.servers": servers, "heartbeat.interval.ms": 50, "max.poll.interval.ms": 300}
    diary, name = Diary(), f"g-{request.node.name}"
    with Client(settings) as client, Member(client, name, "sr", [("v", b"")], assign, **diary.callbacks()) as member:
        before = member.poll()
        eventually(lambda: member.generation is None)
        after = member.poll()
        assert before and after and before.member_id != after.member_id
    assert [kind for kind, _ in diary.lines] == ["assigned", "lost", "assigned"]


def test_a_member_thrown_out_comes_back(join: Callable[..., Member], client: Client) -> None:
    diary = Diary()
    member = join("a", **diary.callbacks())
    told([member], "a")
    assert member.generation
    row = m.LeaveGroupRequest_MemberIdentity(member.generation.member_id)
    client.send(m.LeaveGroupRequest(member.group_id, members=[row]), group(member.group_id))
    eventually(lambda: len(diary.lines) == 3)
    assert [kind for kind, _ in diary.lines] == ["assigned", "lost", "assigned"]


def test_closing_ends_a_join_that_waits(servers: str, request: pytest.FixtureRequest) -> None:
    settings = {"bootstrap.servers": servers, "heartbeat.interval.ms": 60_000}  # the first does not notice the second
    name = f"g-{request.node.name}"
    with Client(settings) as client, Member(client, name, "sr", [("v", b"")], assign) as first:
        first.poll()
        second = Member(client, name, "sr", [("v", b"")], assign).start()
        state = lambda: client.send(m.DescribeGroupsRequest(groups=[name]), group(name)).groups[0]  # noqa: E731
        eventually(lambda: state().group_state == "PreparingRebalance")
        began = time.monotonic()
        second.close()
        assert time.monotonic() - began < 10.0


@pytest.mark.kafka(group_initial_rebalance_delay_ms=0)
def test_members_outlive_a_restart_of_the_broker(kafka: Broker) -> None:
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "heartbeat.interval.ms": 100, "session.timeout.ms": 6000}
    with Client(settings) as client, ExitStack() as stack:
        members = [stack.enter_context(Member(client, "g", "sr", [("v", n.encode())], assign)).start() for n in "ab"]
        told(members, "ab")
        kafka.kill()
        kafka.start()
        stack.enter_context(third := Member(client, "g", "sr", [("v", b"c")], assign))
        told([*members, third.start()], "abc")


def test_a_broken_callback_ends_the_member_and_is_told(join: Callable[..., Member], monkeypatch: Any) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    def broken(_: Generation) -> None:
        raise RuntimeError("a fault of the caller")

    member = join("a", on_assigned=broken)
    assert isinstance(eventually(lambda: member.failure), RuntimeError)


def test_a_member_whose_group_is_silent_counts_itself_out() -> None:
    silent = threading.Event()

    def answer(request: Any) -> Any:
        match request:
            case m.FindCoordinatorRequest():
                return fake.coordinator("g")
            case m.JoinGroupRequest():
                return m.JoinGroupResponse(0, 0, 1, "sr", "v", "me", False, "me")
            case m.SyncGroupRequest():
                return m.SyncGroupResponse(assignment=b'{"members": []}')
            case m.LeaveGroupRequest():
                return m.LeaveGroupResponse()
        return None if silent.is_set() else m.HeartbeatResponse()

    times = {"heartbeat.interval.ms": 20, "session.timeout.ms": 200, "socket.timeout.ms": 50}
    with (
        Fake(answer) as fake,
        Client({"bootstrap.servers": fake.address, **times}) as client,
        Member(client, "g", "sr", [("v", b"")], assign) as member,
    ):
        assert member.poll()
        silent.set()
        eventually(lambda: member.generation is None)
        silent.clear()
        assert member.poll()
