"""Shows plans and carries them out, with a progress bar: what `moldau cluster balance` does."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moldau.admin.mistakes import Mistake, misused
from moldau.balance import sessions
from moldau.balance.balancer import Balancer, carry_out
from moldau.balance.execution import Progress
from moldau.balance.goals import Goal, Limits
from moldau.balance.moves import Move, Plan, summary
from moldau.balance.observing import observe
from moldau.balance.planning import plan
from moldau.balance.progress import CANCELLED, DONE, PAUSED, Wish
from moldau.cli.output import Column, progress, size
from moldau.cli.session import Session

ENDING = (signal.SIGTERM, signal.SIGHUP)


def made(session: Session, goals: Sequence[Goal], limits: Limits, measure_s: float, drain: Sequence[int]) -> Plan:
    """Look at the cluster and plan."""
    model = observe(session.client, measure_s)
    strangers = set(drain) - {broker.id for broker in model.brokers}
    if strangers:
        raise misused(f"There is no broker {', '.join(map(str, sorted(strangers)))}.")
    return plan(model.without(drain), goals, limits)


def begin(session: Session, made: Plan, purpose: str, rate: int) -> None:
    """Carry out a plan."""
    remedy = "--resume goes on with it, --cancel ends it"
    _carry_out(session, sessions.begin(made, purpose, rate, remedy))


def steer(session: Session, wish: Wish) -> None:
    """Let an unfinished run go on, pause or end."""
    _carry_out(session, sessions.steer(wish))


def _carry_out(session: Session, act: sessions.Act) -> None:
    with _interrupted_by_signals(), sessions.taking_part(session.connection.kafka_settings) as balancer:
        act(balancer)
        _watch(session, balancer, balancer.journal.moves())


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Treat every polite end of the process as Ctrl-C, so that moves are called off and throttles removed."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(session: Session, balancer: Balancer, moves: Sequence[Move]) -> None:
    """Show a progress bar until the run ends, and its outcome."""
    copied = sum(move.bytes for move in moves)
    said: set[str] = set()
    with progress("moving", copied or len(moves)) as bar:

        def report(seen: Progress) -> None:
            bar.advance((seen.bytes_done if copied else seen.moves_done) - bar.done if seen.moves else 0)
            for trouble in seen.trouble:
                if trouble not in said:
                    session.tell(f"Waiting: {trouble}.")
                    said.add(trouble)

        seen = carry_out(balancer, report)
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


def show(session: Session, made: Plan, rate: int, moves: bool) -> None:
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
    print(f"\n{summary(made, rate, size)}", flush=True)
