"""`moldau streams deploy` and its neighbours: applications that run in the platform."""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Sure
from moldau.cli.options import flag, option
from moldau.cli.session import Session, pairs
from moldau.cli.streams.applications import builder_of, create_missing, sentence, settings_of
from moldau.cli.streams.verbs import verb
from moldau.flows.definition import Definition, FlowError, Wanted
from moldau.topicstore import StoreError

if TYPE_CHECKING:
    from moldau.flows.catalog import Catalog
    from moldau.flows.deploying import Application
    from moldau.flows.overview import Overview
    from moldau.plan.topology_change import Survival

File = Annotated[
    str,
    typer.Argument(help="A Python file that creates a StreamsBuilder; modules beside it that it imports go along."),
]
Create = Annotated[
    bool, typer.Option("--create-topics", help="Create missing topics that the application reads or writes.")
]
Settings = Annotated[
    list[str] | None, typer.Option("-S", metavar="NAME=VALUE", help="A setting of the application; repeatable.")
]
Requirements = Annotated[
    Path | None,
    typer.Option(
        "--requirements",
        metavar="FILE",
        help="Install what this file of requirements names, and ship it along; the application then has a lane and "
        "Python workers of its own.",
    ),
]
Rollback = Annotated[
    bool, typer.Option("--rollback", help="Go back to the version before if this one fails in its first batches.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until it runs.")]
Name = Annotated[str, typer.Argument(metavar="APPLICATION", help="The name of the deployed application.")]
LOOK_S = 0.2
PATIENCE_S = 120.0
BAD, SETTLED = ("failed",), {"running", "paused", "stopped", "finished"}


@contextmanager
def catalog_of(session: Session) -> Iterator[Catalog]:
    """Open the catalog of flows; what it refuses becomes a sentence."""
    from moldau.flows.catalog import opened

    try:
        with opened(session.connection.kafka_settings) as catalog:
            yield catalog
    except (FlowError, StoreError) as error:
        raise Mistake(str(error)) from None


@verb(
    "deploy",
    "moldau streams deploy app.py",
    "moldau streams deploy app.py --create-topics -S commit.interval.ms=1000",
    "moldau streams deploy app.py --requirements requirements.txt",
    "moldau streams deploy app.py --yes --no-wait",
)
def deploy(
    session: Session,
    file: File,
    create: Create = False,
    settings: Settings = None,
    requirements: Requirements = None,
    rollback: Rollback = False,
    no_wait: NoWait = False,
    sure: Sure = False,
) -> None:
    """Deploy an application: a worker of the platform runs it from now on, also after restarts.

    One that is deployed already is upgraded: it stops between two batches and goes on where it was with the new code.
    """
    bring(session, file, create, settings or [], requirements, rollback, no_wait, sure, may_be_new=True)


@verb("upgrade", "moldau streams upgrade app.py", "moldau streams upgrade app.py --yes --rollback")
def upgrade(
    session: Session,
    file: File,
    create: Create = False,
    settings: Settings = None,
    requirements: Requirements = None,
    rollback: Rollback = False,
    no_wait: NoWait = False,
    sure: Sure = False,
) -> None:
    """Replace the code of a deployed application, after showing what becomes of its stores.

    It stops between two batches and goes on where it was. A change with which it could not go on is refused.
    """
    bring(session, file, create, settings or [], requirements, rollback, no_wait, sure, may_be_new=False)


def bring(
    session: Session,
    file: str,
    create: bool,
    settings: list[str],
    requirements: Path | None,
    rollback: bool,
    no_wait: bool,
    sure: bool,
    *,
    may_be_new: bool,
) -> None:
    from moldau.flows import deploying

    chosen = pairs(settings, "-S")
    with packages_of(requirements) as brought:
        one = packed(session, file, create, chosen, brought)
    with catalog_of(session) as catalog:
        known = catalog.flows.get(one.name)
        if known is None and not may_be_new:
            raise Mistake(f"{one.name} is not deployed; `moldau streams deploy {file}` deploys it.")
        new, kept = deploying.defined(one, chosen, session.client, known)
        if known is not None and known.wanted is not Wanted.REMOVED:
            deploying.refuse_loss(one.name, kept)
            session.tell(changes(kept))
            session.confirm(f"{one.name} is deployed as {known.version[:12]}. Replace it by {new.version[:12]}?", sure)
        made = deploying.deploy(catalog, session.client, replace(new, rollback=rollback), one.data)
        said = f"{one.name} {made.version[:12]} is {'deployed' if known is None else 'upgraded'}"
        seen = None if no_wait else await_state(session, catalog, made, SETTLED)
    facts = {"application": one.name, "version": made.version, "state": seen.state if seen else None}
    facts |= {"stores": None if kept is None else asdict(kept)}
    session.done(f"{said}{told(seen)}", **facts)


