"""`moldau streams`: runs, lists, describes, queries and resets streams applications."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli.commands import Sure
from moldau.cli.options import argument, flag, option
from moldau.cli.output import Column, time_of
from moldau.cli.session import Session
from moldau.cli.spark import MARKERS, Topic, refusals
from moldau.cli.streams.verbs import verb
from moldau.client import Client
from moldau.extras import require_spark
from moldau.plan.home import FROZEN, STATE_DIR, home, local
from moldau.records.formats import connect_registry
from moldau.records.stores import Kind, by_id, of_views, over_http, serde_of, spec_of

if TYPE_CHECKING:
    from moldau.streams import StreamsBuilder

File = Annotated[str, typer.Argument(help="A Python file that creates a StreamsBuilder.")]
LIMIT = 1000
BROKERS_DEFAULT = -1  # instead of a number of partitions
COLUMNS = (
    "name",
    "state",
    Column("since_ms", "since", lambda ms: time_of(ms) or "-"),
    Column("reads", text=", ".join),
    Column("writes", text=", ".join),
    Column("lag", text=lambda lag: "-" if lag is None else str(lag)),
    Column("worker", text=lambda worker: worker or "-"),
    Column("detail", text=lambda detail: detail or ""),
)
DEPLOYED = (
    "kind",
    "wanted",
    "version",
    Column("previous", "version before", lambda version: version or "-"),
    Column("note", text=lambda note: note or "-"),
    Column("lane", text=lambda lane: lane or "-"),
    "restarts",
    Column("trace", text=lambda trace: trace or "-"),
)
State = Annotated[
    str, typer.Option("--state-dir", metavar="DIR", help="Directory of its state (the setting state.dir).")
]


@verb(
    "run",
    "moldau streams run app.py",
    "moldau streams run app.py --create-topics",
    "moldau streams run app.py -X commit.interval.ms=1000",
)
def run(
    session: Session,
    file: File,
    create: bool = flag("--create-topics", "Create missing topics that the application reads or writes."),
) -> None:
    """Run an application until Ctrl-C. Settings given here override those of the file."""
    from moldau.operators.context import TopologyError
    from moldau.spark.runner import QueryFailed

    require_spark()
    try:
        builder = builder_of(file)
        if create:
            create_missing(session, builder)
        builder.run(settings_of(session))
    except (TopologyError, QueryFailed) as error:
        raise Mistake(f"{file}: {sentence(error)}") from None


def sentence(error: Exception) -> str:
    """Return the text of an error with a full stop."""
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def create_missing(session: Session, builder: StreamsBuilder) -> None:
    """Create missing topics, all with the broker's default number of partitions."""
    from moldau.plan.conveyor.topics import missing
    from moldau.spark.admin import create_topics, partition_counts_of
    from moldau.streams.settings import client_settings

    topology = builder.build()
    with Client(client_settings({**topology.settings, **settings_of(session)})) as client:
        wanted = missing(topology.freeze(), partition_counts_of(client))
        create_topics(client, {topic: (BROKERS_DEFAULT, {}) for topic in wanted})
    for topic in wanted:
        session.tell(f"Created the topic {topic}.")


@verb("list", "moldau streams list", "moldau streams list -o json")
def list_(session: Session) -> None:
    """List applications of Moldau and Kafka Streams, and queries of SQL: state, topics, lag.

    An application on Spark is starting, running, waiting for input, restarting, failed or stopped. One of Kafka Streams
    has the state of its group.
    """
    session.show(
        listed(session), COLUMNS, "No application has run on this cluster; `moldau streams run FILE` starts one."
    )


