"""The rim with a node of a few lines behind it: order, bounds, limits and the end."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from moldau.broker.connection import PENDING_ANSWERS, Connection
from moldau.broker.rim.background import Inline, Worker
from moldau.broker.rim.server import Server
from moldau.broker.rim.transport import HELD_LIMIT, SENDFILE_FROM, SHARED_SIZE
from moldau.broker.wait import Wait
from moldau.log.disk import OsDisk, Span
from moldau.settings import Settings
from moldau.wire.errors import WireError

MEGABYTE = 1 << 20


class Clock:
    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000


@dataclass
class EchoNode:
    """Answers a frame with itself. The first eight bytes may ask for something else."""

    file: Any = None
    settings: Settings = field(default_factory=Settings.load)
    background: Inline | Worker = field(default_factory=Inline)
    connections: dict[int, Connection] = field(default_factory=dict)
    received: list[int] = field(default_factory=list)
    largest: int = 0
    stopped: bool = False

    def connect(self, connection: Connection) -> None:
        self.connections[connection.id] = connection

    def disconnect(self, connection: Connection) -> None:
        del self.connections[connection.id]

    def receive(self, connection: Connection, frame: memoryview) -> None:
        order = bytes(frame[:8])
        self.received.append(connection.id)
        self.largest = max(self.largest, len(frame))
        assert not frame.readonly
        match order:
            case b"park____":
                self.park(connection, 60_000)
            case b"parkfor1":
                self.park(connection, 1)
            case b"\0\0append":
                self.park(connection, 60_000, applied=True)
            case b"wake____":
                self.wake()
                self.reply(connection, b"woke")
            case b"garbage_":
                raise WireError("this is garbage")
            case b"hang_up_":
                self.reply(connection, b"bye")
                connection.closing = "asked to"
            case b"span____":
                position, size = struct.unpack(">qq", frame[8:24])
                connection.out += [struct.pack(">i", size), Span(self.file, position, size)]
            case b"\0\0hangup":
                connection.closing = "asked to"
            case b"\0\0faulty":
                raise WireError("this is garbage")
            case b"silence_":
                pass
            case _:
                self.reply(connection, bytes(frame))

    def park(self, connection: Connection, delay_ms: float, applied: bool = False) -> None:
        connection.park(Wait(Clock().monotonic_ms() + delay_ms, lambda expired: None, applied=applied), 8)

    def reply(self, connection: Connection, body: bytes) -> None:
        connection.write([struct.pack(">i", len(body)) + body])

    def wake(self) -> None:
        for connection in self.connections.values():
            for pending in tuple(connection.pending):
                if pending.wait is not None:
                    connection.answer(pending, [struct.pack(">i", 5) + b"awake"])

    def tick(self) -> float:
        now = Clock().monotonic_ms()
        if any(c.wait is not None and c.wait.deadline_ms <= now for c in self.connections.values()):
            self.wake()
        return 1000.0

    def stop(self) -> None:
        self.stopped = True
        self.wake()


@dataclass(slots=True)
class Running:
    """A server in a thread of its own, and how to reach it."""

    node: EchoNode
    server: Server
    loop: asyncio.AbstractEventLoop
    port: int

    def connect(self) -> Client:
        return Client(socket.create_connection(("127.0.0.1", self.port), 10))

    def call(self, function: Callable[[], Any]) -> Any:
        """Run something on the server's thread."""

        async def run() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(60)

    def eventually(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not self.call(condition):
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.005)


