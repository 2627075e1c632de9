"""The network between the machines of a world, and from its clients to them.

A `Link` is one connection. What is sent in one direction arrives in order, each frame after a delay of its own. A cut
is of a direction between two machines: nothing is lost by it, since TCP sends again, but nothing arrives before it is
mended. A process that dies is noticed by the other end of its connections, unless a cut or a machine without power
keeps that secret.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

from moldau.broker.connection import Connection

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

CLIENTS = 0  # the place of all clients
CLIENT_PORT, CONTROLLER_PORT = 9092, 9093
LISTENERS = {CLIENT_PORT: "PLAINTEXT", CONTROLLER_PORT: "CONTROLLER"}
GARBAGE = 0xEE

Call = Callable[[], None]


def host_name(place: int) -> str:
    return f"10.0.0.{place}"


class End(Protocol):
    """Who is at an end of a connection: a process, or the clients."""

    place: int

    def run(self, call: Call) -> None:
        """Do something there: later if it is paused, never if it is gone."""
        ...


class Outside:
    """The clients' end: they are never paused and never gone."""

    place = CLIENTS

    def run(self, call: Call) -> None:
        call()


class Fabric:
    """Which ways are open and how slow they are, and all connections."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cuts: dict[tuple[int, int], int] = {}  # how many faults keep a direction closed
        self.slow: dict[tuple[int, int], float] = {}
        self.stuck: list[Way] = []
        self.links: list[Link] = []
        self.numbers = count(1)

    def delay(self, source: int, target: int) -> float:
        delay = self.world.random.uniform(0.05, self.world.plan.latency_ms)
        return delay * self.slow.get((source, target), 1.0)

    def is_cut(self, source: int, target: int) -> bool:
        return (source, target) in self.cuts

    def cut(self, ways: list[tuple[int, int]]) -> None:
        for way in ways:
            self.cuts[way] = self.cuts.get(way, 0) + 1

    def mend(self, ways: list[tuple[int, int]]) -> None:
        for way in ways:
            self.cuts[way] -= 1
            if not self.cuts[way]:
                del self.cuts[way]
        self.release()

    def mend_all(self) -> None:
        self.cuts.clear()
        self.slow.clear()
        self.release()

    def release(self) -> None:
        stuck, self.stuck = self.stuck, []
        for way in stuck:
            way.release()

    def connect(self, source: End, place: int, port: int, opened: Callable[[Link], None], refused: Call) -> None:
        """Try to connect; neither is called where nobody answers."""
        Way(self, source.place, place).send(lambda: self.knock(source, place, port, opened, refused))

    def knock(self, source: End, place: int, port: int, opened: Callable[[Link], None], refused: Call) -> None:
        """A request for a connection arrives at a machine."""
        host, back = self.world.hosts[place], Way(self, place, source.place, source)
        if not host.has_power:
            return
        if host.process is None or (port == CLIENT_PORT and not host.process.is_open):
            back.send(refused)
            return
        link = Link(self, source, host.process, port)
        self.links.append(link)
        host.process.links.append(link)
        back.send(lambda: opened(link))


class Way:
    """One direction between two places. `end` is who takes what arrives; without one it is the fabric itself."""

    def __init__(self, fabric: Fabric, source: int, target: int, end: End | None = None) -> None:
        self.fabric = fabric
        self.source = source
        self.target = target
        self.end = end
        self.last_ms = 0.0
        self.held: deque[Call] = deque()

    def send(self, deliver: Call) -> None:
        events = self.fabric.world.events
        delay = self.fabric.delay(self.source, self.target)
        self.last_ms = max(self.last_ms, events.clock.now + delay)
        events.at(self.last_ms, partial(self.arrive, deliver))

    def arrive(self, deliver: Call) -> None:
        if self.held or self.fabric.is_cut(self.source, self.target):
            if not self.held:
                self.fabric.stuck.append(self)
            self.held.append(deliver)
        else:
            self.hand_over(deliver)

    def hand_over(self, deliver: Call) -> None:
        if self.end is None:
            deliver()
        else:
            self.end.run(deliver)

    def release(self) -> None:
        """A cut was mended."""
        if self.fabric.is_cut(self.source, self.target):
            self.fabric.stuck.append(self)
            return
        held, self.held = self.held, deque()
        for deliver in held:
            self.hand_over(deliver)


class Link:
    """One connection, with both of its ends."""

    def __init__(self, fabric: Fabric, source: End, target: Process, port: int) -> None:
        number = next(fabric.numbers)
        self.fabric = fabric
        self.target = target
        self.source = source
        self.is_controller = port == CONTROLLER_PORT
        peer = f"{host_name(source.place)}:{40_000 + number % 20_000}"
        self.connection = Connection(
            number, LISTENERS[port], peer, on_ready=self.ready, is_controller=self.is_controller
        )
        self.inbox: deque[bytes] = deque()
        self.is_open = True  # the end of whoever has opened it
        self.is_served = True  # the end of the process that serves it
        self.requests = Way(fabric, source.place, target.place, target)
        self.answers = Way(fabric, target.place, source.place, source)
        self.on_frame: Callable[[bytes], None] = lambda frame: None
        self.on_cut: Call = lambda: None
        target.node.connect(self.connection)

    # The end of whoever has opened it.

    def send(self, frame: bytes) -> None:
        self.requests.send(lambda: self.arrive(frame))

    def deliver(self, frame: bytes) -> None:
        if self.is_open:
            self.on_frame(frame)

    def close(self) -> None:
        """Hang up; what was sent before still arrives."""
        self.is_open = False
        self.requests.send(self.notice)

    def lose(self) -> None:
        """The other end is gone."""
        if self.is_open:
            self.is_open = False
            self.on_cut()

    # The end of the process.

    def arrive(self, frame: bytes) -> None:
        if self.is_served:
            self.inbox.append(frame)
            self.target.settle(self)

    def ready(self, connection: Connection) -> None:
        self.target.ready.append(self)

    def is_held_up(self) -> bool:
        takes = self.connection.closing is None and self.connection.takes(self.inbox[0][4:6])
        return not takes or not (self.is_controller or self.target.accepts)

    def go_on(self) -> None:
        """Hand over what may be handed over, and write what is there."""
        if not self.is_served:
            return
        self.flush()
        while self.is_served and self.inbox and not self.is_held_up():
            buffer = bytearray(self.inbox.popleft())
            self.target.node.receive(self.connection, memoryview(buffer)[4:])
            buffer[:] = bytes([GARBAGE]) * len(buffer)  # the node must not keep a view of it
            if self.connection.pending:
                self.target.wake_by(self.connection.next_deadline_ms())
            self.flush()

    def flush(self) -> None:
        out = self.connection.out
        if out:
            data = b"".join(part if isinstance(part, bytes | bytearray | memoryview) else part.read() for part in out)
            out.clear()
            self.answer(data)
        if self.connection.closing is not None and self.connection.wait is None:
            self.hang_up()

    def answer(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            size = int.from_bytes(data[position : position + 4])
            frame = data[position + 4 : position + 4 + size]
            assert len(frame) == size, "a log file is shorter than it was"
            self.answers.send(partial(self.deliver, frame))
            position += 4 + size

    def hang_up(self) -> None:
        """The process ends the connection; the other end sees that after all answers."""
        if self.is_served:
            self.end_service()
            self.answers.send(self.lose)

    def notice(self) -> None:
        """The other end has hung up."""
        if self.is_served:
            self.end_service()

    def end_service(self) -> None:
        self.is_served = False
        self.target.links.remove(self)
        if self in self.fabric.links:
            self.fabric.links.remove(self)
        self.target.node.disconnect(self.connection)
        self.target.settle()

    # Faults.

    def forget_process(self, loud: bool) -> None:
        """The process is dead; a machine that still runs says so."""
        self.is_served = False
        if self in self.fabric.links:
            self.fabric.links.remove(self)
        if loud:
            self.answers.send(self.lose)

    def reset(self, is_lost: bool, is_noticed: bool) -> None:
        """Break the connection for whoever opened it, for the process, or both; what was on its way still arrives."""
        if is_lost:
            self.answers.send(self.lose)
        if is_noticed:
            self.requests.send(self.notice)
