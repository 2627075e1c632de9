"""`moldau logs`: the logs of the parts of a platform."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import typer

from moldau.admin.mistakes import INTERRUPTED, Mistake
from moldau.cli import running_platforms
from moldau.cli.commands import NO_CLUSTER, command
from moldau.cli.options import argument, epilog, flag, option
from moldau.cli.session import Session
from moldau.platform import DATA_DIR, LOGS, PARTS

EPILOG = epilog("moldau logs", "moldau logs -f broker", "moldau logs --lines 100")
LOOK_EVERY_S = 0.2
MOST_BYTES = 16 << 20


def logs(
    session: Session,
    part: str | None = argument(f"Only this part: {', '.join(PARTS)}.", None, metavar="[PART]"),
    follow: bool = flag("--follow -f", "Keep printing new lines."),
    lines: int = option("--lines -n", "Start with this many lines of each part.", 50, min=0),
    data_dir: str | None = option(
        "--data-dir", "Show the logs of the platform that uses this directory, also if it has ended.", metavar="DIR"
    ),
) -> None:
    """Show the logs of the parts of a platform: of the one that is running, or was in ./moldau-data."""
    files = _files(data_dir, part)
    wide = max(len(file.stem) for file in files)
    ends = {file: _show(file, lines, wide) for file in files}
    try:
        while follow:
            sys.stdout.flush()
            time.sleep(LOOK_EVERY_S)
            ends = {file: _follow(file, end, wide) for file, end in ends.items()}
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


cli = command(logs, without=(*NO_CLUSTER, "output"))


def _files(data_dir: str | None, part: str | None) -> list[Path]:
    run = running_platforms.find(data_dir)
    place = Path(run.logs) if run else Path(data_dir or DATA_DIR, LOGS)
    found = sorted(place.glob("*.log")) if place.is_dir() else []
    if not found:
        raise Mistake(f"There are no logs in {place}. `moldau status` shows the running platforms.")
    chosen = [file for file in found if part in (None, file.stem)]
    if not chosen:
        raise Mistake(f"There is no part {part!r}: there are {', '.join(file.stem for file in found)}.")
    return chosen


def _show(file: Path, lines: int, wide: int) -> int:
    """Print the last lines; return the position of the end."""
    size = file.stat().st_size
    with file.open("rb") as source:
        source.seek(max(0, size - MOST_BYTES))
        found = source.read().splitlines()
    for line in found[-lines:] if lines else ():
        _print(file, line, wide)
    return size


def _follow(file: Path, end: int, wide: int) -> int:
    """Print the whole lines after `end`; a file that has become shorter is read from its start."""
    size = file.stat().st_size
    with file.open("rb") as source:
        source.seek(end if size >= end else 0)
        found = source.read(MOST_BYTES)
    whole = found[: found.rfind(b"\n") + 1]
    for line in whole.splitlines():
        _print(file, line, wide)
    return (end if size >= end else 0) + len(whole)


def _print(file: Path, line: bytes, wide: int) -> None:
    print(f"{file.stem:<{wide}} | {line.decode(errors='replace')}")
