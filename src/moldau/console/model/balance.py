"""Plans and runs of the balancer as rows and sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.balance.execution import Progress
from moldau.balance.journal import RUNNING
from moldau.balance.moves import Plan
from moldau.balance.progress import CANCELLED, DONE, PAUSED
from moldau.console import paths
from moldau.console.model import figures

MOST = 200  # moves that are shown
MB = 1_000_000


def load_rows(made: Plan) -> list[dict[str, Any]]:
    """Return what each broker carries before and after."""
    known = {broker.id: broker for broker in made.before.brokers}
    return [
        {
            "broker": id,
            "rack": (known[id].rack or "–") if known[id].alive else "away",
            "leads": _change(figures.count, before.leaders, after.leaders),
            "replicas": _change(figures.count, before.replicas, after.replicas),
            "size": _change(figures.size, before.bytes, after.bytes),
        }
        for id, (before, after) in made.loads().items()
    ]


def _change(text: Callable[[int], str], before: int, after: int) -> str:
    return text(after) if before == after else f"{text(before)} → {text(after)}"


def move_rows(made: Plan) -> list[dict[str, Any]]:
    """Return the moves of a plan."""
    return [
        {
            "partition": f"{move.topic}-{move.number}",
            "link": paths.topic(move.topic),
            "now": ", ".join(map(str, move.before)),
            "then": ", ".join(map(str, move.after)),
            "copies": figures.size(move.bytes) if move.adding else "–",
        }
        for move in made.moves[:MOST]
    ]


def state_words(state: str) -> str:
    """Say what the state of a run is; one that was stopped says itself why."""
    known = {RUNNING: "It is being carried out.", PAUSED: "It is paused.", DONE: "All its moves are done."}
    known[CANCELLED] = "It was cancelled: moves that were under way were called off."
    return known.get(state, state)


def share(seen: Progress) -> float:
    """Return how much of a run is done, from 0 to 1: by bytes, or by moves if nothing is copied."""
    if seen.bytes:
        return seen.bytes_done / seen.bytes
    return seen.moves_done / seen.moves if seen.moves else 1.0


def progress_words(seen: Progress) -> str:
    """Say how far a run is."""
    moved = f"{seen.moves_done:,} of {seen.moves:,} moves"
    return f"{moved}, {figures.size(seen.bytes_done)} of {figures.size(seen.bytes)}" if seen.bytes else moved
