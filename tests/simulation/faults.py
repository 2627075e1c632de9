"""What befalls a world, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.wire import messages as m
from moldau.wire.errors import WireError
from moldau.wire.records import batches
from tests.simulation.consumers import Consumer
from tests.simulation.guests import invite
from tests.simulation.ledger import Ledger
from tests.simulation.media import Folder, Inode
from tests.simulation.plan import DIRECTORIES, INPUT
from tests.simulation.producers import Producer
from tests.simulation.topics import Topic

if TYPE_CHECKING:
    from tests.simulation.world import World

METADATA = "__cluster_metadata-0"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
UNPROTECTED = (*range(8), *range(12, 16))
"""Base offset and leader epoch of a batch: no CRC covers them, so a flipped bit there is nobody's to notice."""


def schedule(world: World) -> None:
    """Set up the clients, and spread the faults of the plan over its time."""
    random, plan, events = world.random, world.plan, world.events
    events.after(0.1, lambda: create_topics(world))
    for number in range(plan.producers):
        events.after(1, lambda number=number: Producer(world, f"p{number}") and None)
    if INPUT in plan.topics:
        events.after(1, lambda: invite(world))
    for number in range(plan.consumers):
        events.after(1, lambda number=number: Consumer(world, f"c{number}") and None)
    rows = (
        (plan.crashes, crash),
        (plan.cuts, cut),
        (plan.fillings, fill),
        (plan.failures, fail),
        (plan.rots, rot),
    )
    for count, fault in rows:
        for _ in range(count):
            events.at(random.uniform(20, plan.length_ms), lambda fault=fault: fault(world))


def create_topics(world: World) -> None:
    for name, (partitions, configs) in world.plan.topics.items():
        rows = [m.CreateTopicsRequest_CreatableTopicConfig(k, v) for k, v in configs.items()]
        asked = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, [], rows)
        (answer,) = world.auditor.call(m.CreateTopicsRequest([asked]), 7).topics
        assert answer.error_code == 0, answer.error_message
        topic = world.topics[name] = Topic(name, configs, answer.topic_id, lasting=name == INPUT)
        topic.extend(partitions)


def crash(world: World) -> None:
    """Now, or within one of the next steps of the disk; or a clean stop."""
    if world.ending:
        return
    random = world.random
    kind = random.random()
    if not world.up or kind < 0.5:
        world.machine.fuse = random.randrange(1, 12)
    elif kind < 0.8:
        world.die(random.random() < world.plan.power)
    else:
        world.stop()


def cut(world: World) -> None:
    if world.links:
        world.counts["connections cut"] += 1
        world.random.choice(world.links).cut()


def fill(world: World) -> None:
    """No room for a while."""
    if not world.ending:
        world.events.note("the disk is full")
        world.counts["full disks"] += 1
        world.machine.full = world.was_full = True
        world.events.after(world.random.uniform(10, 300), lambda: make_room(world))


def make_room(world: World) -> None:
    if world.machine.full:
        world.events.note("the disk has room")
        world.machine.full = False
        world.room_since_ms = world.clock.now


def fail(world: World) -> None:
    """Every change below a folder fails, until the next start."""
    ledgers = world.ledgers()
    if world.ending or not world.up or not ledgers:
        return
    ledger = world.random.choice(ledgers)
    home = home_of(world, ledger)
    if home is None:
        return
    path = home if world.random.random() < 0.3 else f"{home}/{ledger}"
    world.events.note(f"{path} fails")
    world.counts["failing folders"] += 1
    world.machine.broken.add(path)
    world.note_failures()


def home_of(world: World, ledger: Ledger) -> str | None:
    return next((path for path in DIRECTORIES if world.machine.find(f"{path}/{ledger}")), None)


# Rot.


def rot(world: World) -> None:
    """A bit flips in a batch before a recovery point on the disk: the node must notice it, sooner or later."""
    ledgers = [ledger for ledger in world.ledgers() if may_rot(ledger)]
    if world.ending or not ledgers:
        return
    kind = world.random.random()
    if kind < 0.15:
        rot_metadata(world)
        return
    ledger = world.random.choice(ledgers)
    if kind < 0.4:
        rot_index(world, ledger)
        return
    home = home_of(world, ledger)
    places = settled_places(world, home, str(ledger)) if home else []
    if places:
        inode, position = world.random.choice(places)
        inode.rot(position, world.random.randrange(8))
        ledger.rotten = True
        world.events.note(f"a bit of {ledger} flips at {position}")
        world.counts["flipped bits"] += 1


def may_rot(ledger: Ledger) -> bool:
    topic = ledger.topic
    return not (ledger.rotten or ledger.unsure or topic.compacted or topic.lasting)


def rot_index(world: World, ledger: Ledger) -> None:
    """Whatever an index says, the node must not pass over records in silence."""
    home = home_of(world, ledger)
    folder = world.machine.find(f"{home}/{ledger}")
    files = folder.names.items() if isinstance(folder, Folder) else ()
    found = [inode for name, inode in files if name.endswith((".index", ".timeindex")) and isinstance(inode, Inode)]
    settled = [inode for inode in found if inode.data and not inode.pending]
    if settled:
        inode = world.random.choice(settled)
        inode.rot(world.random.randrange(len(inode.data)), world.random.randrange(8))
        ledger.index_rotten = True
        world.events.note(f"a bit of an index of {ledger} flips")
        world.counts["flipped bits of indexes"] += 1


def rot_metadata(world: World) -> None:
    places = settled_places(world, DIRECTORIES[0], METADATA)
    if places:
        inode, position = world.random.choice(places)
        inode.rot(position, world.random.randrange(8))
        world.metadata_rotten = True
        world.events.note(f"a bit of the metadata flips at {position}")
        world.counts["flipped bits of the metadata"] += 1


def settled_places(world: World, home: str, name: str) -> list[tuple[Inode, int]]:
    """Bytes of batches that are synced, and known to be."""
    folder = world.machine.find(f"{home}/{name}")
    checkpoint = world.machine.find(f"{home}/{RECOVERY_POINTS}")
    if not isinstance(folder, Folder) or not isinstance(checkpoint, Inode):
        return []
    topic, _, index = name.rpartition("-")
    rows = [line.split() for line in checkpoint.data.decode().splitlines()[2:]]
    point = next((int(row[2]) for row in rows if row[:2] == [topic, index]), 0)
    places: list[tuple[Inode, int]] = []
    for file, inode in folder.names.items():
        if file.endswith(".log") and isinstance(inode, Inode) and not inode.pending:
            places += [(inode, position) for position in protected_bytes(bytes(inode.data), point)]
    return places


def protected_bytes(data: bytes, end_offset: int) -> list[int]:
    position = 0
    found: list[int] = []
    try:
        for batch in batches(data):
            if batch.last_offset < end_offset:
                found += [position + at for at in range(batch.size) if at not in UNPROTECTED]
            position += batch.size
    except WireError:
        return found
    return found
