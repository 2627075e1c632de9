"""`moldau connector`: the connectors of a Connect cluster, over the REST interface of any of its workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

import typer

from moldau.admin.connectors import URL, Login, answered, ask, difference, path_of, states_of
from moldau.admin.mistakes import NO, Mistake, misused
from moldau.cli.commands import NO_CLUSTER, DryRun, Sure, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.session import Session, pairs

cli, verb = noun(NO_CLUSTER)
offsets_cli, offsets_verb = noun(NO_CLUSTER)
cli.add_typer(offsets_cli, name="offsets", help="Show, set and reset how far a connector has read.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The connector.")]


@dataclass(slots=True)
class Place:
    """A worker of Connect."""

    url: str = option("--url", f"URL of a worker; otherwise {URL}.", URL, envvar="MOLDAU_CONNECT_URL", metavar="URL")

    user: str = option(
        "--user", "Log in with basic authentication.", "", envvar="MOLDAU_CONNECT_USER", metavar="NAME:PASSWORD"
    )
    ca: str = option(
        "--ca", "File with the authority of the worker's certificate.", "", envvar="MOLDAU_CONNECT_CA", metavar="FILE"
    )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return ask(self.url, method, path, body, Login(self.user, self.ca))

    def of(self, name: str, rest: str = "") -> str:
        return path_of(name, rest)


@verb("list", "moldau connector list")
def list_(session: Session, place: Place) -> None:
    """List the connectors with their states."""
    found = place.ask("GET", "/connectors?expand=status&expand=info")
    rows = [_row(name, one) for name, one in sorted(found.items())]
    session.show(rows, ("name", "type", "class", "state", "tasks", "worker"), "There are no connectors.")


def _row(name: str, one: dict[str, Any]) -> dict[str, Any]:
    status, info = one.get("status") or {}, one.get("info") or {}
    return {
        "name": name,
        "type": info.get("type", ""),
        "class": info.get("config", {}).get("connector.class", "").rpartition(".")[2],
        "state": status.get("connector", {}).get("state", "UNASSIGNED"),
        "tasks": states_of(status),
        "worker": status.get("connector", {}).get("worker_id", ""),
    }


@verb("show", "moldau connector show orders")
def show(session: Session, place: Place, name: Name) -> None:
    """Show a connector: its config, its state and that of its tasks, with the trace of what has failed."""
    info = place.ask("GET", place.of(name))
    found = place.ask("GET", "/connectors?expand=status").get(name, {}).get("status")
    session.show({**info, "status": found})


@verb("create", "moldau connector create orders.json", "moldau connector create orders.properties --stopped")
def create(
    session: Session,
    place: Place,
    file: str = argument(
        "The config: properties, or JSON as REST takes it. Without one you are asked for the settings.",
        "",
        metavar="FILE",
    ),
    stopped: bool = flag("--stopped", "Do not start it."),
) -> None:
    """Create a connector from a file, or from answers to questions."""
    config = _read(file) if file else _asked(session, place)
    name = config.get("name") or ""
    body = {"name": name, "config": config, **({"initial_state": "STOPPED"} if stopped else {})}
    place.ask("POST", "/connectors", body)
    session.done(f"Created {name}.", name=name)


@verb("validate", "moldau connector validate orders.json")
def validate(
    session: Session, place: Place, file: str = argument("The config, as for create.", metavar="FILE")
) -> None:
    """Validate a config: print each error, and exit with 3 if there is one."""
    config = _read(file)
    found = place.ask(
        "PUT", f"/connector-plugins/{quote(config.get('connector.class') or '-', safe='')}/config/validate", config
    )
    rows = [
        {"setting": row["value"]["name"], "value": row["value"]["value"], "error": error}
        for row in answered(found)
        for error in row["value"]["errors"]
    ]
    session.show(rows, ("setting", "value", "error"), "The config is valid.")
    if rows:
        raise typer.Exit(NO)


@verb("edit", "moldau connector edit orders --set batch.size=100", "moldau connector edit orders --file orders.json")
def edit(
    session: Session,
    place: Place,
    name: Name,
    file: str | None = option("--file", "Replace the whole config by that of a file.", metavar="FILE"),
    chosen: list[str] = option("--set", "Set a setting; repeatable.", [], metavar="NAME=VALUE"),
    removed: list[str] = option("--unset", "Remove a setting; repeatable.", [], metavar="NAME"),
    dry_run: DryRun = False,
    sure: Sure = False,
) -> None:
    """Change the config of a connector; the difference is shown first."""
    if not (file or chosen or removed):
        raise misused("Say what to change, with --set, --unset or --file.")
    before = place.ask("GET", place.of(name, "/config"))
    after = {**(_read(file) if file else before), **pairs(chosen, "--set"), "name": name}
    for one in removed:
        after.pop(one, None)
    lines = difference(before, after)
    for line in lines:
        session.tell(line)
    if not lines:
        session.done(f"{name} is so already.", name=name, changed=False)
    elif not dry_run:
        session.confirm(f"Change {name}?", sure)
        place.ask("PUT", place.of(name, "/config"), after)
        session.done(f"Changed {name}.", name=name, changed=True)


@verb("pause", "moldau connector pause orders")
def pause(session: Session, place: Place, name: Name) -> None:
    """Let the tasks of a connector rest."""
    place.ask("PUT", place.of(name, "/pause"))
    session.done(f"{name} pauses.", name=name)


@verb("stop", "moldau connector stop orders")
def stop(session: Session, place: Place, name: Name) -> None:
    """Stop a connector and end its tasks; its offsets can be changed then."""
    place.ask("PUT", place.of(name, "/stop"))
    session.done(f"{name} stops.", name=name)


@verb("resume", "moldau connector resume orders")
def resume(session: Session, place: Place, name: Name) -> None:
    """Let a connector that was paused or stopped go on."""
    place.ask("PUT", place.of(name, "/resume"))
    session.done(f"{name} goes on.", name=name)


@verb("restart", "moldau connector restart orders --tasks --failed", "moldau connector restart orders --task 0")
def restart(
    session: Session,
    place: Place,
    name: Name,
    tasks: bool = flag("--tasks", "Restart its tasks too."),
    failed: bool = flag("--failed", "Restart only what has failed."),
    task: int | None = option("--task", "Restart this task alone."),
) -> None:
    """Restart a connector, its tasks, or what has failed of them."""
    if task is not None:
        place.ask("POST", place.of(name, f"/tasks/{task}/restart"))
    else:
        query = f"includeTasks={str(tasks).lower()}&onlyFailed={str(failed).lower()}"
        place.ask("POST", place.of(name, f"/restart?{query}"))
    session.done(f"{name} restarts.", name=name)


@verb("delete", "moldau connector delete orders")
def delete(session: Session, place: Place, name: Name, sure: Sure = False) -> None:
    """Delete a connector; what it has written, and its offsets, stay."""
    session.confirm(f"Delete {name}?", sure)
    place.ask("DELETE", place.of(name))
    session.done(f"Deleted {name}.", name=name)


@verb("tasks", "moldau connector tasks orders")
def tasks(session: Session, place: Place, name: Name) -> None:
    """List the tasks of a connector."""
    found = place.ask("GET", place.of(name, "/status"))
    session.show(found["tasks"], ("id", "state", "worker_id", "trace"), f"{name} has no tasks.")


@verb("plugins", "moldau connector plugins", "moldau connector plugins --all")
def plugins(
    session: Session, place: Place, everything: bool = flag("--all", "Converters, transforms and predicates too.")
) -> None:
    """List the plugins that the workers have."""
    found = place.ask("GET", f"/connector-plugins?connectorsOnly={str(not everything).lower()}")
    session.show(found, ("class", "type", "version"))


@verb("dlq", "moldau connector dlq copy", "moldau connector dlq copy --retry")
def dlq(
    session: Session,
    place: Place,
    name: Name,
    retry: bool = flag("--retry", "Put them once more; those that fail again stay."),
    limit: int = option("--limit", "The most letters to show or to retry.", 1000),
) -> None:
    """Show the dead letters of a sink that were not retried yet."""
    if retry:
        done = place.ask("POST", place.of(name, f"/dead-letters/retry?limit={limit}"))
        session.done(f"Put {done['put']} dead letters of {name}; {done['failed']} failed again.", **done)
        return
    found = place.ask("GET", place.of(name, f"/dead-letters?limit={limit}"))["letters"]
    columns = ("offset", "topic", "partition", "stage", "message", "key", "value")
    session.show(found, columns, f"{name} has no dead letters.")


@verb("slots", "moldau connector slots", "moldau connector slots orders.properties")
def slots(
    session: Session,
    place: Place,
    file: str = argument("The config of a connector; otherwise those of the workers are used.", "", metavar="FILE"),
) -> None:
    """List replication slots of PostgreSQL: how far they are behind, and how much log the database keeps for them.

    Slots that belong to no connector are listed too: the database keeps its log for them until they are dropped.
    """
    from moldau.connect.connectors.cdc.postgres.slots import COLUMNS, slots_of
    from moldau.connect.errors import ConfigError, ConnectError

    if file:
        config = _read(file)
        configs = {config.get("name") or file: config}
    else:
        found = place.ask("GET", "/connectors?expand=info")
        configs = {name: one["info"]["config"] for name, one in sorted(found.items())}
    try:
        rows = slots_of(configs)
    except (ConfigError, ConnectError) as error:
        raise Mistake(str(error)) from None
    session.show(rows, COLUMNS, "No connector captures changes of PostgreSQL, or its server has no slots.")


@verb("settings", "moldau connector settings FileStreamSource")
def settings(
    session: Session, place: Place, plugin: str = argument("The class of a connector or plugin.", metavar="CLASS")
) -> None:
    """List the settings of a plugin."""
    found = place.ask("GET", f"/connector-plugins/{quote(plugin, safe='')}/config")
    session.show(found, ("name", "type", "default_value", "documentation"))


@verb("new", "moldau connector new weather", "moldau connector new mailer --sink")
def new(
    session: Session,
    name: str = argument("The name of the connector.", metavar="NAME"),
    is_sink: bool = flag("--sink", "Make a sink; otherwise a source is made."),
    folder: str = option("--in", "The folder to make it in.", ".", metavar="FOLDER"),
) -> None:
    """Make the package of a connector of your own, with a test."""
    from pathlib import Path

    from moldau.cli.connector_new import make

    files = make(name, Path(folder), is_sink=is_sink)
    session.done(f"Made {', '.join(map(str, files))}.", files=[str(file) for file in files])


@verb("run", "moldau connector run orders.properties --bootstrap-servers localhost:9092")
def run(
    session: Session,
    file: str = argument("The config: properties, or JSON as REST takes it.", metavar="FILE"),
    bootstrap_servers: str = option("--bootstrap-servers -b", "The brokers to connect to.", "127.0.0.1:9092"),
    worker: str | None = option("--worker", "Settings of the worker.", metavar="FILE"),
    offsets: str = option("--offsets", "The file with the offsets of sources.", "connector.offsets", metavar="FILE"),
) -> None:
    """Run one connector in the foreground, in a standalone worker."""
    from moldau.cli.services import log_to_stderr
    from moldau.connect.files import read_connector
    from moldau.connect.standalone import FILE, serve
    from moldau.http import ServeError
    from moldau.settings import read_properties

    log_to_stderr()
    given = {"bootstrap.servers": bootstrap_servers, FILE: offsets, **(read_properties(worker) if worker else {})}
    try:
        serve(given, [read_connector(file)], listen=given.get("listeners", "127.0.0.1:0"))
    except ServeError as error:
        raise Mistake(str(error)) from None


@offsets_verb("show", "moldau connector offsets show orders")
def show_offsets(session: Session, place: Place, name: Name) -> None:
    """Show how far a connector has read."""
    found = place.ask("GET", place.of(name, "/offsets"))["offsets"]
    rows = [{key: json.dumps(row[key]) for key in ("partition", "offset")} for row in found]
    session.show(rows if session.for_people else found, ("partition", "offset"), f"{name} has no offsets.")


@offsets_verb("set", """moldau connector offsets set lines '{"filename": "/tmp/in"}' '{"position": 0}'""")
def set_offsets(
    session: Session,
    place: Place,
    name: Name,
    partition: str = argument("The partition, as `show` prints it.", metavar="PARTITION"),
    offset: str = argument("The offset; null forgets it.", metavar="OFFSET"),
    dry_run: DryRun = False,
) -> None:
    """Set the offset of one partition; the connector must be stopped."""
    row = {"partition": _json(partition), "offset": _json(offset)}
    known = place.ask("GET", place.of(name, "/offsets"))["offsets"]
    session.tell(f"- {[one for one in known if one['partition'] == row['partition']]}")
    session.tell(f"+ {[row]}")
    if not dry_run:
        place.ask("PATCH", place.of(name, "/offsets"), {"offsets": [row]})
        session.done(f"Changed the offset of {name}.", name=name)


@offsets_verb("reset", "moldau connector offsets reset lines")
def reset_offsets(session: Session, place: Place, name: Name, dry_run: DryRun = False, sure: Sure = False) -> None:
    """Forget all offsets of a connector, which must be stopped; it begins anew then."""
    known: Sequence[Any] = place.ask("GET", place.of(name, "/offsets"))["offsets"]
    session.tell(f"{len(known)} offsets of {name} are forgotten.")
    if not dry_run:
        session.confirm("Forget them?", sure)
        place.ask("DELETE", place.of(name, "/offsets"))
        session.done(f"Reset the offsets of {name}.", name=name)


def _asked(session: Session, place: Place) -> dict[str, str]:
    """Ask for the settings on the terminal, and show them before the connector is created."""
    import sys
    from getpass import getpass

    from moldau.admin.connector_wizard import converse

    if not sys.stdin.isatty():
        raise misused("Name a file with the config; questions are asked on a terminal only.")

    def prompt(question: str, is_secret: bool) -> str:
        if is_secret:
            return getpass(f"{question}\n> ")
        session.tell(question)
        line = input("> ")
        return line.strip()

    try:
        config = converse(place.ask, prompt, session.tell)
    except (EOFError, KeyboardInterrupt):
        raise misused("Nothing was created.") from None
    for line in difference({}, {name: text for name, text in config.items() if "password" not in name}):
        session.tell(line)
    session.confirm(f"Create {config['name']}?", False)
    return config


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise misused(f"{text!r} is not JSON.") from None


def _read(path: str) -> dict[str, Any]:
    from moldau.connect.files import read_connector

    return dict(read_connector(path))