def changes(kept: Survival | None) -> str:
    """Return what becomes of stores, for people."""
    if kept is None:
        return "What becomes of its stores is not known: a topic is missing, or an older release has deployed it."
    return f"{kept.report()}." if kept.report() else "It has no stores."


@contextmanager
def packages_of(requirements: Path | None) -> Iterator[Path | None]:
    """Install packages into a folder, in which modules are found meanwhile."""
    from moldau.flows import packages

    if requirements is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="moldau-packages-") as scratch:
        folder = Path(scratch, packages.FOLDER)
        try:
            packages.install(requirements, folder)
        except FlowError as error:
            raise Mistake(str(error)) from None
        sys.path.insert(0, str(folder))
        try:
            yield folder
        finally:
            sys.path.remove(str(folder))


def packed(
    session: Session, file: str, create: bool, chosen: dict[str, str], brought: Path | None = None
) -> Application:
    """Load a file in this process, and pack it with the modules that it has imported from beside it."""
    from moldau.flows import code, deploying
    from moldau.operators.context import TopologyError

    before = set(sys.modules)
    builder = builder_of(file)
    try:
        beside = code.modules_beside(Path(file), sys.modules.keys() - before)
        one = deploying.packed(builder.build(), {**settings_of(session), **chosen}, Path(file), beside, brought)
    except (TopologyError, FlowError) as error:
        raise Mistake(f"{file}: {sentence(error)}") from None
    if create:
        create_missing(session, builder)
    return one


@verb("logs", "moldau streams logs word-count", "moldau streams logs word-count --lines 20 --follow")
def logs(
    session: Session,
    application: Name,
    follow: bool = flag("--follow -f", "Print further lines as they come, until Ctrl-C."),
    lines: int = option("--lines", "Print at most this many of the last lines.", 200, min=0, max=1_000_000),
) -> None:
    """Print the log of a deployed application: its states, and errors with their traces.

    The log is a file on the machine of the worker that runs the application, and can be read only there. `describe`
    shows the last error with its trace everywhere.
    """
    from moldau.flows import logs

    path = log_of(session, application)
    for line in logs.tail(path, lines):
        print(line)
    if follow:
        for line in logs.follow(path):
            print(line, flush=True)


def log_of(session: Session, application: str) -> Path:
    """Return the log of an application, if it is on this machine."""
    from moldau.flows import catalog, figures, logs

    said, workers = figures.read_all(session.client)
    if application not in catalog.read(session.client):
        raise Mistake(f"There is no flow {application}: `moldau streams list` shows what is deployed.")
    last = said.get(application)
    named = [one for one in workers.values() if last is not None and one.name == last.worker]
    paths = [(one.host, logs.path_of(Path(one.logs), application)) for one in (*named, *workers.values())]
    here = [path for host, path in paths if host == socket.gethostname() and path.exists()]
    if here:
        return here[0]
    if named and named[0].host != socket.gethostname():
        raise Mistake(f"The log is on {named[0].host}, in {paths[0][1]}: read it there.")
    raise Mistake(f"{application} has no log yet: no worker has had it. `moldau worker list` shows who runs.")


@verb("pause", "moldau streams pause word-count")
def pause(session: Session, application: Name) -> None:
    """Let an application stop after its batch; it keeps its worker and goes on with `resume`."""
    change(session, application, "pause")


@verb("resume", "moldau streams resume word-count")
def resume(session: Session, application: Name) -> None:
    """Let an application go on that was paused or stopped, or that has failed."""
    change(session, application, "resume")


@verb("stop", "moldau streams stop word-count")
def stop(session: Session, application: Name) -> None:
    """Stop an application: no worker has it any more, and what it knows is kept for `resume`."""
    change(session, application, "stop")


@verb("restart", "moldau streams restart word-count")
def restart(session: Session, application: Name) -> None:
    """Make and start an application anew, as it is."""
    change(session, application, "restart")


@verb("rollback", "moldau streams rollback word-count")
def rollback(session: Session, application: Name) -> None:
    """Go back to the code that ran before the last upgrade."""
    with catalog_of(session) as catalog:
        made = catalog.roll_back(application)
        seen = await_state(session, catalog, made, SETTLED)
    session.done(f"{application} is {made.version[:12]} again{told(seen)}", application=application)


