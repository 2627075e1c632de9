"""`moldau down`: stop platforms that run on this machine."""

from __future__ import annotations

import os
import signal

from moldau.admin.mistakes import Mistake
from moldau.cli import running_platforms
from moldau.cli.commands import NO_CLUSTER, command
from moldau.cli.options import epilog, flag, option
from moldau.cli.session import Session

EPILOG = epilog("moldau down", "moldau down --data-dir ./moldau-data", "moldau down --all")


def down(
    session: Session,
    data_dir: str | None = option("--data-dir", "Stop the platform that uses this directory.", metavar="DIR"),
    everything: bool = flag("--all", "Stop all your platforms."),
) -> None:
    """Stop a platform, its parts in order, and wait until it has ended."""
    one = None if everything else running_platforms.find(data_dir)
    running = running_platforms.listed() if everything else [one] if one else []
    if not running:
        where = f" on {data_dir}" if data_dir else ""
        raise Mistake(f"No platform is running{where}. `moldau status` shows those that are.")
    for run in running:
        os.kill(run.pid, signal.SIGTERM)
    for run in running:
        if not running_platforms.wait_for_end(run):
            raise Mistake(f"The platform on {run.data_dir} does not end; its process id is {run.pid}.")
    places = [run.data_dir for run in running]
    session.done(f"Stopped {', '.join(places)}.", stopped=places)


cli = command(down, NO_CLUSTER)
