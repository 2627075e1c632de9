"""The end of a world: faults end, all is mended, and within bounded time all must be well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.cluster.controller.changes import directory_of, is_online
from moldau.log.answers import Isolation
from moldau.log.checkpoints import decode_id
from tests.cluster.simulation.ledger import Ledger, names_of
from tests.cluster.simulation.plan import DATA
from tests.cluster.simulation.properties import Broken, Property
from tests.simulation.media import Folder, Inode

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

LOOK_MS = 250.0
CALM_MS = 30_000.0
LAST_ERRORS = 3


def finish(world: World) -> None:
    """End all faults, wait until all is well, write to each partition once more, and look at everything."""
    calm_down(world)
    wait(world, unwell)
    before = {ledger: ledger.taken for ledger in world.ledgers() if ledger.rotten_on is None}
    wait(world, lambda world: [f"{ledger} takes no record" for ledger, n in before.items() if ledger.taken == n])
    world.is_draining = True
    wait(world, lambda world: [f"{one.name} has unanswered batches" for one in world.producers if not one.is_done])
    wait(world, lambda world: [f"{one.name} is not told where it is" for one in world.groups if not one.is_settled])
    wait(world, lambda world: [f"{one.name} has a transaction" for one in world.transactors if one.current is not None])
    wait(world, lambda world: [problem for one in world.transactors for problem in one.open_ends()])
    wait(world, lambda world: [problem for one in world.sharers for problem in one.unread()])
    wait(world, lambda world: unwell(world) + uneven(world))  # the first time, nobody may have missed the dead yet
    world.is_over = True
    world.checker.audit_all()
    judge(world)


def calm_down(world: World) -> None:
    world.note("all faults end")
    world.is_calm = True
    world.fabric.mend_all()
    for host in world.hosts.values():
        host.machine.fuse = None
        host.make_room()
        host.resume()
        if host.process is None:
            host.restart_later()


def wait(world: World, problems: object) -> None:
    """Let time pass until there are no problems any more."""
    deadline = world.clock.now + CALM_MS
    while found := problems(world):  # type: ignore[operator]
        if world.clock.now > deadline:
            raise Broken(Property.GOES_ON, "; ".join(found[:LAST_ERRORS]))
        world.run_for(LOOK_MS)


def unwell(world: World) -> list[str]:
    """Say what is not as it should be."""
    found = [f"{host} is down" for host in world.hosts.values() if host.process is None]
    newest = world.newest_image()
    if found or newest is None:
        return found
    if not any(host.process and host.process.node.controller for host in world.hosts.values()):
        found.append("there is no active controller")
    found += without_vote(world)
    image = newest.node.cluster
    found += [f"{name} is not there yet" for name in world.plan.topics if name not in world.topics]
    for place in world.brokers:
        broker = image.brokers.get(place)
        if broker is None or not broker.is_active:
            found.append(f"node {place} does not serve: {broker}")
    for topic in image.topics.values():
        for part in topic.partitions.values():
            if world.checker.ledger(topic.name, topic.id, part.index).rotten_on is not None:
                continue
            if part.leader < 0 or set(part.isr) != set(part.replicas) or part.adding or part.removing:
                found.append(f"{topic.name}-{part.index} is {part}")
            elif not all(is_online(directory_of(part, one), image.brokers[one].log_dirs) for one in part.replicas):
                found.append(f"{topic.name}-{part.index} lies in directories that are gone")
    return found


def without_vote(world: World) -> list[str]:
    """Say which controllers should have joined the voters by themselves."""
    raft = world.newest_quorum()
    if not world.plan.joins or raft is None:
        return []
    keys = {host: (host.place, decode_id(host.directory)) for host in world.hosts.values() if host.controls}
    return [f"{host} has no vote" for host, key in keys.items() if not raft.voters.has(key)]


def uneven(world: World) -> list[str]:
    """Say which replicas lack records that were seen, or that another one has."""
    found, ends = [], {}
    replicas = [(host, one) for host in world.hosts.values() if host.process for one in host.process.node.replicas]
    for _, partition in replicas:
        ledger = world.checker.ledger(partition.topic, partition.topic_id, partition.index)
        seen = max([*ledger.acked, *ledger.known], default=-1) + 1
        ends[ledger] = max(ends.get(ledger, seen), partition.log.end_offset)
    for host, partition in replicas:
        ledger, log = world.checker.ledger(partition.topic, partition.topic_id, partition.index), partition.log
        if ledger.rotten_on is not None:
            continue
        if world.is_doomed(ledger):
            found.append(f"{partition} on {host} was deleted")
        if log.high_watermark < ends[ledger]:
            found.append(f"{partition} on {host} is at {log.high_watermark} of {log.end_offset}, not at {ends[ledger]}")
    return found


def judge(world: World) -> None:
    """Check all that was promised."""
    newest = world.newest_image()
    assert newest is not None
    image = newest.node.cluster
    for name, (topic_id, partitions) in world.topics.items():
        topic = image.topics.get(name)
        if topic is None or topic.id != topic_id or len(topic.partitions) != partitions:
            raise Broken(Property.METADATA_STAYS, f"topic {name} is gone, or another")
    if found := [topic for topic in image.topics.values() if world.doomed.get(topic.id)]:
        raise Broken(Property.METADATA_STAYS, f"{found[0].name} was deleted, and is there")
    world.admin.check(image)
    for transactor in world.transactors:
        transactor.check()
    for ledger in world.checker.ledgers.values():
        if not world.is_doomed(ledger) and ledger.rotten_on is None:
            ledger.check_kept()
        ledger.check_order()
    compare(world)
    for ledger in world.checker.ledgers.values():
        if ledger.rotten_on is not None:
            check_intact(world, ledger)


def check_intact(world: World, ledger: Ledger) -> None:
    """Check that what was acknowledged is whole on a disk, though a replica is damaged."""
    whole: set[tuple[int, bytes]] = set()
    for host in world.hosts.values():
        folder = host.machine.find(f"{DATA}/{ledger}")
        for name, inode in folder.names.items() if isinstance(folder, Folder) else ():
            if name.endswith(".log") and isinstance(inode, Inode):
                whole |= {one for batch in ledger.batches(memoryview(inode.data)) for one in names_of(batch)}
    if lost := sorted(ledger.acked.items() - whole):
        raise Broken(Property.ACKNOWLEDGED_STAYS, f"no replica of {ledger} has {lost[0]}")


def compare(world: World) -> None:
    """Check that the replicas of each partition are the same, also where nobody was promised anything."""
    first: dict[Ledger, bytes] = {}
    for host in world.hosts.values():
        for partition in host.process.node.replicas if host.process is not None else ():
            ledger = world.checker.ledger(partition.topic, partition.topic_id, partition.index)
            if ledger.rotten_on is not None:
                continue
            span = partition.log.read(partition.log.start_offset, 1 << 30, isolation=Isolation.HIGH_WATERMARK).span
            data = b"" if span is None else span.read()
            if first.setdefault(ledger, data) != data:
                raise Broken(Property.ONE_HISTORY, f"{partition} on {host} is not what it is elsewhere")