@verb(
    "move",
    "moldau streams move word-count --lane own",
    "moldau streams move word-count --lane shared",
    "moldau streams move word-count --lane own --worker desk-4711",
    "moldau streams move word-count --worker any",
)
def move(
    session: Session,
    application: Name,
    lane: str | None = option("--lane", "Give it a lane of its own, or let it share one.", metavar="own|shared"),
    worker: str | None = option(
        "--worker", "The worker that is to have its own lane, as long as that is there; any lets the workers decide."
    ),
) -> None:
    """Move an application to another lane, or its lane to another worker, with its state.

    It stops after a batch and goes on where it was: its stores are restored from their changelogs in the new lane.
    """
    from moldau.flows.lanes import OWN, SHARED, chosen_lane
    from moldau.flows.moving import ANY
    from moldau.flows.overview import workers

    if lane is None and worker is None:
        raise misused("Say where to move it: --lane own, --lane shared, or --worker NAME.")
    if lane not in (None, OWN, SHARED):
        raise misused(f"--lane {lane}: a lane is {OWN} or {SHARED}.")
    there = [one.name for one in workers(session.client)]
    if worker not in (None, ANY, *there):
        raise Mistake(f"There is no worker {worker}; {', '.join(there) or 'none'} runs.")
    with catalog_of(session) as catalog:
        made = catalog.move(application, lane, worker)
        wanted = {"lane": chosen_lane(made)} | ({} if worker in (None, ANY) else {"worker": worker})
        seen = await_state(session, catalog, made, {str(made.wanted)}, **wanted)
    if any(getattr(seen, name) != place for name, place in wanted.items()):
        raise Mistake(f"{application} has not moved yet, and is {seen.state}. `moldau worker list` shows who runs.")
    facts = {"lane": seen.lane, "worker": seen.worker, "state": seen.state}
    session.done(f"{application} is in {seen.lane}{told(seen)}", application=application, **facts)


@verb("undeploy", "moldau streams undeploy word-count", "moldau streams undeploy word-count --yes")
def undeploy(session: Session, application: Name, sure: Sure = False) -> None:
    """Remove an application with its state, its internal topics and its offsets, but not its output."""
    session.confirm(f"Remove {application} with its state?", sure)
    with catalog_of(session) as catalog:
        catalog.want(application, Wanted.REMOVED)
        wait(session, lambda: application not in catalog.known, f"{application} is being removed")
        gone = application not in catalog.known
    if not gone:
        raise Mistake(f"{application} is not removed yet: no worker has done it. `moldau worker list` shows who runs.")
    session.done(f"{application} is removed.", application=application)


def change(session: Session, application: str, verb: str) -> None:
    from moldau.flows.verbs import VERBS

    with catalog_of(session) as catalog:
        made = VERBS[verb].run(catalog, application)
        seen = await_state(session, catalog, made, {VERBS[verb].leads_to})
    session.done(f"{application} {told(seen).removeprefix(', and ')}", application=application, state=seen.state)


def await_state(session: Session, catalog: Catalog, flow: Definition, good: set[str], **where: str | None) -> Overview:
    """Wait until a worker says that it has done what is wanted, in a lane or on a worker that is named, or that it
    cannot.
    """
    from moldau.flows.overview import overviews

    def now() -> Overview:
        return next(one for one in overviews(catalog.known, session.client) if one.name == flow.name)

    def is_done() -> bool:
        seen = now()
        is_there = all(getattr(seen, name) == place for name, place in where.items())
        return (seen.state in good and is_there) or (
            seen.state in BAD and not (flow.rollback and catalog.flows[flow.name] == flow)
        )

    wait(session, is_done, f"{flow.name} is not {'/'.join(good)} yet")
    seen = now()
    if seen.note is not None and catalog.flows[flow.name].version != flow.version:
        raise Mistake(seen.note)
    if seen.state in BAD:
        raise Mistake(f"{flow.name} failed: {seen.error or 'no reason is known'}{detail(seen.trace)}")
    return seen


def detail(trace: str | None) -> str:
    lines = (trace or "").strip().splitlines()
    return "".join(f"\n  {line}" for line in lines[-8:])


def wait(session: Session, condition: Callable[[], bool], what: str) -> None:
    """Wait for something within reason; after a while it is said what is waited for."""
    began, is_told = time.monotonic(), False
    while not condition():
        passed = time.monotonic() - began
        if passed > PATIENCE_S:
            return
        if passed > 2 and not is_told:
            is_told = True
            session.tell(f"{what} ... (Ctrl-C ends the waiting, not the change)")
        time.sleep(LOOK_S)


def told(seen: Any) -> str:
    if seen is None:
        return "."
    where = f" on {seen.worker}" if seen.worker else ""
    return f", and {seen.state}{where}."