def listed(session: Session) -> list[dict[str, Any]]:
    """Return the applications of the cluster and their states."""
    from moldau.console import flows
    from moldau.console.model.lineage import applications

    found = applications(flows.load_graph(session.client), time.time_ns() // 1_000_000)
    return with_deployed([{**asdict(one), "worker": None} for one in found], session.client)


def with_deployed(rows: list[dict[str, Any]], client: Client) -> list[dict[str, Any]]:
    """Add what is known of deployed applications: what a worker says counts more than an older report."""
    from moldau.flows import catalog
    from moldau.flows.overview import overviews

    by_name = {row["name"]: row for row in rows}
    for one in overviews(catalog.read(client), client, with_queries=True):
        row = by_name.setdefault(one.name, {"name": one.name, "reads": (), "writes": (), "lag": None, "fallbacks": []})
        said = asdict(one) | {"writes": one.writes or row["writes"]}
        if one.state == "running" and row.get("state") is not None:
            said |= {"state": row["state"], "since_ms": row["since_ms"]}  # it may wait for input
        row |= {**said, "detail": one.error}
    return [by_name[name] for name in sorted(by_name)]


@verb("describe", "moldau streams describe word-count", "moldau streams describe app.py")
def describe(
    session: Session, application: str = argument("An application.id, or a Python file with a StreamsBuilder.")
) -> None:
    """Show the state of an application, or the topology of a file as Kafka Streams describes it.

    Batches that an application has processed record by record since its start are counted: they are several times
    slower.
    """
    if application.endswith(".py"):
        print(builder_of(application).describe(), end="")
        return
    found = next((one for one in listed(session) if one["name"] == application), None)
    if found is None:
        raise Mistake(f"There is no application {application}; `moldau streams list` shows all applications.")
    more = DEPLOYED if "version" in found else ()
    session.show(found, (*COLUMNS, *more, Column("fallbacks", "record by record", _fallbacks)))


@verb(
    "query",
    "moldau streams query app.py counts apple",
    "moldau streams query http://localhost:7070 counts --prefix a",
    "moldau streams query word-count counts apple --value-format long",
    "moldau streams query app.py per-minute ann --start 1700000000000",
    'moldau streams query app.py --sql "select key, value from counts order by value desc limit 3"',
)
def query(
    session: Session,
    application: str = argument(
        "A Python file that creates a StreamsBuilder, the URL of application.server, or an application.id."
    ),
    store: str = argument("The name of the store.", ""),
    key: str = argument("The key; without one, all keys.", ""),
    sql: str = option("--sql", "Run this query over the stores, in DuckDB's SQL.", ""),
    low: str = option("--from", "First key of a range.", "", metavar="KEY"),
    high: str = option("--to", "Last key of a range.", "", metavar="KEY"),
    prefix: str = option("--prefix", "Only keys that start with this.", ""),
    start: str = option("--start", "Earliest start of windows.", "", metavar="MS"),
    end: str = option("--end", "Latest start of windows.", "", metavar="MS"),
    as_of: str = option("--as-of", "Read a versioned store as of this time.", "", metavar="MS"),
    at: str = option("--at", "Read the store as it was at these offsets.", "", metavar="P:OFFSET,..."),
    at_least: str = option(
        "--at-least", "Wait until the view has reached these offsets, or 'latest'.", "", metavar="P:OFFSET,..."
    ),
    limit: int = option("--limit", "Print at most this many entries.", LIMIT, min=1, max=10_000),
    kind: Kind = option("--kind", "Kind of the store; needed if the application is given by its id.", Kind.key_value),
    window_size: int = option("--window-size", "Size of windows; needed as --kind is.", 0, metavar="MS"),
    key_format: str = option("--key-format", "Format of keys; needed as --kind is.", "string"),
    value_format: str = option("--value-format", "Format of values; needed as --kind is.", "string"),
) -> None:
    """Look up keys, ranges and windows in the stores of an application.

    The application need not run: for a file or an id the changelogs answer, for a URL the application itself.
    """
    conditions = {"from": low, "to": high, "prefix": prefix, "start": start, "end": end, "as_of": as_of, "at": at}
    conditions = {
        name: text for name, text in {**conditions, "at_least": at_least, "limit": str(limit)}.items() if text
    }
    if bool(sql) == bool(store):
        raise Mistake("Name a store, or give a query with --sql.")
    if application.startswith(("http://", "https://")):
        entries = over_http(application, store, key, sql, conditions)
    elif application.endswith(".py"):
        entries = of_views(builder_of(application).stores(settings_of(session)), store, key, sql, conditions)
    elif not store:
        raise Mistake("--sql needs a Python file or a URL: an id alone does not say which stores there are.")
    else:
        registry = partial(connect_registry, session.connection)
        serdes = serde_of(key_format, registry), serde_of(value_format, registry)
        served = by_id(application, spec_of(store, kind, window_size, *serdes), session.connection.kafka_settings)
        entries = of_views(served, store, key, sql, conditions)
    rows = entries if isinstance(entries, list) else [entries]
    session.show(rows, empty="There are no such entries.")


@verb("reset", "moldau streams reset word-count", "moldau streams reset word-count --state-dir /srv/state --yes")
def reset_(
    session: Session,
    application: str = argument("The application.id."),
    state_dir: State = STATE_DIR,
    markers_topic: Topic = MARKERS,
    sure: Sure = False,
) -> None:
    """Reset an application: delete its state, its internal topics and its offsets, but not its output."""
    from moldau.flows import catalog
    from moldau.flows.streams_kind import reset

    if application in catalog.read(session.client):
        raise Mistake(f"{application} is deployed: `moldau streams undeploy {application}` removes it with its state.")
    session.confirm(f"Delete the state of {application} and its offsets?", sure)
    session.tell(remove_state(state_dir, application))
    with refusals():
        own = reset(session.client, application, markers_topic)
    session.done(f"{application} starts from the beginning next time.", application=application, deleted=own)


def _fallbacks(fallbacks: list[dict[str, Any]]) -> str:
    lines = (f"{one['batches']:,} batches of sub-topology {one['sub_topology']} ({one['reason']})" for one in fallbacks)
    return "; ".join(lines) or "none"


def remove_state(state_dir: str, application: str) -> str:
    """Remove the directory of an application, if it is on this machine; return a sentence about it."""
    try:
        folder = local(home(state_dir, application))
    except ValueError as error:
        return f"Before its next start {error}."
    if not (folder / FROZEN).exists():
        return f"There is no state of {application} in {folder.parent.absolute()}."
    shutil.rmtree(folder)
    return f"The state of {application} in {folder.parent.absolute()} was deleted."


def builder_of(file: str) -> StreamsBuilder:
    """Return the builder that a file creates; while the file is read, its run() does nothing."""
    from moldau.flows.definition import FlowError
    from moldau.flows.loading import builder_of as load
    from moldau.operators.context import TopologyError

    try:
        return load(file)
    except FlowError as error:
        raise Mistake(str(error)) from None
    except TopologyError as error:
        raise Mistake(f"{file}: {sentence(error)}") from None


def settings_of(session: Session) -> dict[str, str]:
    return {**session.connection.settings, "bootstrap.servers": session.connection.bootstrap_servers}
