"""What befalls a world, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.cluster.simulation.fabric import CLIENTS
from tests.cluster.simulation.plan import DATA, FACTOR
from tests.simulation.faults import settled_places

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

SPITE_FROM_MS = 100.0
SETTING_UP_MS = 1500.0  # before that no fault befalls the world
CUT_MS = (100, 600, 2500, 5000)
WORSE = 0.4  # how often a machine that is cut off fails, too
PAUSE_MS = (50, 400, 1500, 4000)
JUMP_MS = (-60_000, -2000, 500, 10_000)
ROLL_LOOK_MS = 100.0
LEFT_MS = (400, 1500, 3500)
FULL_MS = (50, 500, 2000)


def schedule(world: World) -> None:
    """Set up the topics, and spread the faults of the plan over its time."""
    random, plan, events = world.random, world.plan, world.events
    for name, (partitions, factor) in plan.topics.items():
        events.after(600, lambda name=name, row=(partitions, factor): world.admin.create(name, *row))
    rows: tuple[tuple[int, Callable[[World], None]], ...] = (
        (plan.crashes, crash),
        (plan.power_losses, lose_power),
        (plan.blackouts, black_out),
        (plan.stops, stop),
        (plan.rolls, roll),
        (plan.jumps, jump),
        (plan.fillings, fill),
        (plan.rots, rot),
        (plan.pauses, pause),
        (plan.cuts, cut),
        (plan.resets, reset),
        (plan.coups, coup),
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
    if host.process is None:
        return
    if world.random.random() < 0.5:
        host.machine.fuse = world.random.randrange(1, 12)
    else:
        host.kill()


def lose_power(world: World, host: Host | None = None) -> None:
    """Take the power of one machine, if all others have what it has: the promise is for one machine at a time.

    Where all that is acknowledged is synced, only who loses its disk has lost anything; where elections may be unclean,
    nothing is promised.
    """
    host, plan, are_all_back = host or any_host(world), world.plan, has_returned(world)
    is_allowed = are_all_back or (plan.is_synced and not world.is_disk_lost) or plan.is_unclean
    if host.process is None or not is_allowed:
        world.counts["power losses put off"] += 1
        return
    with_disk = are_all_back and world.random.random() < world.plan.lost_disks and may_lose_disk(world, host)
    if are_all_back:
        world.powerless, world.is_disk_lost = {}, with_disk
    world.powerless[host.place] = latest_epoch(world, host)
    host.lose_power(with_disk=with_disk)


def latest_epoch(world: World, host: Host) -> int:
    """Return the newest epoch that a broker is known to have had, be it in a process before this one."""
    assert host.process is not None
    newest = world.newest_image()
    known = newest.node.cluster.brokers.get(host.place) if newest is not None else None
    return max(host.process.node.metadata.broker_epoch, -1 if known is None else known.epoch)


def black_out(world: World) -> None:
    """Take the power of all machines at once."""
    if world.is_disk_lost and world.plan.is_synced and not has_returned(world):
        return
    for host in world.hosts.values():
        if host.process is not None:
            world.powerless[host.place] = latest_epoch(world, host)
            host.lose_power()


def may_lose_disk(world: World, host: Host) -> bool:
    """Tell whether a machine may lose its disk: a minority of the voters may, if they are known by their disks.

    Nor may another one be about to be removed: the two could be a majority, and then nobody ever leads again.
    """
    if not host.controls:
        return True
    raft = world.newest_quorum()
    if raft is None or not raft.voters.is_dynamic or any(one.disks for one in world.hosts.values()):
        return False
    is_spared = len(raft.voters.members) >= 3 and not world.admin.removals
    return raft.voters.get(host.place) is None or is_spared


def has_returned(world: World) -> bool:
    """Tell whether whoever has lost power has registered anew, and all partitions have all their replicas in sync."""
    newest = world.newest_image()
    if newest is None:
        return False
    brokers, lost = newest.node.cluster.brokers, world.powerless.items()
    is_new = all(place in brokers and brokers[place].epoch > epoch for place, epoch in lost)
    return not lost or (is_new and is_whole(world))


def is_whole(world: World) -> bool:
    """Tell whether all partitions have all their replicas in sync, as far as anybody knows."""
    newest = world.newest_image()
    topics = newest.node.cluster.topics.values() if newest is not None else ()
    return newest is not None and all(len(part.isr) >= FACTOR for one in topics for part in one.partitions.values())


def stop(world: World) -> None:
    host = any_host(world)
    if host.process is not None and not host.is_paused:
        host.process.run(host.stop)


def roll(world: World) -> None:
    """Stop one machine after the other, each when the one before is back and all is in sync again."""
    world.counts["rolling restarts"] += 1
    roll_on(world, list(world.hosts.values()))


def roll_on(world: World, hosts: list[Host]) -> None:
    if world.is_calm or not hosts:
        return
    host = hosts[0]
    if all(one.process for one in world.hosts.values()) and not host.is_paused and is_whole(world):
        assert host.process is not None
        host.process.run(host.stop)
        hosts = hosts[1:]
    world.events.after(ROLL_LOOK_MS, lambda: roll_on(world, hosts))


def fill(world: World) -> None:
    """Leave no room on a disk for a while."""
    host = any_host(world)
    world.note(f"the disk of {host} is full")
    world.counts["full disks"] += 1
    host.machine.full = True
    world.events.after(world.random.choice(FULL_MS), host.make_room)


def rot(world: World) -> None:
    """Flip a bit of a batch that was synced long ago, in one replica of a partition at most."""
    host = any_host(world, favourite=0)
    ledgers = [one for one in world.ledgers(lasting=True) if one.rotten_on in (None, host.place)]
    ledger = world.random.choice(ledgers) if ledgers else None
    places = settled_places(host, DATA, str(ledger)) if ledger is not None else []
    if ledger is not None and places:
        inode, position = world.random.choice(places)
        inode.rot(position, world.random.randrange(8))
        ledger.rotten_on = host.place
        world.note(f"a bit of {ledger} flips on {host} at {position}")
        world.counts["flipped bits"] += 1


def jump(world: World) -> None:
    """Set a wall clock to another time."""
    host, by_ms = any_host(world), world.random.choice(JUMP_MS)
    world.note(f"the clock of {host} jumps by {by_ms} ms")
    world.counts["jumps of a clock"] += 1
    host.clock.skew_ms += by_ms


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


def coup(world: World) -> None:
    """Cut a controller off from the others for a while; when it is back, whoever leads then fails.

    If it led, it has plans of its own by then, which nobody has heard of; if it did not, it is behind.
    """
    controllers = [host for host in world.hosts.values() if host.controls]
    host = any_host(world)
    if host not in controllers or len(controllers) < 3:
        return
    others = [other.place for other in controllers if other is not host]
    ways = [(host.place, other) for other in others] + [(other, host.place) for other in others]
    world.note(f"{host} is left behind")
    world.counts["controllers left behind"] += 1
    world.fabric.cut(ways)

    def end() -> None:
        mend(world, ways)
        active = [one for one in controllers if one.process is not None and one.process.node.controller is not None]
        if active and not world.is_calm:
            world.random.choice((crash, lose_power, crash))(world, world.random.choice(active))

    world.events.after(world.random.choice(LEFT_MS), end)


def mend(world: World, ways: list[tuple[int, int]]) -> None:
    if not world.is_calm:
        world.note("a cut is mended")
        world.fabric.mend(ways)


def reset(world: World) -> None:
    """Break a connection. Sometimes only one end learns of it, and the other keeps it beside the next one."""
    links = world.fabric.links
    if links:
        world.counts["resets"] += 1
        world.random.choice(links).reset(*world.random.choice(((True, True), (True, True), (True, False))))
