"""What a node asks others: the test is the network and the peer. Over real sockets: test_peers.py."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.broker.outbox import HELLO_VERSION, MOST_WAITING, Ask, Line, Lost, Outbox, Peer
from moldau.sasl.outcome import LoginFailed
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import WireError

PEER = Peer("127.0.0.1", 9093)
OTHER = Peer("127.0.0.1", 9094)
# What the peer knows: Metadata up to 12, for one.
KNOWN = {18: (0, 4), 3: (0, 12), 60: (0, 1), 16: (0, 5), 17: (0, 1), 36: (0, 2)}
LATER = 1000.0


@dataclass
class Wires:
    """Notes what the lines want."""

    connected: list[Line] = field(default_factory=list)
    closed: list[Line] = field(default_factory=list)
    sent: list[tuple[int, int, int]] = field(default_factory=list)  # key, version, correlation id

    def connect(self, line: Line) -> None:
        self.connected.append(line)

    def write(self, line: Line) -> None:
        for frame in line.out:
            key, version, correlation_id, client_id, _ = frames.request_header(memoryview(frame)[4:])
            assert client_id == "broker-1"
            self.sent.append((key, version, correlation_id))
        line.out.clear()

    def close(self, line: Line) -> None:
        self.closed.append(line)

    def answer(self, line: Line, response: Any) -> None:
        """Answer the oldest request that was sent."""
        key, version, correlation_id = self.sent.pop(0)
        line.receive(memoryview(b"".join(frames.response_frame(key, version, correlation_id, response)))[4:])

    def greet(self, line: Line) -> None:
        line.open()
        rows = [m.ApiVersionsResponse_ApiVersion(key, *versions) for key, versions in KNOWN.items()]
        assert self.sent[0][:2] == (18, HELLO_VERSION)
        self.answer(line, m.ApiVersionsResponse(0, rows))


@pytest.fixture
def wires() -> Wires:
    return Wires()


@pytest.fixture
def outbox(wires: Wires) -> Outbox:
    return Outbox(wires, "broker-1")


def ask(outbox: Outbox, request: Any, heard: list[Any], peer: Peer = PEER, deadline_ms: float = LATER) -> None:
    before = len(heard)
    outbox.put(peer, Ask(request, heard.append), deadline_ms)
    assert len(heard) == before, "heard of it within the call"


def test_the_first_request_opens_a_line_and_all_go_out_in_the_newest_common_version(
    outbox: Outbox, wires: Wires
) -> None:
    heard: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard)
    ask(outbox, m.DescribeClusterRequest(), heard)
    (line,) = wires.connected
    assert not wires.sent
    wires.greet(line)
    assert [row[:2] for row in wires.sent] == [(3, 12), (60, 1)]
    ask(outbox, m.ListGroupsRequest(), heard)
    assert wires.sent[-1][:2] == (16, 5)
    wires.answer(line, m.MetadataResponse(cluster_id="a"))
    wires.answer(line, m.DescribeClusterResponse(cluster_id="b"))
    wires.answer(line, m.ListGroupsResponse())
    assert [type(answer) for answer in heard] == [
        m.MetadataResponse,
        m.DescribeClusterResponse,
        m.ListGroupsResponse,
    ]
    outbox.tick(2 * LATER)
    assert len(heard) == 3 and not wires.closed


def test_a_request_that_the_peer_does_not_know_is_lost_with_the_next_tick(outbox: Outbox, wires: Wires) -> None:
    heard: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard)
    wires.greet(wires.connected[0])
    ask(outbox, m.DescribeQuorumRequest(), heard)
    assert outbox.next_deadline_ms() == 0.0
    outbox.tick(1.0)
    (lost,) = heard
    assert "DescribeQuorumRequest" in lost.reason and str(PEER) in lost.reason
    wires.answer(wires.connected[0], m.MetadataResponse())
    assert isinstance(heard[1], m.MetadataResponse)


def test_what_a_version_cannot_carry_is_lost_and_the_line_goes_on(outbox: Outbox, wires: Wires) -> None:
    heard: list[Any] = []
    ask(outbox, m.FindCoordinatorRequest("x", 1), heard)  # version 0 knows coordinators of groups alone
    wires.connected[0].open()
    wires.answer(wires.connected[0], m.ApiVersionsResponse(0, [m.ApiVersionsResponse_ApiVersion(10, 0, 0)]))
    outbox.tick(1.0)
    assert isinstance(heard[0], Lost) and "FindCoordinatorRequest" in heard[0].reason
    ask(outbox, m.FindCoordinatorRequest("x", 0), heard)
    wires.answer(wires.connected[0], m.FindCoordinatorResponse())
    assert isinstance(heard[1], m.FindCoordinatorResponse)


@pytest.mark.parametrize("greeted", [False, True])
def test_a_broken_connection_loses_all_requests_once_and_the_next_one_connects_anew(
    outbox: Outbox, wires: Wires, greeted: bool
) -> None:
    heard: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard)
    ask(outbox, m.MetadataRequest([]), heard)
    (line,) = wires.connected
    if greeted:
        wires.greet(line)
    line.lose("reset")
    assert [answer.reason for answer in heard] == [f"{PEER}: reset"] * 2
    wires.sent.clear()
    ask(outbox, m.MetadataRequest([]), heard)
    assert wires.connected == [line, line]
    wires.greet(line)
    wires.answer(line, m.MetadataResponse())
    assert isinstance(heard[2], m.MetadataResponse)
    outbox.tick(2 * LATER)
    assert len(heard) == 3


def test_an_overdue_answer_ends_its_line_and_no_other(outbox: Outbox, wires: Wires) -> None:
    heard: list[Any] = []
    others: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard, deadline_ms=50.0)
    ask(outbox, m.MetadataRequest([]), heard)
    ask(outbox, m.MetadataRequest([]), others, OTHER)
    for line in wires.connected:
        wires.greet(line)
        wires.sent.clear()
    outbox.tick(49.0)
    assert not heard
    assert outbox.next_deadline_ms() == 50.0
    outbox.tick(50.0)
    assert [answer.reason for answer in heard] == [f"{PEER}: no answer in time"] * 2
    assert wires.closed == [wires.connected[0]] and not others


def test_whoever_hears_of_a_loss_may_ask_again_at_once(outbox: Outbox, wires: Wires) -> None:
    heard: list[Any] = []

    def again(outcome: Any) -> None:
        heard.append(outcome)
        if len(heard) < 3:
            outbox.put(PEER, Ask(m.MetadataRequest([]), again), LATER)

    outbox.put(PEER, Ask(m.MetadataRequest([]), again), LATER)
    for _ in range(3):
        wires.connected[-1].lose("refused")
    assert len(heard) == 3 and len(wires.connected) == 3


def test_all_lines_to_one_node_are_lost_and_another_may_be_asked_at_once(outbox: Outbox, wires: Wires) -> None:
    heard: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard, PEER)
    ask(outbox, m.MetadataRequest([]), heard, OTHER)
    third = Peer("127.0.0.1", 9095)
    again = Ask(m.MetadataRequest([]), lambda _: ask(outbox, m.MetadataRequest([]), heard, third))
    outbox.put(Peer(PEER.host, PEER.port, "heartbeat"), again, LATER)
    outbox.hang_up((PEER.host, PEER.port), "it is not active any more")
    assert heard == [Lost("127.0.0.1:9093: it is not active any more")]
    assert [line.peer.port for line in wires.closed] == [9093, 9093]
    assert [line.peer.port for line in wires.connected] == [9093, 9094, 9093, 9095]


def test_a_line_holds_a_bounded_number_of_requests(outbox: Outbox) -> None:
    heard: list[Any] = []
    for _ in range(MOST_WAITING + 1):
        ask(outbox, m.MetadataRequest([]), heard)
    outbox.tick(1.0)
    (lost,) = heard
    assert "wait already" in lost.reason


def test_a_stop_loses_everything(outbox: Outbox, wires: Wires) -> None:
    heard: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard)
    ask(outbox, m.MetadataRequest([]), heard, OTHER)
    outbox.close()
    assert len(heard) == 2 and wires.closed == wires.connected


@pytest.mark.parametrize("case", ["unasked", "another's", "cut short", "refused"])
def test_an_answer_that_makes_no_sense_is_the_peers_fault(outbox: Outbox, wires: Wires, case: str) -> None:
    heard: list[Any] = []
    ask(outbox, m.MetadataRequest([]), heard)
    (line,) = wires.connected
    if case == "refused":
        line.open()
        with pytest.raises(WireError, match="error 35"):
            wires.answer(line, m.ApiVersionsResponse(35))
        return
    wires.greet(line)
    if case == "unasked":
        wires.answer(line, m.MetadataResponse())
    body = codec.encode(m.MetadataResponse(), 12)
    frame = (7 if case == "another's" else 1).to_bytes(4) + b"\0" + body
    with pytest.raises(WireError):
        line.receive(memoryview(frame[:9] if case == "cut short" else frame))


@dataclass
class Elsewhere:
    """Another thread, as it were: it runs what was submitted when the test says so."""

    jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = field(default_factory=list)

    def submit(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((work, done))

    def run(self) -> None:
        work, done = self.jobs.pop(0)
        try:
            outcome = work()
        except Exception as error:
            outcome = error
        done(outcome)


def exchange(begun: list[str], failure: str = "") -> Generator[bytes, bytes, None]:
    """Ask somebody for a ticket, then show it."""
    begun.append("asked")
    if failure:
        raise LoginFailed(failure)
    yield b"ticket"


def logging_in(outbox: Outbox, wires: Wires, begun: list[str], failure: str = "") -> tuple[Line, Elsewhere, list[Any]]:
    """Ask a peer that wants a login, up to where the login begins in another thread."""
    elsewhere, heard = Elsewhere(), list[Any]()
    outbox.logins, outbox.login = elsewhere, lambda _: ("GSSAPI", exchange(begun, failure))
    ask(outbox, m.MetadataRequest([]), heard)
    (line,) = wires.connected
    wires.greet(line)
    wires.answer(line, m.SaslHandshakeResponse(0, ["GSSAPI"]))
    assert (wires.sent, begun, len(elsewhere.jobs)) == ([], [], 1)
    return line, elsewhere, heard


def test_a_login_begins_in_another_thread_and_then_requests_go_out(outbox: Outbox, wires: Wires) -> None:
    line, elsewhere, heard = logging_in(outbox, wires, [])
    elsewhere.run()
    assert [key for key, _, _ in wires.sent] == [36]
    wires.answer(line, m.SaslAuthenticateResponse(0, None, b"", 0))
    wires.answer(line, m.MetadataResponse())
    assert isinstance(heard[0], m.MetadataResponse)


def test_a_login_that_fails_loses_the_line(outbox: Outbox, wires: Wires) -> None:
    line, elsewhere, heard = logging_in(outbox, wires, [], "no KDC answers")
    elsewhere.run()
    assert wires.closed == [line] and "no KDC answers" in heard[0].reason


def test_a_login_is_forgotten_with_its_connection(outbox: Outbox, wires: Wires) -> None:
    begun: list[str] = []
    line, elsewhere, heard = logging_in(outbox, wires, begun)
    line.lose("reset")
    ask(outbox, m.MetadataRequest([]), heard)
    wires.greet(line)
    wires.answer(line, m.SaslHandshakeResponse(0, ["GSSAPI"]))
    elsewhere.run()  # that of the first connection
    assert (wires.sent, begun) == ([], [])
    elsewhere.run()
    assert ([key for key, _, _ in wires.sent], begun) == ([36], ["asked"])
