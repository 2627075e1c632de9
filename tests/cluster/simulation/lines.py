"""The connections that a process opens to others: `outbox.Network` over the fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.broker.outbox import Line
from moldau.wire.errors import WireError
from tests.cluster.simulation.fabric import Link
from tests.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.process import Process


class Lines:
    """Connects the lines of one process. What arrives after its death is nobody's."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.links: dict[Line, Link | None] = {}  # None: on its way
        self.attempts: dict[Line, int] = {}
        self.serial = 0

    def connect(self, line: Line) -> None:
        self.serial += 1
        serial = self.serial
        self.links[line], self.attempts[line] = None, serial
        place = int(line.peer.host.rpartition(".")[2])
        self.process.world.fabric.connect(
            self.process,
            place,
            line.peer.port,
            lambda link: self.opened(line, serial, link),
            lambda: self.lose(line, serial, None, "refused", is_refused=True),
        )

    def opened(self, line: Line, serial: int, link: Link) -> None:
        if self.attempts.get(line) != serial:  # it has hung up meanwhile
            link.close()
            return
        self.links[line] = link
        link.on_frame = lambda frame: self.receive(line, link, frame)
        link.on_cut = lambda: self.lose(line, serial, link, "cut")
        if not link.is_open:
            self.lose(line, serial, link, "cut")
            return
        line.open()
        self.process.heard()

    def write(self, line: Line) -> None:
        link = self.links[line]
        assert link is not None
        for frame in line.out:
            link.send(frame)
        line.out.clear()

    def close(self, line: Line) -> None:
        link = self.links.pop(line)
        self.attempts.pop(line)
        if link is not None:
            link.close()

    def receive(self, line: Line, link: Link, frame: bytes) -> None:
        if self.links.get(line) is link:
            try:
                line.receive(memoryview(frame))
            except WireError as error:
                raise Broken(Property.ANSWERS, f"{self.process} got nonsense of {line.peer}: {error}") from error
            self.process.heard()

    def lose(self, line: Line, serial: int, link: Link | None, reason: str, *, is_refused: bool = False) -> None:
        """A connection is gone; it was refused if no process listens where it led to."""
        if self.attempts.get(line) == serial and self.links[line] is link:
            del self.links[line], self.attempts[line]
            line.lose(reason, is_refused=is_refused)
            self.process.heard()