class Client:
    """A raw client."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, *bodies: bytes) -> None:
        self.sock.sendall(b"".join(struct.pack(">i", len(body)) + body for body in bodies))

    def exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def read(self) -> bytes:
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def is_closed(self) -> bool:
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


@contextmanager
def running(node: EchoNode | None = None, loop: str = "uvloop", **limits: str) -> Iterator[Running]:
    node = node or EchoNode()
    node.settings = Settings.load({name.replace("_", "."): value for name, value in limits.items()})
    event_loop = uvloop.new_event_loop() if loop == "uvloop" else asyncio.new_event_loop()
    server = Server(node, Clock(), event_loop)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        server.listen(listening, SimpleNamespace(name="PLAINTEXT", is_controller=False))
        event_loop.call_soon(server.start)
        thread = threading.Thread(target=event_loop.run_forever)
        thread.start()
        try:
            yield Running(node, server, event_loop, port)
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), event_loop).result(60)
            event_loop.call_soon_threadsafe(event_loop.stop)
            thread.join()
            event_loop.close()


def test_who_comes_before_the_server_is_open_is_refused_and_afterwards_waits() -> None:
    loop = asyncio.new_event_loop()
    server = Server(EchoNode(), Clock(), loop)
    with closing(socket.socket()) as bound, closing(loop):
        bound.bind(("127.0.0.1", 0))
        server.listen(bound, SimpleNamespace(name="PLAINTEXT", is_controller=False))
        loop.call_soon(server.start, False)
        loop.run_until_complete(asyncio.sleep(0))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(bound.getsockname())
        server.open()
        with closing(socket.create_connection(bound.getsockname())):
            assert not server.channels
            server.accept()
            loop.run_until_complete(asyncio.sleep(0.01))
            assert len(server.channels) == 1
            loop.run_until_complete(server.stop())


@pytest.fixture(params=["uvloop", "asyncio"])
def rim(request: pytest.FixtureRequest) -> Iterator[Running]:
    with running(loop=request.param) as it:
        yield it


APPEND = b"\0\0append"


def frame(number: int, size: int = 8) -> bytes:
    """Of the key of Produce."""
    return struct.pack(">q", number).ljust(size, b".")


def test_pipelined_frames_are_answered_in_order(rim: Running) -> None:
    with rim.connect() as client:
        frames = [frame(n, 8 + n % 300) for n in range(5000)]
        threading.Thread(target=client.send, args=frames).start()
        assert [client.read() for _ in frames] == frames


@pytest.mark.parametrize(
    "size", [8, SHARED_SIZE - 5, SHARED_SIZE - 4, SHARED_SIZE - 3, SHARED_SIZE + 1, 3 * MEGABYTE + 7]
)
def test_a_frame_of_any_size_arrives_whole_with_its_neighbours(rim: Running, size: int) -> None:
    with rim.connect() as client:
        frames = [frame(1), frame(2, size), frame(3), frame(4, size), frame(5)]
        threading.Thread(target=client.send, args=frames).start()
        assert [client.read() for _ in frames] == frames


def test_a_frame_may_arrive_byte_by_byte(rim: Running) -> None:
    with rim.connect() as client:
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in struct.pack(">i", 20) + frame(7, 20):
            client.sock.send(bytes([byte]))
            time.sleep(0.001)
        assert client.read() == frame(7, 20)


def test_frames_behind_a_parked_request_wait_for_it(rim: Running) -> None:
    with rim.connect() as client, rim.connect() as other:
        client.send(b"park____", frame(1), frame(2))
        rim.eventually(lambda: any(c.wait for c in rim.node.connections.values()))
        other.send(b"wake____")
        assert other.read() == b"woke"
        assert [client.read() for _ in range(3)] == [b"awake", frame(1), frame(2)]


def applied(rim: Running) -> int:
    """How many frames the node has taken."""
    return rim.call(lambda: len(rim.node.received))


def test_frames_are_read_on_while_answers_of_produces_wait(rim: Running) -> None:
    with rim.connect() as client, rim.connect() as other:
        client.send(APPEND, frame(1), APPEND, frame(2), b"other___", frame(3))
        rim.eventually(lambda: len(rim.node.received) == 4)
        client.send(APPEND)  # after the other one, which waits for its turn
        other.send(frame(4))
        assert other.read() == frame(4)
        assert applied(rim) == 5
        other.send(b"wake____")
        assert other.read() == b"woke"
        expected = [b"awake", frame(1), b"awake", frame(2), b"other___", frame(3)]
        assert [client.read() for _ in expected] == expected
        rim.eventually(lambda: any(c.pending for c in rim.node.connections.values()))
        other.send(b"wake____")
        assert client.read() == b"awake"


@pytest.mark.parametrize("size", [SHARED_SIZE - 4, SHARED_SIZE + 1, MEGABYTE])
def test_a_large_produce_passes_and_another_large_frame_waits(rim: Running, size: int) -> None:
    with rim.connect() as client, rim.connect() as other:
        client.send(APPEND, frame(1, size))
        rim.eventually(lambda: len(rim.node.received) == 2)
        client.send(b"other___".ljust(size, b"."), frame(2))
        time.sleep(0.05)
        assert applied(rim) == 2
        other.send(b"wake____")
        expected = [b"awake", frame(1, size), b"other___".ljust(size, b"."), frame(2)]
        assert [client.read() for _ in expected] == expected


def test_no_more_answers_wait_than_allowed(rim: Running) -> None:
    count = 3 * PENDING_ANSWERS
    with rim.connect() as client, rim.connect() as other:
        client.send(*[APPEND] * count)
        for served in (1, 2, 3):
            rim.eventually(lambda served=served: len(rim.node.received) >= served * PENDING_ANSWERS + served - 1)
            assert applied(rim) == served * PENDING_ANSWERS + served - 1
            other.send(b"wake____")
            assert [client.read() for _ in range(PENDING_ANSWERS)] == [b"awake"] * PENDING_ANSWERS


def test_input_behind_too_many_answers_that_wait_is_bounded() -> None:
    with running(socket_receive_buffer_bytes="65536") as rim, rim.connect() as client, rim.connect() as other:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        client.sock.settimeout(1.5)
        sent = 0
        with pytest.raises(TimeoutError):
            while True:
                sent += client.sock.send(((struct.pack(">i", 8) + APPEND) * 1000)[sent % 12 :])
        channel = next(c for c in rim.server.channels.values() if c.connection.pending)
        assert HELD_LIMIT <= len(channel._held) <= SHARED_SIZE
        client.sock.settimeout(20)
        reader = threading.Thread(target=lambda: [client.read() for _ in range(sent // 12)])
        reader.start()
        deadline = time.monotonic() + 60
        while reader.is_alive() and time.monotonic() < deadline:
            other.send(b"wake____")
            assert other.read() == b"woke"
        assert not reader.is_alive()


@pytest.mark.parametrize("last", [b"\0\0faulty", b"\0\0hangup", b""])
def test_a_connection_ends_after_the_answers_that_wait(rim: Running, last: bytes) -> None:
    with rim.connect() as client, rim.connect() as other:
        client.send(APPEND, frame(1), last, frame(2))
        rim.eventually(lambda: any(c.connection.closing for c in rim.server.channels.values()))
        other.send(b"wake____")
        assert [client.read(), client.read()] == [b"awake", frame(1)]
        assert client.is_closed()


def test_a_client_may_leave_while_answers_wait(rim: Running) -> None:
    with rim.connect() as client:
        client.send(APPEND, APPEND)
        rim.eventually(lambda: len(rim.node.received) == 2)
    rim.eventually(lambda: not rim.node.connections)


def test_a_parked_request_ends_at_its_deadline(rim: Running) -> None:
    with rim.connect() as client:
        client.send(b"parkfor1", frame(1))
        assert client.read() == b"awake"
        assert client.read() == frame(1)


def test_one_event_wakes_many_connections_once_each(rim: Running) -> None:
    clients = [rim.connect() for _ in range(50)]
    for client in clients:
        client.send(b"park____", b"park____")
    rim.eventually(lambda: sum(c.wait is not None for c in rim.node.connections.values()) == 50)
    with rim.connect() as other:
        other.send(b"wake____")
        assert other.read() == b"woke"
        assert {client.read() for client in clients} == {b"awake"}
        rim.eventually(lambda: sum(c.wait is not None for c in rim.node.connections.values()) == 50)
    for client in clients:
        client.sock.close()


def test_input_behind_a_parked_request_is_bounded(rim: Running) -> None:
    with rim.connect() as client, rim.connect() as other:
        client.sock.settimeout(1.5)
        client.send(b"park____")
        rim.eventually(lambda: any(c.wait for c in rim.node.connections.values()))
        sent = 0
        with pytest.raises(TimeoutError):
            while True:
                sent += client.sock.send(struct.pack(">i", 8) + b"silence_")
        channel = next(c for c in rim.server.channels.values() if c.connection.wait)
        assert HELD_LIMIT <= len(channel._held) <= SHARED_SIZE
        client.sock.settimeout(20)
        other.send(b"wake____")
        assert other.read() == b"woke"
        assert client.read() == b"awake"
        client.sock.sendall((struct.pack(">i", 8) + b"silence_")[sent % 12 or 12 :])
        client.send(frame(3))
        assert client.read() == frame(3)


def test_a_client_that_never_reads_is_held_up_and_others_are_served(rim: Running) -> None:
    with rim.connect() as deaf, rim.connect() as other:
        deaf.sock.settimeout(1.5)
        body = frame(1, 64 * 1024)
        with pytest.raises(TimeoutError):
            while True:
                deaf.send(body)
        served = len(rim.node.received)
        other.send(frame(2))
        assert other.read() == frame(2)
        assert len(rim.node.received) == served + 1
        deaf_channel = max(rim.server.channels.values(), key=lambda c: sum(map(len, c.connection.out)))
        assert sum(map(len, deaf_channel.connection.out)) < MEGABYTE


def test_a_client_that_reads_late_gets_everything(rim: Running) -> None:
    with rim.connect() as client:
        frames = [frame(n, 50_000 + n) for n in range(400)]
        sender = threading.Thread(target=client.send, args=frames)
        sender.start()
        time.sleep(0.2)
        assert [client.read() for _ in frames] == frames
        sender.join()


@pytest.fixture
def data_file(tmp_path: Path) -> tuple[Any, bytes]:
    data = os.urandom(3 * MEGABYTE)
    (tmp_path / "data").write_bytes(data)
    return OsDisk().open(str(tmp_path / "data")), data


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_pieces_of_files_leave_in_order_with_other_answers(loop: str, data_file: tuple[Any, bytes]) -> None:
    file, data = data_file
    spans = [(0, 10), (5, SENDFILE_FROM), (9, SENDFILE_FROM + 1), (0, len(data)), (77, 2 * MEGABYTE), (1, 1)] * 3
    with running(EchoNode(file), loop) as rim, rim.connect() as client:
        bodies = [b"span____" + struct.pack(">qq", *span) for span in spans]
        client.send(*(part for pair in zip(bodies, map(frame, range(len(bodies))), strict=True) for part in pair))
        for number, (position, size) in enumerate(spans):
            assert client.read() == data[position : position + size]
            assert client.read() == frame(number)


def test_a_file_that_lost_its_end_closes_only_the_connection(data_file: tuple[Any, bytes]) -> None:
    file, data = data_file
    with running(EchoNode(file)) as rim, rim.connect() as client, rim.connect() as other:
        client.send(b"span____" + struct.pack(">qq", MEGABYTE, len(data)))
        with pytest.raises((EOFError, ConnectionResetError)):
            client.read()
        other.send(frame(1))
        assert other.read() == frame(1)


def test_bad_input_closes_the_connection_after_the_answers_before_it(
    rim: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with rim.connect() as client:
        client.send(frame(1), b"garbage_", frame(2))
        assert client.read() == frame(1)
        assert client.is_closed()
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        "closed a connection that sent bad input"
    ]


@pytest.mark.parametrize(
    ("start", "hint"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x7f\xff\xff\xff", ""),
        (b"\xff\xff\xff\xff", ""),
        (b"\x00\x00\x00\x00", ""),
        (b"\x00\x00\x00\x03abc", ""),
    ],
)
def test_what_is_no_frame_is_closed_with_one_line(
    rim: Running, start: bytes, hint: str, caplog: pytest.LogCaptureFixture
) -> None:
    with rim.connect() as client:
        client.sock.sendall(start)
        assert client.is_closed()
    lines = [record.__dict__["fields"] for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 1
    assert hint in lines[0].get("hint", "")


def test_a_flood_of_bad_input_writes_few_lines(rim: Running, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(100):
        with rim.connect() as client:
            client.sock.sendall(b"\xff" * 8)
            assert client.is_closed()
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) <= 10
    assert rim.server.counters.refused["bad input"] == 100


def test_a_claimed_length_allocates_nothing(rim: Running) -> None:
    with rim.connect() as client:
        client.sock.sendall(struct.pack(">i", 100 * MEGABYTE) + b"x" * 1000)
        rim.eventually(lambda: any(c._large for c in rim.server.channels.values()))
        channel = next(c for c in rim.server.channels.values() if c._large)
        assert channel._large is not None
        assert len(channel._large.view) <= 16 * 1024


def test_the_frame_limit_is_a_setting() -> None:
    with running(socket_request_max_bytes="1000") as rim, rim.connect() as client:
        client.send(frame(1, 1000))
        assert client.read() == frame(1, 1000)
        client.send(frame(1, 1001))
        assert client.is_closed()


def test_the_node_may_hang_up_after_its_answer(rim: Running) -> None:
    with rim.connect() as client:
        client.send(b"hang_up_")
        assert client.read() == b"bye"
        assert client.is_closed()
    rim.eventually(lambda: not rim.node.connections)


def test_idle_connections_are_closed_and_busy_ones_stay() -> None:
    with (
        running(connections_max_idle_ms="300") as rim,
        rim.connect() as idle,
        rim.connect() as half,
        rim.connect() as parked,
    ):
        half.sock.sendall(b"\x00\x00\x01")
        parked.send(b"park____")
        with rim.connect() as busy:
            deadline = time.monotonic() + 1
            while time.monotonic() < deadline:
                busy.send(frame(1))
                assert busy.read() == frame(1)
                time.sleep(0.01)
            assert idle.is_closed()
            assert half.is_closed()
            busy.send(b"wake____")
            assert parked.read() == b"awake"


def test_a_fault_of_the_node_closes_one_connection(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(EchoNode):
        def receive(self, connection: Connection, frame: memoryview) -> None:
            if bytes(frame[:8]) == b"fault___":
                raise ZeroDivisionError("ours")
            EchoNode.receive(self, connection, frame)

    with running(Faulty()) as rim, rim.connect() as client, rim.connect() as other, rim.connect() as third:
        for one in (client, third):
            one.send(b"park____", b"fault___" if one is client else frame(3))
        rim.eventually(lambda: sum(c.wait is not None for c in rim.node.connections.values()) == 2)
        other.send(b"wake____")
        assert other.read() == b"woke"
        assert [third.read(), third.read()] == [b"awake", frame(3)]
        assert client.is_closed()
        other.send(frame(1))
        assert other.read() == frame(1)
    assert "ZeroDivisionError: ours" in caplog.text


def test_stopping_answers_what_waits_and_writes_what_is_left() -> None:
    with running() as rim:
        client = rim.connect()
        late = rim.connect()
        client.send(b"park____")
        bodies = [frame(n, MEGABYTE) for n in range(8)]
        sender = threading.Thread(target=late.send, args=bodies)
        sender.start()
        rim.eventually(lambda: any(c.wait for c in rim.node.connections.values()))
        rim.eventually(lambda: len(rim.node.received) > 1)
        reader = threading.Thread(target=lambda: [late.read() for _ in rim.node.received[1:]])
        reader.start()
    assert rim.node.stopped
    assert client.read() == b"awake"
    assert client.is_closed()
    reader.join(60)
    late.sock.close()
    sender.join(60)


def test_stopping_waits_for_the_work_beside_the_node() -> None:
    events: list[str] = []
    with running() as rim:
        rim.node.background = Worker(lambda call: rim.server.post(call))
        rim.node.stop = lambda: events.append("stopped")  # type: ignore[method-assign]
        rim.call(lambda: rim.node.background.submit(lambda: time.sleep(0.2), lambda _: events.append("synced")))
    rim.node.background.close()
    assert events == ["synced", "stopped"]


def test_work_of_another_thread_reaches_the_connections(rim: Running) -> None:
    with rim.connect() as client:
        client.send(b"park____")
        rim.eventually(lambda: any(c.wait for c in rim.node.connections.values()))
        rim.server.post(rim.node.wake)
        assert client.read() == b"awake"
