"""What befalls a world, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.cluster.simulation.fabric import CLIENTS

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

SPITE_FROM_MS = 100.0
SETTING_UP_MS = 1500.0  # before that no fault befalls the world
CUT_MS = (100, 600, 2500, 5000)
WORSE = 0.4  # how often a machine that is cut off fails, too
FACTOR = 3  # replicas of each partition
PAUSE_MS = (50, 400, 1500, 4000)


def schedule(world: World) -> None:
    """Set up the topics, and spread the faults of the plan over its time."""
    random, plan, events = world.random, world.plan, world.events
    for name, (partitions, factor) in plan.topics.items():
        events.after(600, lambda name=name, row=(partitions, factor): world.admin.create(name, *row))
    rows: tuple[tuple[int, Callable[[World], None]], ...] = (
        (plan.crashes, crash),
        (plan.power_losses, lose_power),
        (plan.stops, stop),
        (plan.pauses, pause),
        (plan.cuts, cut),
        (plan.resets, reset),
        (plan.acts, lambda world: world.admin.act()),
    )
    for count, fault in rows:
        for _ in range(count):
            at = random.uniform(SETTING_UP_MS, SETTING_UP_MS + plan.length_ms)
            events.at(at, lambda fault=fault: None if world.is_calm else fault(world))


def any_host(world: World, favourite: float = 0.5) -> Host:
    """Return a machine; often the one of the active controller, or of a leader, where faults matter most."""
    hosts = list(world.hosts.values())
    leading = [host for host in hosts if host.process is not None and host.process.node.controller is not None]
    if leading and world.random.random() < favourite:
        return leading[0]
    return world.random.choice(hosts)


def note_restart(world: World) -> None:
    for producer in world.producers:
        producer.node_restarted()


def tempt(process: Process) -> None:
    """Sometimes a machine fails right after something has happened that others rely on."""
    world, raft = process.world, getattr(process.node.quorum, "raft", None)
    applied = process.node.metadata.applied
    vote = (raft.voted, raft.role, raft.epoch) if raft is not None else ()
    before, process.seen = process.seen, (vote, applied)
    if before == process.seen or not before or world.is_calm or world.clock.now < SPITE_FROM_MS:
        return
    chance = world.plan.spite if before[0] != vote else world.plan.spite / 8
    if world.random.random() < chance:
        fault = world.random.choice((crash, lose_power))
        world.events.after(world.random.uniform(0, 3), lambda: world.is_calm or fault(world, process.host))


def crash(world: World, host: Host | None = None) -> None:
    """Kill a process now, or within one of its next steps of the disk."""
    host = host or any_host(world)
    if host.process is None or not has_returned(world, world.powerless):
        world.counts["kills put off"] += 1
        return
    note_restart(world)
    remember(world, host, world.killed)
    if world.random.random() < 0.5:
        host.machine.fuse = world.random.randrange(1, 12)
    else:
        host.kill()


def lose_power(world: World, host: Host | None = None) -> None:
    """Take the power of one machine, if all others have what it has: the promise is for one machine at a time.

    A broker that was killed is taken for one that has lost records, as in Kafka: so it counts, too.
    """
    host = host or any_host(world)
    if host.process is None or not has_returned(world, world.powerless | world.killed):
        world.counts["power losses put off"] += 1
        return
    for other in world.hosts.values():
        other.machine.fuse = None
    note_restart(world)
    world.powerless.clear()
    world.killed.clear()
    remember(world, host, world.powerless)
    host.lose_power()


def remember(world: World, host: Host, where: dict[int, int]) -> None:
    assert host.process is not None
    where[host.place] = host.process.node.metadata.broker_epoch


def has_returned(world: World, lost: dict[int, int]) -> bool:
    """Tell whether machines have registered anew, and all partitions have all their replicas in sync."""
    newest = world.newest_image()
    if newest is None:
        return False
    image = newest.node.cluster
    is_new = all(place in image.brokers and image.brokers[place].epoch > epoch for place, epoch in lost.items())
    parts = [part for topic in image.topics.values() for part in topic.partitions.values()]
    return not lost or (is_new and all(len(part.isr) >= FACTOR for part in parts))


def stop(world: World) -> None:
    host = any_host(world)
    if host.process is not None and not host.is_paused:
        note_restart(world)
        host.process.run(host.stop)


def pause(world: World) -> None:
    host = any_host(world)
    if host.process is not None and not host.is_paused:
        host.pause()
        world.events.after(world.random.choice(PAUSE_MS), host.resume)


def cut(world: World) -> None:
    """Cut a machine off from some or all others, in both directions or one, or make its ways slow."""
    random = world.random
    host, others = any_host(world).place, [CLIENTS, *world.hosts]
    others.remove(host)
    if random.random() < 0.5:
        others.remove(CLIENTS)
    if random.random() < 0.4:
        others = random.sample(others, random.randint(1, len(others)))
    out, back = [(host, other) for other in others], [(other, host) for other in others]
    kind = random.choice(("both", "both", "out", "back", "slow"))
    ways = {"both": out + back, "out": out, "back": back, "slow": out + back}[kind]
    world.note(f"node {host} is cut off from {others}: {kind}")
    world.counts[f"cuts: {kind}"] += 1
    duration = random.choice(CUT_MS)
    if kind == "slow":
        world.fabric.slow |= dict.fromkeys(ways, 50.0)
        world.events.after(duration, lambda: [world.fabric.slow.pop(way, None) for way in ways] and None)
    else:
        world.fabric.cut(ways)
        world.events.after(duration, lambda: mend(world, ways))
        if random.random() < WORSE:
            fault = random.choice((crash, lose_power))
            later = random.uniform(0, duration / 2)
            world.events.after(later, lambda: world.is_calm or fault(world, world.hosts[host]))


def mend(world: World, ways: list[tuple[int, int]]) -> None:
    if not world.is_calm:
        world.note("a cut is mended")
        world.fabric.mend(ways)


def reset(world: World) -> None:
    """Break a connection, or all of one machine."""
    links = world.fabric.links
    if links:
        world.counts["resets"] += 1
        world.random.choice(links).reset()
