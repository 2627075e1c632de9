"""`moldau cluster balance`: plans, carries plans out, and steers those that are under way."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.admin import resets
from moldau.admin.mistakes import Mistake, misused
from moldau.balance.balancer import Balancer, carry_out, opened
from moldau.balance.execution import Progress
from moldau.balance.goals import GOALS, Goal, Limits
from moldau.balance.journal import PAUSED
from moldau.balance.observing import observe
from moldau.balance.planning import plan
from moldau.balance.progress import CANCELLED, DONE, Wish
from moldau.cli.commands import Sure, parse
from moldau.cli.options import flag, option
from moldau.cli.output import UNITS, Column, progress, size
from moldau.cli.session import Session
from moldau.topicstore import StoreError

if TYPE_CHECKING:
    from moldau.balance.moves import Move, Plan

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
    steered = [
        wish for wish, given in zip(STEERED, (steering.pause, steering.resume, steering.cancel), strict=True) if given
    ]
    if len(steered) > 1 or (steered and (plan_only or drain)):
        raise misused("--pause, --resume and --cancel are not combined with anything else.")
    if steered:
        _steer(session, steered[0])
        return
    goals, limits, rate = wishes.chosen(), wishes.limits(max_bytes), wishes.rate()
    seconds = parse(resets.duration, measure).total_seconds() if measure else 0.0
    model = observe(session.client, seconds)
    strangers = set(drain or ()) - {broker.id for broker in model.brokers}
    if strangers:
        raise misused(f"There is no broker {', '.join(map(str, sorted(strangers)))}.")
    made = plan(model.without(drain or ()), goals, limits)
    over = plan_only or not made.moves
    if over or session.for_people:
        _show(session, made, rate, moves)
    if over:
        return
    session.confirm(f"Carry out {len(made.moves)} moves?", yes)
    purpose = f"drain {', '.join(map(str, drain))}" if drain else "balance"
    _open(session, lambda balancer: _begin(session, balancer, made, purpose, rate))


STEERED = (Wish.PAUSE, Wish.RUN, Wish.CANCEL)


def _open(session: Session, act: Callable[[Balancer], None]) -> None:
    try:
        with opened(session.connection.kafka_settings) as balancer:
            balancer.wait_for_election()
            act(balancer)
    except StoreError as error:
        raise Mistake(str(error)) from None


def _begin(session: Session, balancer: Balancer, made: Plan, purpose: str, rate: int) -> None:
    run = balancer.journal.run
    if run is not None and not run.is_over:
        raise Mistake(f"A plan is unfinished ({run.purpose}; {run.state}): --resume goes on with it, --cancel ends it.")
    balancer.submit(made, purpose, rate)
    _watch(session, balancer, made.moves)


def _steer(session: Session, wish: Wish) -> None:
    def act(balancer: Balancer) -> None:
        run = balancer.journal.run
        if run is None or run.is_over:
            raise Mistake("No plan is unfinished.")
        if wish is Wish.RUN:
            balancer.resume()
        else:
            balancer.want(wish)
        _watch(session, balancer, balancer.journal.moves())

    _open(session, act)


def _watch(session: Session, balancer: Balancer, moves: Sequence[Move]) -> None:
    """Show a progress bar until the run ends, and its outcome."""
    copied = sum(move.bytes for move in moves)
    said: set[str] = set()
    with progress("moving", copied or len(moves)) as bar:

        def show(seen: Progress) -> None:
            bar.advance((seen.bytes_done if copied else seen.moves_done) - bar.done if seen.moves else 0)
            for trouble in seen.trouble:
                if trouble not in said:
                    session.tell(f"Waiting: {trouble}.")
                    said.add(trouble)

        seen = carry_out(balancer, show)
    if seen.state not in (DONE, PAUSED, CANCELLED):
        raise Mistake(f"{seen.state} --resume goes on when it is well again.")
    session.done(OUTCOMES[seen.state], state=seen.state, moves=len(moves), bytes=copied)


OUTCOMES = {
    DONE: "All moves are done.",
    PAUSED: "Paused. --resume goes on.",
    CANCELLED: "Cancelled: moves that were under way were called off.",
}


def change(text: Callable[[Any], str]) -> Callable[[dict[str, Any]], str]:
    """Write a value before and after, or once if it stays."""

    def written(value: dict[str, Any]) -> str:
        before, after = text(value["before"]), text(value["after"])
        return after if before == after else f"{before} → {after}"

    return written


RATES = (Column("bytes_in", "in/s", change(size)), Column("bytes_out", "out/s", change(size)))
COLUMNS = (
    "broker",
    "rack",
    Column("leaders", "leaders", change(str)),
    Column("replicas", "replicas", change(str)),
    Column("bytes", "bytes", change(size)),
)
FIELDS = ("leaders", "replicas", "bytes", "bytes_in", "bytes_out")


def _show(session: Session, made: Plan, rate: int, moves: bool) -> None:
    racks = {broker.id: broker.rack if broker.alive else "(away)" for broker in made.before.brokers}
    brokers = [
        {
            "broker": id,
            "rack": racks[id],
            **{name: {"before": getattr(before, name), "after": getattr(after, name)} for name in FIELDS},
        }
        for id, (before, after) in made.loads().items()
    ]
    rows = [
        {
            "partition": f"{move.topic}-{move.number}",
            "before": list(move.before),
            "after": list(move.after),
            "bytes": move.bytes,
        }
        for move in made.moves
    ]
    seconds = round(made.seconds(rate)) if rate else None
    if not session.for_people:
        facts = {"bytes": made.bytes, "seconds": seconds, "problems": list(made.problems)}
        session.show({"brokers": brokers, "moves": rows, **facts})
        return
    measured = any(row["bytes_in"]["before"] or row["bytes_out"]["before"] for row in brokers)
    session.show(brokers, (*COLUMNS, *RATES) if measured else COLUMNS)
    if moves and rows:
        print()
        session.show(rows, ("partition", "before", "after", Column("bytes", "bytes", size)))
    for problem in made.problems:
        session.tell(problem)
    print(f"\n{summary(made, rate)}", flush=True)


def summary(made: Plan, rate: int) -> str:
    """Say in a sentence what a plan does."""
    if not made.moves:
        return "The cluster is balanced: nothing to do." if not made.problems else "Nothing can be done."
    copies = len(made.moves) - made.leaders
    parts = [f"{_count(copies, 'partition moves', 'partitions move')} ({size(made.bytes)})"] if copies else []
    parts += [_count(made.leaders, "partition only changes its leader", "partitions only change their leaders")] * (
        made.leaders > 0
    )
    pace = f", about {_time(made.seconds(rate))} at {size(rate)}/s" if rate and made.bytes else ""
    return f"{'; '.join(parts)}{pace}."


def _count(number: int, single: str, several: str) -> str:
    return f"{number} {single if number == 1 else several}"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
