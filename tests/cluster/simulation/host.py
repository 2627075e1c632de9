"""A machine of the cluster: its disk, its clock, and the process that runs on it, if one does."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from moldau.broker.storage import StartError
from moldau.settings import Settings
from tests.cluster.simulation.process import Call, HostClock, Process
from tests.cluster.simulation.properties import Broken, Property
from tests.simulation.disk import Crash, Machine, SimDisk

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

DATA = "/disk1"


class Host:
    """A machine. It outlives its processes; without power it answers nothing."""

    def __init__(self, world: World, place: int, votes: bool, settings: Settings) -> None:
        random = world.random
        self.world = world
        self.place = place
        self.votes = votes
        self.settings = settings
        self.clock = HostClock(world.clock, random.choice((1.0, 1.0, 0.95, 1.04)), random.choice((0, -700, 3000)))
        self.machine = Machine(random, self.clock.wall_ms, world.counts)
        self.process: Process | None = None
        self.has_power = True
        self.is_paused = False
        self.is_restarting = False
        self.lives = 0
        self.deferred: deque[tuple[Process, Call]] = deque()
        self.format()

    def __str__(self) -> str:
        return f"node {self.place}"

    def format(self) -> None:
        """Write what `kafka-storage format` writes."""
        disk = SimDisk(self.machine)
        disk.mkdir(DATA)
        directory = f"AAAAAAAAAAAAAAAAAAAA{self.place}g"
        lines = [
            "version=1",
            f"cluster.id={self.world.cluster_id}",
            f"node.id={self.place}",
            f"directory.id={directory}",
        ]
        disk.write_atomic(f"{DATA}/meta.properties", "\n".join(lines).encode())
        self.machine.root.sync_all()

    @property
    def is_up(self) -> bool:
        return self.process is not None

    def start(self) -> None:
        """Start a process; it may die within its start."""
        if self.process is not None:
            return
        self.has_power, self.is_restarting = True, False
        self.lives += 1
        self.world.note(f"{self} starts")
        self.world.counts["starts"] += 1
        try:
            Process.running = process = self.process = Process(self)
            process.start()
        except StartError as error:
            raise Broken(Property.COMES_UP, f"{self} refuses to start: {error}") from error
        except Crash:
            self.crashed()

    def restart_later(self) -> None:
        if not self.is_restarting:
            self.is_restarting = True
            self.world.events.after(self.world.random.choice((5, 50, 500, 2000)), self.start)

    def crashed(self) -> None:
        """The process died within a step of the disk."""
        self.world.counts["crashes within a step of the disk"] += 1
        self.kill()

    def kill(self) -> None:
        """The process is gone; what it has written is there."""
        self.world.note(f"{self} is killed")
        self.world.counts["kills"] += 1
        self.end(loud=True)

    def lose_power(self) -> None:
        """The machine is gone, and with it what was not synced."""
        self.world.note(f"{self} loses power")
        self.world.counts["power losses"] += 1
        self.has_power = False
        self.end(loud=False)
        self.machine.lose_power()

    def stop(self) -> None:
        """Begin a clean stop."""
        if self.process is not None and not self.process.is_stopping:
            self.world.note(f"{self} is told to stop")
            self.world.counts["stops"] += 1
            self.process.leave()

    def stopped(self) -> None:
        self.world.note(f"{self} has stopped")
        self.end(loud=True)

    def end(self, loud: bool) -> None:
        process, self.process = self.process, None
        self.machine.fuse = None
        self.is_paused = False
        self.deferred.clear()
        if process is not None:
            process.end(loud)
            self.world.checker.forget(self)
        self.restart_later()

    def pause(self) -> None:
        self.world.note(f"{self} is paused")
        self.world.counts["pauses"] += 1
        self.is_paused = True

    def resume(self) -> None:
        """Go on: what came in the meantime is done at once."""
        if self.is_paused:
            self.world.note(f"{self} goes on")
            self.is_paused = False
            while self.deferred and not self.is_paused:
                process, call = self.deferred.popleft()
                process.run(call)
