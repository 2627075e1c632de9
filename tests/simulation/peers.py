"""The node's own requests to others, over the simulated network. There is one node so far: it can only ask itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.broker.outbox import Line

if TYPE_CHECKING:
    from tests.simulation.network import Link
    from tests.simulation.world import World


class SimPeers:
    """Connects the lines of one life of the node. What arrives after its death is nobody's."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.links: dict[Line, Link | None] = {}  # None: on its way
        self.gone = False

    def connect(self, line: Line) -> None:
        self.links[line] = None
        self.world.events.after(self.world.delay(), lambda: self.arrive(line))

    def arrive(self, line: Line) -> None:
        if self.gone or self.links.get(line, self) is not None:  # hung up meanwhile
            return
        link = self.world.connect(f"peer {line.peer}")
        if link is None:
            self.lose(line, None, "refused")
            return
        self.links[line] = link
        link.on_frame = lambda frame: self.receive(line, link, frame)
        link.on_cut = lambda: self.lose(line, link, "cut")
        line.open()

    def write(self, line: Line) -> None:
        link = self.links[line]
        assert link is not None
        for frame in line.out:
            link.send(frame)
        line.out.clear()

    def close(self, line: Line) -> None:
        link = self.links.pop(line)
        if link is not None:
            link.cut()

    def receive(self, line: Line, link: Link, frame: bytes) -> None:
        if not self.gone and self.links.get(line) is link:
            line.receive(memoryview(frame))
            self.world.settle()

    def lose(self, line: Line, link: Link | None, reason: str) -> None:
        if not self.gone and line in self.links and self.links[line] is link:
            del self.links[line]
            line.lose(reason)
            self.world.settle()
