"""`moldau status`: the platforms that run on this machine."""

from __future__ import annotations

import socket
import time
from typing import Any

import typer

from moldau.admin.mistakes import NO
from moldau.cli import running_platforms
from moldau.cli.commands import NO_CLUSTER, command
from moldau.cli.options import epilog
from moldau.cli.output import Column, size
from moldau.cli.session import Session
from moldau.platform import NOWHERE

EPILOG = epilog("moldau status", "moldau status -o json")
TIMEOUT_S = 1.0
COLUMNS = ("part", "address", "state", "process", Column("memory", "memory", size), "up", "data")


def status(session: Session) -> None:
    """Show the parts of the platforms on this machine; if none is running, exit with code 3."""
    rows = [_row(run, part) for run in running_platforms.listed() for part in run.parts]
    session.show(rows, COLUMNS, "No platform is running. `moldau up` starts one.")
    if not rows:
        raise typer.Exit(NO)


cli = command(status, NO_CLUSTER)


def _row(run: running_platforms.Run, part: running_platforms.RunningPart) -> dict[str, Any]:
    return {
        "part": part.name,
        "address": part.address,
        "state": state(part),
        "process": part.pid,
        "memory": running_platforms.memory(part.pid),
        "up": _since(run.started),
        "data": run.data_dir,
    }


def state(part: running_platforms.RunningPart) -> str:
    """Return the state of a part, without starting an idle one. One without an address runs if its process does."""
    if part.is_idle:
        return "waits for its first use"
    if part.address == NOWHERE:
        return "runs" if running_platforms.memory(part.pid) else "does not run"
    return "serves" if answers(part.address) else "does not answer"


def answers(address: str) -> bool:
    """Return whether an address accepts connections."""
    host, _, port = address.removeprefix("http://").removeprefix("https://").rstrip("/").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_S).close()
    except (OSError, ValueError):
        return False
    return True


def _since(started: float) -> str:
    seconds = max(0, int(time.time() - started))
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))
    shown = [f"{number}{unit}" for number, unit in parts if number]
    return " ".join(shown[:2]) or "0s"
