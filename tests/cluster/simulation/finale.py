"""The end of a world: faults end, all is mended, and within bounded time all must be well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

LOOK_MS = 250.0
CALM_MS = 30_000.0
LAST_ERRORS = 3


def finish(world: World) -> None:
    """End all faults, wait until all is well, write to each partition once more, and look at everything."""
    calm_down(world)
    wait(world, unwell)
    before = {ledger: len(ledger.acked) for ledger in world.ledgers()}
    wait(world, lambda world: [f"{ledger} takes no record" for ledger, n in before.items() if len(ledger.acked) == n])
    world.is_draining = True
    wait(world, lambda world: [f"{one.name} has unanswered batches" for one in world.producers if not one.is_done])
    wait(world, lambda world: [f"{one.name} is not told where it is" for one in world.groups if not one.is_settled])
    wait(world, lambda world: [f"{one.name} has a transaction" for one in world.transactors if one.current is not None])
    wait(world, lambda world: [problem for one in world.transactors for problem in one.open_ends()])
    wait(world, uneven)
    world.is_over = True
    world.checker.audit_all()
    judge(world)


def calm_down(world: World) -> None:
    world.note("all faults end")
    world.is_calm = True
    world.fabric.mend_all()
    for host in world.hosts.values():
        host.machine.fuse = None
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
    image = newest.node.cluster
    found += [f"{name} is not there yet" for name in world.plan.topics if name not in world.topics]
    for place in world.hosts:
        broker = image.brokers.get(place)
        if broker is None or not broker.is_active:
            found.append(f"node {place} does not serve: {broker}")
    for topic in image.topics.values():
        for part in topic.partitions.values():
            if part.leader < 0 or set(part.isr) != set(part.replicas) or part.adding or part.removing:
                found.append(f"{topic.name}-{part.index} is {part}")
    return found


def uneven(world: World) -> list[str]:
    """Say which replicas are behind their leader."""
    found = []
    for host in world.hosts.values():
        for partition in host.process.node.replicas if host.process is not None else ():
            ledger = world.checker.ledger(partition.topic, partition.topic_id, partition.index)
            end = max([*ledger.acked, *ledger.known], default=-1) + 1
            if partition.log.high_watermark < end or partition.log.end_offset != partition.log.high_watermark:
                log = partition.log
                found.append(f"{partition} on {host} is at {log.high_watermark} of {log.end_offset}, not at {end}")
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
    world.admin.check(image)
    for transactor in world.transactors:
        transactor.check()
    for ledger in world.checker.ledgers.values():
        ledger.check_kept()
        ledger.check_order()
