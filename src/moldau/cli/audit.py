"""`moldau audit`: who was refused, and who changed what, from the audit logs of a secured platform."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from moldau.admin.mistakes import INTERRUPTED, Mistake
from moldau.cli.commands import NO_CLUSTER, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.session import Session

cli, verb = noun((*NO_CLUSTER, "output"))
LOOK_EVERY_S = 0.2
MOST_BYTES = 16 << 20  # read of each file
FIRST = ("time", "message", "principal", "host", "request")


@verb(
    "tail", "moldau audit tail", "moldau audit tail -f --denied", "moldau audit tail /etc/moldau --principal ada --json"
)
def tail(
    session: Session,
    place: Path = argument(
        "The folder of `moldau secure init`, or a file.", default=Path("moldau-secure"), metavar="PLACE"
    ),
    follow: bool = flag("--follow -f", "Keep printing new lines."),
    lines: int = option("--lines -n", "Start with this many lines.", 50, min=0),
    denied: bool = flag("--denied", "Only what was refused."),
    principal: str | None = option("--principal -u", "Only what this user did.", metavar="USER"),
    as_json: bool = flag("--json", "Print the lines as they are."),
) -> None:
    """Print the last lines of the audit logs in the order of time."""
    files = dict.fromkeys(_files(place), 0)

    def show(found: list[dict[str, Any]]) -> None:
        for line in found:
            print(json.dumps(line, ensure_ascii=False) if as_json else text_of(line))
        sys.stdout.flush()

    def wanted() -> list[dict[str, Any]]:
        found = [line for file in files for line in _new(file, files)]
        chosen = [line for line in found if fits(line, denied, principal)]
        return sorted(chosen, key=lambda line: str(line.get("time", "")))

    first = wanted()
    show(first[-lines:] if lines else [])
    try:
        while follow:
            time.sleep(LOOK_EVERY_S)
            files |= {file: 0 for file in _files(place) if file not in files}
            show(wanted())
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def _files(place: Path) -> list[Path]:
    found = [place] if place.is_file() else sorted(place.glob("audit*.log"))
    if not found:
        raise Mistake(f"There is no audit log in {place}. `moldau.audit.file` names one; `moldau secure init` sets it.")
    return found


def _new(file: Path, ends: dict[Path, int]) -> Iterator[dict[str, Any]]:
    """Yield the lines since the last time; a file that was rotated is read from its start."""
    size = file.stat().st_size
    start = ends[file] if size >= ends[file] else 0
    with file.open("rb") as source:
        source.seek(max(start, size - MOST_BYTES))
        data = source.read(MOST_BYTES)
        begin = source.tell() - len(data)
    whole = data[: data.rfind(b"\n") + 1]
    ends[file] = begin + len(whole)
    for line in whole.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue  # the first line may be cut off
        if isinstance(found, dict):
            yield found


def fits(line: dict[str, Any], denied: bool, principal: str | None) -> bool:
    """Say whether a line is wanted."""
    refused = line.get("level") == "warning"
    who = None if principal is None else (principal if ":" in principal else f"User:{principal}")
    return (refused or not denied) and who in (None, line.get("principal"))


def text_of(line: dict[str, Any]) -> str:
    """Return a line for people: the main fields first, the others by name."""
    rest = {name: value for name, value in line.items() if name not in (*FIRST, "level", "logger")}
    main = " ".join(str(line[name]) for name in FIRST if line.get(name))
    return " ".join([main, *(f"{name}={_short(value)}" for name, value in rest.items())])


def _short(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value, ensure_ascii=False)
