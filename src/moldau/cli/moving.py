"""How commands show plans of moves, carry them out with a progress bar, and stop at Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer

from moldau.admin import moves
from moldau.admin.mistakes import INTERRUPTED
from moldau.admin.moves import Move, Progress
from moldau.cli.output import Column, progress, size
from moldau.cli.session import Session

COLUMNS = ("partition", Column("before", "from"), Column("after", "to"), Column("bytes", "copies", size))


def rows(planned: Sequence[Move]) -> list[dict[str, Any]]:
    """Return a row for each move."""
    return [
        {
            "partition": one.name,
            "topic": one.topic,
            "index": one.index,
            "before": list(one.before),
            "after": list(one.after),
            "bytes": one.bytes,
        }
        for one in planned
    ]


def show(session: Session, planned: Sequence[Move]) -> None:
    """Show a plan with the bytes that it copies."""
    session.show(rows(planned), COLUMNS, "There is nothing to move.")
    if planned and session.for_people:
        session.tell(f"{len(planned)} partitions, {size(sum(one.bytes for one in planned))} to copy.")


def carry_out(session: Session, planned: Sequence[Move], at_a_time: int) -> int:
    """Carry out moves and show how far they are; return the bytes copied. Ctrl-C offers to call them off."""
    state = Progress(0, [])
    try:
        with progress("bytes", sum(one.bytes for one in planned)) as bar:
            for state in moves.carry_out(session.client, planned, at_a_time):
                bar.advance(state.copied - bar.done)
    except KeyboardInterrupt:
        _interrupted(session, state)
        raise typer.Exit(INTERRUPTED) from None
    return state.copied


def _interrupted(session: Session, state: Progress) -> None:
    """Say what is under way, and call it off if a person says so."""
    names = ", ".join(one.name for one in state.moving.values())
    session.tell(f"\n{len(state.done)} partitions are moved, {len(state.waiting)} were not begun.")
    if not names:
        return
    if sys.stdin.isatty() and sys.stderr.isatty():
        session.tell(f"Under way: {names}. Cancel these? [y/N] ")
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            called_off = moves.cancel(session.client, list(state.moving))
            session.tell(f"{len(called_off)} moves cancelled.")
            return
    session.tell(f"Still under way: {names}. `moldau topic move TOPIC --cancel` cancels moves.")
