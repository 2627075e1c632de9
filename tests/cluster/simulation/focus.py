"""Profiles: faults that seldom come together by chance, added to those of a seed.

`python -m tests.cluster.simulation --focus NAME` runs seeds with one of them. A world with a profile has a history of
its own; what must hold is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.cluster.simulation.faults import SETTING_UP_MS, has_returned, latest_epoch, mend
from tests.cluster.simulation.plan import FACTOR

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host
    from tests.cluster.simulation.world import World

STEP_MS = 5.0
RELAPSE_MS = (900, 1800)
UNHEARD_MS = (300, 800)
CAUGHT_UP_MS = (20, 300)
BACK_MS = (5, 60)
ALONE_MS = (600, 1200)
YOUNG_MS = (30, 250)  # the age of a topic when a machine loses it
REPLACED_MS = (0, 60)  # later it is deleted
ASKED = 3
LEFT_MS = (900, 2500)
ASLEEP_MS = (200, 900)
CHANGES = 6

Profile = Callable[["World"], None]


def relapses(world: World) -> None:
    """Let one machine lose power again as soon as it has caught up.

    The leaders that want it in sync cannot reach the controller before it has registered once more, and by then it
    cannot reach them: it lacks what they believe it to have.
    """
    random = world.random
    host = world.hosts[random.choice(world.brokers)]

    def lose() -> int | None:
        if not lose_again(world, host):
            return None
        world.events.after(random.uniform(*BACK_MS), host.start)
        return world.powerless[host.place]

    def begin() -> None:
        if world.is_calm:
            return
        epoch = lose()
        if epoch is None:
            world.events.after(STEP_MS, begin)
        else:
            watch(epoch)

    def watch(epoch: int) -> None:
        if world.is_calm:
            return
        member = host.process.node.membership if host.process is not None else None
        if member is None or member.lifecycle.epoch <= epoch:
            world.events.after(STEP_MS, lambda: watch(epoch))
            return
        active = [one.place for one in world.hosts.values() if is_active(one)]
        others = [one.place for one in world.hosts.values() if one is not host and one.place not in active]
        unheard(world, [(other, one) for other in others for one in active], random.uniform(*UNHEARD_MS))
        world.events.after(random.uniform(*CAUGHT_UP_MS), lambda: lose_with_ways(others))
        world.events.after(random.uniform(*RELAPSE_MS), begin)

    def lose_with_ways(others: list[int]) -> None:
        if lose() is not None:
            unheard(world, [(host.place, other) for other in others], random.uniform(*ALONE_MS))

    world.events.at(SETTING_UP_MS + random.uniform(0, 500), begin)


def replacements(world: World) -> None:
    """Delete a young topic and make another of its name, while a machine is without power that has just made it."""
    random, plan = world.random, world.plan
    host = world.hosts[random.choice(world.brokers)]
    if plan.fleeting is None:
        plan.fleeting = "brief"
        plan.topics[plan.fleeting] = 1, FACTOR
        world.events.at(SETTING_UP_MS / 2, lambda: world.admin.create("brief", 1, FACTOR))
    name, last = plan.fleeting, b""

    def strike() -> None:
        lose_again(world, host)
        world.events.after(random.uniform(*REPLACED_MS), replace)

    def replace() -> None:
        if name in world.topics and not world.is_calm:
            topic = world.topics.pop(name)
            for _ in range(ASKED):  # one may be asked that is without power, which nobody notices for long
                world.admin.delete(name, *topic)

    def look() -> None:
        nonlocal last
        if world.is_calm:
            return
        if name in world.topics and world.topics[name][0] != last:
            last = world.topics[name][0]
            world.events.after(random.uniform(*YOUNG_MS), strike)
        world.events.after(STEP_MS, look)

    world.events.at(SETTING_UP_MS, look)


def comebacks(world: World) -> None:
    """Cut the active controller off with plans of its own, and let it lead again: its successor fails, others sleep."""
    random = world.random
    controllers = [host for host in world.hosts.values() if host.controls]

    def begin() -> None:
        active = next((host for host in controllers if is_active(host)), None)
        if world.is_calm or active is None or len(controllers) < 3:
            if not world.is_calm:
                world.events.after(STEP_MS, begin)
            return
        others = [host.place for host in controllers if host is not active]
        ways = [(active.place, other) for other in others] + [(other, active.place) for other in others]
        world.note(f"{active} is left behind")
        world.counts["controllers left behind"] += 1
        left_ms = random.uniform(*LEFT_MS)
        unheard(world, ways, left_ms)
        for _ in range(CHANGES):
            world.events.after(random.uniform(0, left_ms), lambda: None if world.is_calm else world.admin.act())
        world.events.after(left_ms + random.uniform(0, 300), lambda: give_back(active))

    def give_back(first: Host) -> None:
        if world.is_calm:
            return
        for host in controllers:
            if is_active(host) and host is not first:
                host.kill()
            elif host is not first and host.process is not None and not host.is_paused:
                host.pause()
                world.events.after(random.uniform(*ASLEEP_MS), host.resume)
        world.events.after(random.uniform(500, 1500), begin)

    world.events.at(SETTING_UP_MS, begin)


def is_active(host: Host) -> bool:
    return host.process is not None and host.process.node.controller is not None


def lose_again(world: World, host: Host) -> bool:
    """Take a machine's power, if nobody else has lost anything that is not back: so it may be at any time."""
    is_back = has_returned(world)
    if world.is_calm or host.process is None or not (is_back or world.powerless.keys() <= {host.place}):
        return False
    if is_back:
        world.powerless, world.is_disk_lost = {}, False
    world.powerless[host.place] = latest_epoch(world, host)
    host.lose_power()
    return True


def unheard(world: World, ways: list[tuple[int, int]], duration_ms: float) -> None:
    world.fabric.cut(ways)
    world.events.after(duration_ms, lambda: mend(world, ways))


PROFILES: dict[str, Profile] = {"relapses": relapses, "replacements": replacements, "comebacks": comebacks}
