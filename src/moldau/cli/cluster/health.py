"""`moldau cluster health`: what is wrong with a cluster, and why."""

from __future__ import annotations

import sys
import time
from typing import Any

import typer

from moldau.admin import health as checks
from moldau.admin.health import Sight, Trouble
from moldau.admin.mistakes import NO
from moldau.cli.cluster.verbs import verb
from moldau.cli.options import flag, option
from moldau.cli.session import Session

CLEAR = "\033[H\033[J"  # the screen of a terminal


@verb(
    "health",
    "moldau cluster health",
    "moldau cluster health --watch",
    "moldau cluster health -o json || echo unhealthy",
)
def health(
    session: Session,
    watch: bool = flag("--watch -w", "Look again and again until Ctrl-C."),
    every: float = option("--every", "Seconds between two looks.", 2.0, min=0.1),
) -> None:
    """Check partitions, brokers, directories and the quorum; if something is wrong, exit with code 3.

    Partitions are named that have no leader or too few replicas in sync, with the brokers that are missing; brokers
    that are fenced or do not answer; directories that are offline; replicas of the metadata that lag. A partition is at
    min ISR if acks=all fails once one more replica is lost. Moves are listed too, but are no fault.
    """
    while True:
        sight = checks.look(session.client)
        troubles = checks.judge(sight)
        if watch and sys.stdout.isatty():
            print(CLEAR, end="")
        _show(session, sight, troubles)
        if not watch:
            break
        sys.stdout.flush()
        time.sleep(every)
    if any(one.is_unwell for one in troubles):
        raise typer.Exit(NO)


def _show(session: Session, sight: Sight, troubles: list[Trouble]) -> None:
    facts = _facts(sight, troubles)
    rows = [{"where": one.where, "reason": one.reason, "details": one.details} for one in troubles]
    if not session.for_people:
        session.show({**facts, "troubles": rows})
        return
    session.show({name: len(value) if isinstance(value, list) else value for name, value in facts.items()})
    if rows:
        print()
        session.show(rows)


def _facts(sight: Sight, troubles: list[Trouble]) -> dict[str, Any]:
    def places(*reasons: str) -> list[str]:
        return [one.where for one in troubles if one.reason in reasons]

    quorum = sight.quorum
    leader = sight.cluster.controller if quorum is None else quorum.leader
    return {
        "healthy": not any(one.is_unwell for one in troubles),
        "brokers": len(sight.cluster.brokers),
        "fenced_brokers": sorted(sight.fenced),
        "silent_brokers": sorted(sight.silent),
        "controller": leader if leader >= 0 else None,
        "partitions": sum(len(topic.partitions) for topic in sight.topics),
        "leaderless": places(checks.NO_LEADER),
        "under_replicated": [
            f"{topic.name}-{part.index}"
            for topic in sight.topics
            for part in topic.partitions
            if checks.lacking(topic.name, part, sight.moves)
        ],
        "under_min_isr": places(checks.UNDER_MIN_ISR),
        "at_min_isr": places(checks.AT_MIN_ISR),
        "offline_dirs": [
            f"{broker}:{one.path}" for broker, found in sight.folders.items() for one in found if one.error
        ],
        "quorum_lag": [one.details for one in troubles if one.reason == checks.LAGS],
        "moving": [f"{topic}-{part}" for topic, part in sight.moves],
    }
