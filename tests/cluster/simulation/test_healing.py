"""Damage befalls replicas of simulated clusters, among all other faults: nothing that was acknowledged is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from moldau.broker import healing
from tests.cluster.simulation.faults import SETTING_UP_MS, has_returned, is_whole
from tests.cluster.simulation.run import run
from tests.cluster.simulation.world import World

pytestmark = pytest.mark.usefixtures("no_logs")
SEEDS = range(2_000_000, 2_000_010)
DAMAGES = 8


def schedule_damage(world: World) -> None:
    spared: set[tuple[str, int]] = set()  # each replica is damaged once: one that is damaged again stays offline
    for number in range(DAMAGES):
        at = SETTING_UP_MS + (number + 0.5) * world.plan.length_ms / DAMAGES
        world.events.at(at, lambda: None if world.is_calm else damage(world, spared))


def damage(world: World, damaged: set[tuple[str, int]]) -> None:
    """A node finds that a log is damaged, if all others have what it has: the promise is for one machine at a time."""
    if not has_returned(world) or not is_whole(world):
        return
    found = [
        (host, partition)
        for host in world.hosts.values()
        if host.process is not None and not host.is_paused
        for partition in host.process.node.replicas
        if partition.log.offline is None and partition.log.end_offset and (str(partition), host.place) not in damaged
    ]
    if found:
        host, partition = world.random.choice(found)
        damaged.add((str(partition), host.place))
        world.powerless.setdefault(host.place, -1)
        world.counts["damages"] += 1
        world.note(f"{partition} is damaged on {host}")
        assert host.process is not None
        host.process.run(lambda: partition.log.fail("a bit has flipped") and None)


def test_damage_heals_and_nothing_is_lost() -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        outcome = run(seed, more=schedule_damage)
        if outcome.failure is not None:
            pytest.fail(outcome.failure, pytrace=False)
        counts += outcome.counts
    assert counts["damages"] >= len(SEEDS)


def test_a_log_that_is_thrown_away_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "may_begin_anew", lambda part, me: part.leader != me)
    assert any(run(seed, more=schedule_damage).failure for seed in range(SEEDS.start, SEEDS.start + 60))
