"""`moldau down`: stop platforms that run on this machine."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli import running_platforms
from moldau.cli.commands import command, epilog
from moldau.cli.session import Session
from moldau.cli.status import NEITHER

EPILOG = epilog(("moldau down", "moldau down --data-dir ./moldau-data", "moldau down --all"))


def down(
    session: Session,
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="The platform on this directory.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every platform of yours.")] = False,
) -> None:
    """Stop a platform in order, and wait until it has ended."""
    one = None if everything else running_platforms.find(data_dir)
    running = running_platforms.listed() if everything else [one] if one else []
    if not running:
        where = f" on {data_dir}" if data_dir else ""
        raise Mistake(f"No platform runs{where}. `moldau status` shows those that do.")
    for run in running:
        os.kill(run.pid, signal.SIGTERM)
    for run in running:
        if not running_platforms.wait_for_end(run):
            raise Mistake(f"The platform on {run.data_dir} does not end; its process is {run.pid}.")
    places = [run.data_dir for run in running]
    session.done(f"Stopped {', '.join(places)}.", stopped=places)


cli = command(down, without=NEITHER)
