"""`moldau streams`: applications of the streams DSL, run from a Python file, shown, asked, and begun anew."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli.commands import Sure, noun, verb
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

cli = noun()

OWN = ("-changelog", "-repartition")  # how the names of an application's own topics end
File = Annotated[str, typer.Argument(help="A Python file that makes a StreamsBuilder.")]
LIMIT = 1000
BROKERS_DEFAULT = -1  # in place of a number of partitions
COLUMNS = (
    "name",
    "state",
    Column("since_ms", "since", lambda ms: time_of(ms) or "-"),
    Column("reads", text=", ".join),
    Column("writes", text=", ".join),
    Column("lag", text=lambda lag: "-" if lag is None else str(lag)),
    Column("detail", text=lambda detail: detail or ""),
)
State = Annotated[str, typer.Option("--state-dir", metavar="DIR", help="Where its state is (the setting state.dir).")]


@verb(
    cli,
    "run",
    (
        "moldau streams run app.py",
        "moldau streams run app.py --create-topics",
        "moldau streams run app.py -X commit.interval.ms=1000",
    ),
)
def run(
    session: Session,
    file: File,
    create: Annotated[
        bool, typer.Option("--create-topics", help="Create the topics that it reads or writes and that are missing.")
    ] = False,
) -> None:
    """Run an application until Ctrl-C. Settings given here go before those of the file."""
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
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def create_missing(session: Session, builder: StreamsBuilder) -> None:
    """With the broker's default number of partitions, so that all have the same."""
    from moldau.plan.conveyor.topics import missing
    from moldau.spark.admin import create_topics, partition_counts_of
    from moldau.streams.settings import client_settings

    topology = builder.build()
    with Client(client_settings({**topology.settings, **_settings(session)})) as client:
        wanted = missing(topology.freeze(), partition_counts_of(client))
        create_topics(client, {topic: (BROKERS_DEFAULT, {}) for topic in wanted})
    for topic in wanted:
        session.tell(f"Created the topic {topic}.")


@verb(cli, "list", ("moldau streams list", "moldau streams list -o json"))
def list_(session: Session) -> None:
    """List applications, Moldau's and Kafka Streams', with what they do, read and write, and how far they are behind.

    An application on Spark is starting, running, waiting for input, restarting, failed or stopped. One of Kafka Streams
    has the state of its group.
    """
    session.show(listed(session), COLUMNS, "No application has run here; `moldau streams run FILE` starts one.")


