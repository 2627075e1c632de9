"""Run a seed, and tell what happened."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import format_exception

from tests.cluster.simulation.faults import SETTING_UP_MS, schedule
from tests.cluster.simulation.finale import finish
from tests.cluster.simulation.focus import PROFILES
from tests.cluster.simulation.world import World
from tests.simulation.run import ignore_the_dead


@dataclass(slots=True)
class Outcome:
    """What came of a seed; `failure` is None if all properties held."""

    seed: int
    digest: str
    failure: str | None = None
    counts: Counter[str] = field(default_factory=Counter)


def run(
    seed: int,
    verbose: Callable[[str], None] | None = None,
    focus: str | None = None,
    more: Callable[[World], None] = lambda world: None,
) -> Outcome:
    """Run a world from its first machine's start to the last audit.

    `focus` names a profile, whose faults are added to those of the seed; `more` adds others.
    """
    world = World(seed, verbose)
    failure = None
    sys.unraisablehook = ignore_the_dead
    try:
        schedule(world)
        if focus is not None:
            PROFILES[focus](world)
        more(world)
        world.run_for(SETTING_UP_MS + world.plan.length_ms)
        finish(world)
    except Exception as error:
        failure = report(seed, world, error, focus)
    return Outcome(seed, world.events.digest.hexdigest(), failure, world.counts)


def report(seed: int, world: World, error: Exception, focus: str | None) -> str:
    """The property, the last events, and how to see it again."""
    where = "".join(format_exception(error)[-6:])
    events = "\n".join(f"  {line}" for line in world.events.recent)
    again = f"make simulate-cluster SEED={seed}" + (f" FOCUS={focus}" if focus else "")
    return f"seed {seed} failed\n{error}\n\nthe last events:\n{events}\n\n{where}\n{again}\n"
