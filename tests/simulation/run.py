"""Run a seed, and tell what happened."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from traceback import format_exception

from tests.simulation.disk import Crash
from tests.simulation.faults import schedule
from tests.simulation.finale import finish
from tests.simulation.world import World


@dataclass(slots=True)
class Outcome:
    """What came of a seed; `failure` is None if all properties held."""

    seed: int
    digest: str
    failure: str | None = None
    counts: Counter[str] = field(default_factory=Counter)


def run(seed: int, verbose: Callable[[str], None] | None = None, synced: bool = False) -> Outcome:
    """Run a world; with `synced` one in which every promise is synced first."""
    world = World(seed, verbose, synced)
    failure = None
    sys.unraisablehook = ignore_the_dead
    try:
        schedule(world)
        world.run_for(world.plan.length_ms)
        finish(world)
    except Exception as error:
        failure = report(seed, world, error)
    return Outcome(seed, world.events.digest.hexdigest(), failure, world.counts)


def ignore_the_dead(unraisable: sys.UnraisableHookArgs) -> None:
    """A generator of a dead process that is collected tries to clean up behind itself, and may not."""
    if unraisable.exc_type is not Crash:
        sys.__unraisablehook__(unraisable)


def report(seed: int, world: World, error: Exception) -> str:
    """The property, the last events, and how to see it again."""
    where = "".join(format_exception(error)[-6:])
    events = "\n".join(f"  {line}" for line in world.events.recent)
    return f"seed {seed} failed\n{error}\n\nthe last events:\n{events}\n\n{where}\nmake simulate SEED={seed}\n"