def listed(session: Session) -> list[dict[str, Any]]:
    """The applications of the cluster, with what they do now."""
    from moldau.console import flows
    from moldau.console.model.lineage import applications

    return [asdict(one) for one in applications(flows.found(session.client), time.time_ns() // 1_000_000)]


@verb(cli, "describe", ("moldau streams describe word-count", "moldau streams describe app.py"))
def describe(
    session: Session,
    application: Annotated[str, typer.Argument(help="An application.id, or a Python file with a StreamsBuilder.")],
) -> None:
    """Show what an application does, or the topology of a file in the form of Kafka Streams.

    Batches that an application processed record by record are counted from its start: they take several times as long.
    """
    if application.endswith(".py"):
        print(builder_of(application).describe(), end="")
        return
    found = next((one for one in listed(session) if one["name"] == application), None)
    if found is None:
        raise Mistake(f"There is no application {application} here; `moldau streams list` shows those there are.")
    session.show(found, (*COLUMNS, Column("fallbacks", "record by record", _fallbacks)))


@verb(
    cli,
    "query",
    (
        "moldau streams query app.py counts apple",
        "moldau streams query http://localhost:7070 counts --prefix a",
        "moldau streams query word-count counts apple --value-format long",
        "moldau streams query app.py per-minute ann --start 1700000000000",
        'moldau streams query app.py --sql "select key, value from counts order by value desc limit 3"',
    ),
)
def query(
    session: Session,
    application: Annotated[
        str, typer.Argument(help="A Python file that makes a StreamsBuilder, the URL of application.server, or an id.")
    ],
    store: Annotated[str, typer.Argument(help="The store.")] = "",
    key: Annotated[str, typer.Argument(help="A key; none for all of them.")] = "",
    sql: Annotated[str, typer.Option("--sql", help="A query over the stores, in DuckDB's words.")] = "",
    low: Annotated[str, typer.Option("--from", metavar="KEY", help="The first key of a range.")] = "",
    high: Annotated[str, typer.Option("--to", metavar="KEY", help="The last key of a range.")] = "",
    prefix: Annotated[str, typer.Option("--prefix", help="What keys begin with.")] = "",
    start: Annotated[str, typer.Option("--start", metavar="MS", help="The earliest time of windows.")] = "",
    end: Annotated[str, typer.Option("--end", metavar="MS", help="The latest time of windows.")] = "",
    as_of: Annotated[str, typer.Option("--as-of", metavar="MS", help="A time, for a versioned store.")] = "",
    at: Annotated[str, typer.Option("--at", metavar="P:OFFSET,...", help="The store as it was at offsets.")] = "",
    at_least: Annotated[
        str, typer.Option("--at-least", metavar="P:OFFSET,...", help="Wait until the view is there, or 'latest'.")
    ] = "",
    limit: Annotated[int, typer.Option("--limit", help="The most entries.", min=1, max=10_000)] = LIMIT,
    kind: Annotated[Kind, typer.Option("--kind", help="What the store is, of an application given by its id.")] = (
        Kind.key_value
    ),
    window_size: Annotated[int, typer.Option("--window-size", metavar="MS", help="Of windows; as --kind.")] = 0,
    key_format: Annotated[str, typer.Option("--key-format", help="How keys are written; as --kind.")] = "string",
    value_format: Annotated[str, typer.Option("--value-format", help="How values are; as --kind.")] = "string",
) -> None:
    """Look keys, ranges and windows up in the stores of an application.

    It need not run here: a file or an id is answered from its changelogs, a URL by the application itself.
    """
    asked = {"from": low, "to": high, "prefix": prefix, "start": start, "end": end, "as_of": as_of, "at": at}
    asked = {name: text for name, text in {**asked, "at_least": at_least, "limit": str(limit)}.items() if text}
    if bool(sql) == bool(store):
        raise Mistake("Name a store, or give a query with --sql.")
    if application.startswith(("http://", "https://")):
        found = over_http(application, store, key, sql, asked)
    elif application.endswith(".py"):
        found = of_views(builder_of(application).stores(_settings(session)), store, key, sql, asked)
    elif not store:
        raise Mistake("--sql needs a Python file or a URL: an id alone does not say which stores there are.")
    else:
        registry = partial(connect_registry, session.connection)
        serdes = serde_of(key_format, registry), serde_of(value_format, registry)
        served = by_id(application, spec_of(store, kind, window_size, *serdes), session.connection.kafka_settings)
        found = of_views(served, store, key, sql, asked)
    rows = found if isinstance(found, list) else [found]
    session.show(rows, empty="There is nothing.")


@verb(cli, "reset", ("moldau streams reset word-count", "moldau streams reset word-count --state-dir /srv/state --yes"))
def reset(
    session: Session,
    application: Annotated[str, typer.Argument(help="The application.id.")],
    state_dir: State = STATE_DIR,
    markers_topic: Topic = MARKERS,
    sure: Sure = False,
) -> None:
    """Let an application begin anew: its state, its own topics and its offsets go; what it has written stays."""
    from moldau.admin import groups, topics
    from moldau.spark.sink.marker_topic import Ledger, exists

    session.confirm(f"Forget the state of {application}, and where it was in its topics?", sure)
    session.tell(forget_state(state_dir, application))
    own = [
        topic.name
        for topic in topics.listed(session.client)
        if topic.name.startswith(f"{application}-") and topic.name.endswith(OWN)
    ]
    if own:
        topics.delete(session.client, own)
    groups.delete(session.client, [application])
    with refusals():
        if exists(session.client, markers_topic):
            ledger = Ledger(session.client, markers_topic, application)
            ledger.catch_up()
            ledger.forget()
    session.done(f"{application} begins anew at its next start.", application=application, deleted=own)


def _fallbacks(found: list[dict[str, Any]]) -> str:
    lines = (f"{one['batches']:,} batches of sub-topology {one['sub_topology']} ({one['reason']})" for one in found)
    return "; ".join(lines) or "none"


def forget_state(state_dir: str, application: str) -> str:
    """Remove the folder of an application, if it is on this machine; what is to be said about it."""
    try:
        folder = local(home(state_dir, application))
    except ValueError as error:
        return f"Before its next start {error}."
    if not (folder / FROZEN).exists():
        return f"There is no state of {application} in {folder.parent.absolute()}."
    shutil.rmtree(folder)
    return f"The state of {application} in {folder.parent.absolute()} is gone."


def builder_of(file: str) -> StreamsBuilder:
    """The builder that a file makes; its own call of run() does nothing meanwhile."""
    import runpy

    from moldau.streams import StreamsBuilder
    from moldau.streams.builder import looking

    if not os.path.exists(file):
        raise Mistake(f"There is no file {file}.")
    with looking():
        names = runpy.run_path(file, run_name="moldau.streams.application_file")
    found = [value for value in names.values() if isinstance(value, StreamsBuilder)]
    if len(found) != 1:
        raise Mistake(f"{file} makes {len(found)} builders under names of their own; one is needed.")
    return found[0]


def _settings(session: Session) -> dict[str, str]:
    return {**session.connection.settings, "bootstrap.servers": session.connection.bootstrap_servers}
