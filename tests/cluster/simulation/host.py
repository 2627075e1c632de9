"""A machine of the cluster: its disk, its clock, and the process that runs on it, if one does."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from moldau.broker.storage import StartError
from moldau.cluster.voters import DYNAMIC, Endpoint, Voter, Voters, voter_records
from moldau.log.checkpoints import decode_id
from moldau.machines.metadata.checkpoints import checkpoint
from moldau.settings import Settings
from tests.cluster.simulation.disks import synced_end
from tests.cluster.simulation.fabric import CONTROLLER_PORT, LISTENERS, host_name
from tests.cluster.simulation.plan import DATA
from tests.cluster.simulation.process import Call, HostClock, Process
from tests.cluster.simulation.properties import Broken, Property
from tests.simulation.disk import Crash, Machine, SimDisk
from tests.simulation.media import Folder

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

METADATA = f"{DATA}/__cluster_metadata-0"
FIRST_SNAPSHOT = f"{0:020}-{0:010}.checkpoint"


class Host:
    """A machine. It outlives its processes; without power it answers nothing."""

    def __init__(self, world: World, place: int, settings: Settings) -> None:
        random = world.random
        self.world = world
        self.place = place
        self.controls, self.serves = world.plan.shape.controls(place), world.plan.shape.serves(place)
        self.settings = settings
        self.clock = HostClock(world.clock, random.choice((1.0, 1.0, 0.95, 1.04)), random.choice((0, -700, 3000)))
        self.machine = Machine(random, self.clock.wall_ms, world.counts)
        self.process: Process | None = None
        self.has_power = True
        self.is_paused = False
        self.is_restarting = False
        self.lives = 0
        self.disks = 0  # how many it has lost
        self.lost_ends: dict[bytes, int] = {}  # up to where those had the metadata, by the id of the directory
        self.deferred: deque[tuple[Process, Call]] = deque()
        self.format()

    def __str__(self) -> str:
        return f"node {self.place}"

    @property
    def directory(self) -> str:
        """The id of the directory on the disk that it has now."""
        return directory_id(self.place, self.disks)

    def format(self) -> None:
        """Write what `kafka-storage format` writes."""
        disk = SimDisk(self.machine)
        disk.mkdir(DATA)
        lines = [
            "version=1",
            f"cluster.id={self.world.cluster_id}",
            f"node.id={self.place}",
            f"directory.id={self.directory}",
        ]
        disk.write_atomic(f"{DATA}/meta.properties", "\n".join(lines).encode())
        shape = self.world.plan.shape
        if shape.is_dynamic and not self.disks and self.place <= shape.voters:
            disk.mkdir(METADATA)
            controls = voter_records(first_voters(shape.voters), 0)
            disk.write_atomic(f"{METADATA}/{FIRST_SNAPSHOT}", checkpoint(controls, [], 0, 0))
        self.machine.root.sync_all()

    @property
    def is_up(self) -> bool:
        return self.process is not None

    def start(self) -> None:
        """Start a process; it may die within its start."""
        if self.process is not None:
            return
        self.has_power, self.is_restarting = True, False
        for producer in self.world.producers:
            producer.node_restarted()
        self.lives += 1
        self.world.note(f"{self} starts")
        self.world.counts["starts"] += 1
        try:
            Process.running = process = self.process = Process(self)
            process.start()
        except StartError as error:
            self.give_up(str(error))
        except Crash:
            self.crashed()

    def give_up(self, problem: str) -> None:
        """The process cannot go on: it may be so while the disk is full."""
        if not self.machine.full:
            raise Broken(Property.COMES_UP, f"{self} gives up: {problem}")
        self.world.note(f"{self} gives up: {problem}")
        self.world.counts["ended for want of room"] += 1
        self.end(loud=True)

    def make_room(self) -> None:
        if self.machine.full:
            self.world.note(f"the disk of {self} has room")
            self.machine.full = False

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

    def lose_power(self, *, with_disk: bool = False) -> None:
        """The machine is gone, and with it what was not synced; or all that was on its disk."""
        self.world.note(f"{self} loses {'its disk' if with_disk else 'power'}")
        self.world.counts["lost disks" if with_disk else "power losses"] += 1
        self.has_power = False
        self.end(loud=False)
        self.machine.lose_power()
        if with_disk:
            self.lost_ends[decode_id(self.directory)] = synced_end(self)
            self.machine.root, self.machine.full = Folder(), False
            self.disks += 1
            self.format()

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


def first_voters(count: int) -> Voters:
    """Return the voters with which a quorum begins whose voters stand in the log."""
    endpoints = {
        place: Endpoint(LISTENERS[CONTROLLER_PORT], host_name(place), CONTROLLER_PORT) for place in range(1, count + 1)
    }
    members = [Voter(place, decode_id(directory_id(place, 0)), (one,)) for place, one in endpoints.items()]
    return Voters(tuple(members), DYNAMIC)


def directory_id(place: int, disk: int) -> str:
    """Return the id of the directory on a machine's first disk, or on a later one."""
    return f"AAAAAAAAAAAAAAAAAAA{'ABCDEFGH'[disk]}{place}g"
