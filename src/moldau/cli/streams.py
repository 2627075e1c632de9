"""`moldau streams`: runs, lists, describes, queries and resets streams applications."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli.commands import Sure, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.output import Column, time_of
from moldau.cli.session import Session
from moldau.cli.spark import MARKERS, Topic, refusals
from moldau.client import Client
from moldau.extras import require_spark
from moldau.plan.home import FROZEN, STATE_DIR, home, local
from moldau.records.formats import connect_registry
from moldau.records.stores import Kind, by_id, of_views, over_http, serde_of, spec_of

if TYPE_CHECKING:
    from moldau.streams import StreamsBuilder

cli, verb = noun()

OWN = ("-changelog", "-repartition")  # suffixes of an application's internal topics
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
    Column("detail", text=lambda detail: detail or ""),
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
        builder.run(_settings(session))
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
    with Client(client_settings({**topology.settings, **_settings(session)})) as client:
        wanted = missing(topology.freeze(), partition_counts_of(client))
        create_topics(client, {topic: (BROKERS_DEFAULT, {}) for topic in wanted})
    for topic in wanted:
        session.tell(f"Created the topic {topic}.")


@verb("list", "moldau streams list", "moldau streams list -o json")
def list_(session: Session) -> None:
    """List applications of Moldau and Kafka Streams: their state, the topics they read and write, and their lag.

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

    return [asdict(one) for one in applications(flows.load_graph(session.client), time.time_ns() // 1_000_000)]


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
    session.show(found, (*COLUMNS, Column("fallbacks", "record by record", _fallbacks)))


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
        entries = of_views(builder_of(application).stores(_settings(session)), store, key, sql, conditions)
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
def reset(
    session: Session,
    application: str = argument("The application.id."),
    state_dir: State = STATE_DIR,
    markers_topic: Topic = MARKERS,
    sure: Sure = False,
) -> None:
    """Reset an application: delete its state, its internal topics and its offsets, but not its output."""
    from moldau.admin import groups, topics
    from moldau.spark.sink.marker_topic import Ledger, exists

    session.confirm(f"Delete the state of {application} and its offsets?", sure)
    session.tell(remove_state(state_dir, application))
    names = (topic.name for topic in topics.listed(session.client))
    own = [name for name in names if name.startswith(f"{application}-") and name.endswith(OWN)]
    if own:
        topics.delete(session.client, own)
    groups.delete(session.client, [application])
    with refusals():
        if exists(session.client, markers_topic):
            ledger = Ledger(session.client, markers_topic, application)
            ledger.catch_up()
            ledger.forget()
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
    import runpy

    from moldau.streams import StreamsBuilder
    from moldau.streams.builder import looking

    if not os.path.exists(file):
        raise Mistake(f"There is no file {file}.")
    with looking():
        names = runpy.run_path(file, run_name="moldau.streams.application_file")
    builders = [value for value in names.values() if isinstance(value, StreamsBuilder)]
    if len(builders) != 1:
        raise Mistake(f"{file} creates {len(builders)} builders with names of their own; exactly one is needed.")
    return builders[0]


def _settings(session: Session) -> dict[str, str]:
    return {**session.connection.settings, "bootstrap.servers": session.connection.bootstrap_servers}
