"""`moldau doctor`: finds problems of this machine, the cluster and the services, and says what to do."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import httpx
import typer

from moldau import __version__, extras
from moldau.admin import clusters
from moldau.admin.mistakes import NO, Mistake
from moldau.cli import ports, running_platforms
from moldau.cli.commands import command, explain
from moldau.cli.options import epilog, option
from moldau.cli.output import size
from moldau.cli.session import Session
from moldau.cli.status import answers
from moldau.client import ClientError
from moldau.platform import DATA_DIR, HOST, PARTS
from moldau.settings import SettingError

EPILOG = epilog("moldau doctor", "moldau doctor --profile staging", "moldau doctor -o json")
GOOD, ODD, BAD = "ok", "warning", "wrong"
OLDEST_PYTHON, OLDEST_JAVA = (3, 11), 17
LITTLE_ROOM, NO_ROOM = 5_000_000_000, 500_000_000
FEW_FILES = 4096
TIMEOUT_S = 3.0
PACKAGES = ("confluent-kafka", "fastavro", "cramjam", "uvloop", "typer", "rich")
EXTRAS = {
    "pyspark": "streams, SQL and Connect",
    "pyarrow": "batches as columns",
    "numba": "fast searches",
    "nicegui": "the console",
}
REST = "http://127.0.0.1:8082"


class Finding(NamedTuple):
    """The result of a check, and what to do if it is not good."""

    what: str
    state: str
    found: str
    advice: str = ""


def doctor(
    session: Session,
    data_dir: str = option("--data-dir", "Directory of the topics.", DATA_DIR, metavar="DIR"),
    rest: str = option("--rest", "URL of the REST Proxy.", REST, metavar="URL"),
) -> None:
    """Check this machine and the connection to each service; if something is wrong, exit with code 3.

    A service that does not run is a warning: not everybody needs each of them.
    """
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python,
        _java,
        _extras,
        lambda: _disk(Path(data_dir)),
        _files,
        _ports,
        lambda: _cluster(session),
        lambda: _http("registry", session.connection.registry_url, "/subjects?limit=1", "moldau registry"),
        lambda: _http("rest", rest, "/v3/clusters", "moldau rest"),
    )
    rows = [finding for check in checks for finding in check()]
    if session.for_people:
        _print(rows)
    else:
        session.show([row._asdict() for row in rows])
    if any(row.state == BAD for row in rows):
        raise typer.Exit(NO)


cli = command(doctor, without=("registry_user",))


def _print(rows: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    marks = {GOOD: "[green]✓[/]", ODD: "[yellow]![/]", BAD: "[red]✗[/]"}
    wide = max(len(row.what) for row in rows)
    for row in rows:
        console.print(f"{marks[row.state]} {row.what:<{wide}}  {escape(row.found)}")
        if row.advice:
            console.print(f"  {'':<{wide}}  → {escape(row.advice)}")


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info[:2] >= OLDEST_PYTHON
    need = ".".join(map(str, OLDEST_PYTHON))
    yield Finding(
        "python", GOOD if fine else BAD, f"{version} at {sys.executable}", "" if fine else f"Moldau needs {need}."
    )
    yield Finding("moldau", GOOD, __version__)
    found = {name: _version(name) for name in PACKAGES}
    missing = [name for name, version in found.items() if version is None]
    versions = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    advice = f"pip install {' '.join(missing)}" if missing else ""
    yield Finding("packages", BAD if missing else GOOD, versions, advice)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _extras() -> Iterator[Finding]:
    for name, what in EXTRAS.items():
        version = _version(name)
        advice = "" if version else extras.command("all")
        yield Finding(name, GOOD if version else ODD, version or f"is not installed; {what} need it", advice)


def _java() -> Iterator[Finding]:
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    advice = f"Install a JDK of version {OLDEST_JAVA} or later; only Spark needs it."
    if not program or not os.path.exists(program):
        where = f"JAVA_HOME is {home}, which has no java" if home else "no java in PATH"
        yield Finding("java", ODD, where, advice)
        return
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("java", BAD, f"{program} does not run: {error}", advice)
        return
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    number = int(match[2] or 0) if match and match[1] == "1" else int(match[1]) if match else 0
    fine = number >= OLDEST_JAVA
    yield Finding("java", GOOD if fine else ODD, f"{number or 'unknown version'} at {program}", "" if fine else advice)


def _disk(place: Path) -> Iterator[Finding]:
    there = place.absolute()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    state = BAD if free < NO_ROOM else ODD if free < LITTLE_ROOM else GOOD
    advice = "" if state == GOOD else "Free some space, or choose another directory with --data-dir."
    yield Finding("disk", state, f"{size(free)} free for {place.absolute()}", advice)
    if not os.access(there, os.W_OK):
        yield Finding("data directory", BAD, f"{there} cannot be written to", "Choose another with --data-dir.")


def _files() -> Iterator[Finding]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = most != resource.RLIM_INFINITY and most < FEW_FILES
    advice = "Raise it (ulimit -Hn): each connection and each segment takes one." if few else ""
    yield Finding("open files", ODD if few else GOOD, f"at most {most}", advice)


def _ports() -> Iterator[Finding]:
    try:
        mine = {part.pid: part.name for run in running_platforms.listed() for part in run.parts}
    except Mistake as error:
        mine = {}
        yield Finding("platforms", BAD, str(error))
    for name, part in PARTS.items():
        if ports.is_free(HOST, part.port):
            yield Finding(f"port {part.port}", GOOD, f"free for the {name}")
            continue
        owner = ports.owner(part.port)
        if owner is not None and owner.pid in mine:
            yield Finding(
                f"port {part.port}", GOOD, f"the {mine[owner.pid]} of a running platform, process {owner.pid}"
            )
        else:
            taken = f"taken by {owner or 'a process that is not yours'}"
            yield Finding(f"port {part.port}", ODD, taken, "`moldau up --port-offset 10000` moves all ports.")


def _cluster(session: Session) -> Iterator[Finding]:
    where = session.connection.bootstrap_servers + (f" (profile {session.profile})" if session.profile else "")
    began = time.monotonic()
    try:
        state = clusters.described(session.client)
    except (ClientError, SettingError) as error:
        advice = explain(error) if isinstance(error, ClientError) else str(error)
        yield Finding("cluster", ODD, f"{where} does not answer", advice)
        return
    took = (time.monotonic() - began) * 1000
    yield Finding("cluster", GOOD, f"{where}: {state.id}, {len(state.brokers)} brokers, answered in {took:.0f} ms")
    if state.controller < 0:
        yield Finding(
            "controller", BAD, "there is none", "Look at the controllers' logs: topics cannot be changed now."
        )
    for broker in state.brokers:
        address = f"{broker.host}:{broker.port}"
        if not answers(address):
            yield Finding(
                f"broker {broker.id}",
                BAD,
                f"advertises {address}, which cannot be reached from here",
                "Set advertised.listeners to an address that clients can reach.",
            )


def _http(name: str, url: str, path: str, starts: str) -> Iterator[Finding]:
    try:
        answer = httpx.get(url.rstrip("/") + path, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield Finding(name, ODD, f"{url} does not answer: {error}", f"`moldau up` or `{starts}` starts one.")
        return
    if answer.status_code in (401, 403):
        yield Finding(name, GOOD, f"{url} answers, and asks for a user and a password")
    elif answer.is_success:
        yield Finding(name, GOOD, f"{url} answers in {answer.elapsed.total_seconds() * 1000:.0f} ms")
    else:
        advice = "Is it the right service? Look at its logs."
        yield Finding(name, BAD, f"{url} answers {answer.status_code} {answer.reason_phrase}", advice)
