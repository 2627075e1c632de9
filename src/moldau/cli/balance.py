"""`moldau cluster balance`: its options; `balancing` is imported when it is used."""

from __future__ import annotations

import re
from dataclasses import dataclass

from moldau.admin import resets
from moldau.admin.mistakes import misused
from moldau.balance.goals import GOALS, Goal, Limits
from moldau.cli.commands import Sure, parse
from moldau.cli.options import flag, option
from moldau.cli.output import UNITS
from moldau.cli.session import Session

SIZE = re.compile(r"([\d.]+)\s*([KMGTP]?)B?(?:/s)?", re.IGNORECASE)
ALL_GOALS = ",".join(GOALS)
EXAMPLES = (
    "moldau cluster balance --plan",
    "moldau cluster balance --throttle 20MB",
    "moldau cluster balance --drain 4 --drain 5",
    "moldau cluster balance --cancel",
)
GOALS_HELP = f"Goals in their order, from {ALL_GOALS}; racks, replication factors and room on disks always count."
THROTTLE_HELP = "Bytes a second that each broker may copy, such as 20MB; 0 does not throttle."


@dataclass(slots=True)
class Wishes:
    """How to plan: options that both commands have."""

    throttle: str = option("--throttle", THROTTLE_HELP, "50MB", metavar="BYTES")
    goals: str = option("--goals", GOALS_HELP, ALL_GOALS, metavar="NAME,...")
    tolerance: float = option("--tolerance", "How far brokers may be from their share, in percent.", 10.0)

    def chosen(self) -> tuple[Goal, ...]:
        names = [name.strip() for name in self.goals.split(",") if name.strip()]
        for name in names:
            if name not in GOALS:
                raise misused(f"There is no goal {name!r}; there are {', '.join(GOALS)}.")
        return tuple(GOALS[name] for name in dict.fromkeys(names))

    def rate(self) -> int:
        return read_size(self.throttle)

    def limits(self, max_bytes: str | None = None) -> Limits:
        if not 0 <= self.tolerance <= 100:
            raise misused("--tolerance is a number from 0 to 100.")
        return Limits(self.tolerance / 100, max_bytes=None if max_bytes is None else read_size(max_bytes))


def read_size(text: str) -> int:
    """Read a number of bytes: 50000000, 50MB or 1.5GB."""
    found = SIZE.fullmatch(text.strip())
    if found is None or found[1].count(".") > 1 or not found[1].strip("."):
        raise misused(f"{text!r} is not a number of bytes; write 50MB, or 0.")
    unit = next(number for number, name in enumerate(UNITS) if name.rstrip("B") == found[2].upper())
    return round(float(found[1]) * 1000**unit)


@dataclass(slots=True)
class Steering:
    """What to do with a plan that is being carried out."""

    pause: bool = flag("--pause", "Let moves end that are under way, and begin no more.")
    resume: bool = flag("--resume", "Go on with a plan that was paused or stopped.")
    cancel: bool = flag("--cancel", "Call off moves that are under way, and forget the plan. What was moved stays.")


def balance(
    session: Session,
    wishes: Wishes,
    steering: Steering,
    plan_only: bool = flag("--plan", "Show the plan; change nothing."),
    drain: list[int] | None = option("--drain", "Take all replicas away from this broker; repeatable.", metavar="ID"),
    moves: bool = flag("--moves", "Show each move of the plan."),
    max_bytes: str | None = option("--max-bytes", "Copy no more than this, such as 100GB.", metavar="BYTES"),
    measure: str | None = option("--measure", "Measure traffic for so long first, such as 30s.", metavar="TIME"),
    yes: Sure = False,
) -> None:
    """Spread bytes, leaders and replicas evenly over the brokers, with as few moves as possible.

    New brokers are filled, and brokers named by --drain emptied. Ctrl-C calls off the moves that are under way and
    removes all throttles; --resume goes on afterwards, also when the command was killed.
    """
    from moldau.balance.progress import Wish
    from moldau.cli import balancing

    given = ((Wish.PAUSE, steering.pause), (Wish.RUN, steering.resume), (Wish.CANCEL, steering.cancel))
    steered = [wish for wish, is_given in given if is_given]
    if len(steered) > 1 or (steered and (plan_only or drain)):
        raise misused("--pause, --resume and --cancel are not combined with anything else.")
    if steered:
        balancing.steer(session, steered[0])
        return
    goals, limits, rate = wishes.chosen(), wishes.limits(max_bytes), wishes.rate()
    seconds = parse(resets.duration, measure).total_seconds() if measure else 0.0
    made = balancing.made(session, goals, limits, seconds, drain or ())
    over = plan_only or not made.moves
    if over or session.for_people:
        balancing.show(session, made, rate, moves)
    if over:
        return
    session.confirm(f"Carry out {len(made.moves)} moves?", yes)
    balancing.begin(session, made, f"drain {', '.join(map(str, drain))}" if drain else "balance", rate)
