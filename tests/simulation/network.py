"""The network between the clients and the node, and the part of the rim that matters: who may hand over a frame when.

A `Link` is one connection. Requests and answers travel with random delays, in order. When it is cut, the client knows
at once; the node still gets some of the requests that were on their way, and then learns of it. So a request may take
effect long after its client has sent it again over another link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from moldau.broker.connection import Connection
from moldau.wire import codec, frames
from moldau.wire import messages as m

if TYPE_CHECKING:
    from tests.simulation.world import World

GARBAGE = 0xEE

Answered = Callable[[Any], None]
Lost = Callable[[], None]


class Link:
    """One connection, both of its ends."""

    def __init__(self, world: World, client: str, number: int) -> None:
        self.world = world
        self.client = client
        self.connection = Connection(number, peer=client, on_ready=self.ready)
        self.inbox: deque[bytes] = deque()
        self.open = True  # the client's end
        self.served = True  # the node's end
        self.blocked = False
        self.to_come: float = float("inf")  # requests that still arrive, once the link is cut
        self.last_request = self.last_answer = 0.0
        self.on_frame: Callable[[bytes], None] = lambda frame: None
        self.on_cut: Callable[[], None] = lambda: None
        world.node.connect(self.connection)

    def send(self, frame: bytes) -> None:
        self.last_request = max(self.last_request, self.world.clock.now + self.world.delay())
        self.world.events.at(self.last_request, lambda: self.arrive(frame))

    def arrive(self, frame: bytes) -> None:
        if self.served and self.to_come > 0:
            self.to_come -= 1
            self.inbox.append(frame)
            self.world.settle(self)

    def ready(self, connection: Connection) -> None:
        """The node's call."""
        self.world.ready.append(self)

    def held_up(self) -> bool:
        if self.blocked or self.connection.closing is not None:
            return True
        return bool(self.inbox) and not self.connection.takes(self.inbox[0][4:6])

    def go_on(self) -> None:
        """Hand over what may be handed over, and write what is there."""
        if not self.served:
            return
        self.flush()
        while self.inbox and not self.held_up():
            buffer = bytearray(self.inbox.popleft())
            self.world.counts["requests read while others wait"] += bool(self.connection.pending)
            self.world.node.receive(self.connection, memoryview(buffer)[4:])
            buffer[:] = bytes([GARBAGE]) * len(buffer)  # the node must not keep a view of it
            if self.connection.pending:
                self.world.wake_by(self.connection.next_deadline_ms())
            self.flush()

    def flush(self) -> None:
        """Write the answers, unless the client reads slowly; pieces of files are read only now."""
        world, out = self.world, self.connection.out
        if self.blocked:
            return
        if out and world.random.random() < world.plan.slow_reader:
            self.blocked = True
            world.events.after(world.delay() * 4, self.unblock)
            return
        if out:
            data = b"".join(part if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in out)
            out.clear()
            self.answer(data)
        if self.connection.closing is not None and self.connection.wait is None:
            self.hang_up()

    def unblock(self) -> None:
        self.blocked = False
        self.world.settle(self)

    def answer(self, data: bytes) -> None:
        """Send whole frames to the client."""
        position = 0
        while position < len(data):
            size = int.from_bytes(data[position : position + 4])
            frame = data[position + 4 : position + 4 + size]
            assert len(frame) == size, "a log file is shorter than it was"
            self.last_answer = max(self.last_answer, self.world.clock.now + self.world.delay())
            self.world.events.at(self.last_answer, lambda frame=frame: self.deliver(frame))
            position += 4 + size
        self.world.tempt_power(self.last_answer)

    def deliver(self, frame: bytes) -> None:
        if self.open:
            self.on_frame(frame)

    def hang_up(self) -> None:
        """The node ends the connection; the client sees it after all answers."""
        if self.served:
            self.world.node.disconnect(self.connection)
            self.served = False
            self.last_answer = max(self.last_answer, self.world.clock.now + self.world.delay())
            self.world.events.at(self.last_answer, self.cut)

    def cut(self) -> None:
        """The client's end is gone; what it has sent may still arrive, or not."""
        if not self.open:
            return
        self.open = False
        self.to_come = self.world.random.choice((0, 0, 1, 3))
        self.on_cut()
        self.world.events.after(self.world.delay() * 3, self.notice)

    def notice(self) -> None:
        if self.served:
            self.served = False
            self.world.node.disconnect(self.connection)

    def lose_node(self) -> None:
        """The node is gone; so is what was on its way."""
        self.served = False
        if self.open:
            self.open = False
            self.world.events.after(self.world.delay(), self.on_cut)


class Peer:
    """A client's connection, made again when it is lost. Each call is answered or lost, in order."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.link: Link | None = None
        self.numbers = count()
        self.pending: dict[int, tuple[int, int, Answered, Lost]] = {}

    def call(self, request: Any, version: int, answered: Answered, lost: Lost) -> None:
        """Send a request. If there is no node to connect to, it is lost a little later."""
        link = self.link or self.connect()
        if link is None:
            self.world.events.after(self.world.delay() * 2, lost)
            return
        number = next(self.numbers)
        self.pending[number] = (request.SCHEMA.key, version, answered, lost)
        link.send(frames.request_frame(request, version, number, self.name))

    def tell(self, request: Any, version: int) -> bool:
        """Send a request that has no answer (acks=0); False when there is nobody to send it to."""
        link = self.link or self.connect()
        if link is not None:
            link.send(frames.request_frame(request, version, next(self.numbers), self.name))
        return link is not None

    def connect(self) -> Link | None:
        self.link = self.world.connect(self.name)
        if self.link is not None:
            self.link.on_frame, self.link.on_cut = self.answered, self.lost
        return self.link

    def answered(self, frame: bytes) -> None:
        number = int.from_bytes(frame[:4], signed=True)
        first = next(iter(self.pending))
        assert number == first, f"{self.name} got answer {number} before {first}"
        key, version, answered, _ = self.pending.pop(number)
        _, position = frames.response_header(key, version, frame)
        answered(codec.decode(m.response_class(key), version, memoryview(frame), position))

    def hang_up(self) -> None:
        """The client is gone."""
        if self.link is not None:
            self.link.cut()

    def lost(self) -> None:
        self.link = None
        calls = list(self.pending.values())
        self.pending.clear()
        for _, _, _, lost in calls:
            lost()
