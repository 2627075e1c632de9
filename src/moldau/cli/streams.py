"""`moldau streams`: applications of the streams DSL, run from a Python file, shown, and begun anew."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Annotated

import typer

from moldau.cli.mistakes import Mistake
from moldau.cli.session import Session
from moldau.cli.spark import MARKERS, Topic, refusals
from moldau.cli.verbs import Sure, noun, verb

if TYPE_CHECKING:
    from moldau.streams import StreamsBuilder

cli = noun()

STATE_DIR = "moldau-state"
FROZEN = "moldau-streams.json"  # what shows that a folder is an application's
CHANGELOG = "-changelog"
File = Annotated[str, typer.Argument(help="A Python file that makes a StreamsBuilder.")]
State = Annotated[str, typer.Option("--state-dir", metavar="DIR", help="Where its state is (the setting state.dir).")]


@verb(cli, "run", ("moldau streams run app.py", "moldau streams run app.py -X commit.interval.ms=1000"))
def run(session: Session, file: File) -> None:
    """Run an application until Ctrl-C. Settings given here go before those of the file."""
    from moldau.operators.context import TopologyError

    try:
        builder_of(file).run({**session.settings, "bootstrap.servers": session.bootstrap_servers})
    except TopologyError as error:
        raise Mistake(f"{file}: {error}.") from None


@verb(cli, "describe", ("moldau streams describe app.py",))
def describe(session: Session, file: File) -> None:
    """Show an application's topology, in the form of Kafka Streams."""
    print(builder_of(file).describe(), end="")


@verb(cli, "reset", ("moldau streams reset word-count", "moldau streams reset word-count --state-dir /srv/state --yes"))
def reset(
    session: Session,
    application: Annotated[str, typer.Argument(help="The application.id.")],
    state_dir: State = STATE_DIR,
    markers_topic: Topic = MARKERS,
    sure: Sure = False,
) -> None:
    """Let an application begin anew: its state, its changelogs and its offsets go; what it has written stays."""
    from moldau.cli.operations import groups, topics
    from moldau.spark.marker_topic import Ledger, is_there

    session.confirm(f"Forget the state of {application}, and where it was in its topics?", sure)
    home = os.path.join(state_dir, application)
    if os.path.exists(os.path.join(home, FROZEN)):
        shutil.rmtree(home)
    else:
        session.tell(f"There is no state of {application} in {os.path.abspath(state_dir)}.")
    own = [
        topic.name
        for topic in topics.listed(session.client)
        if topic.name.startswith(f"{application}-") and topic.name.endswith(CHANGELOG)
    ]
    if own:
        topics.delete(session.client, own)
    groups.delete(session.client, [application])
    with refusals():
        if is_there(session.client, markers_topic):
            ledger = Ledger(session.client, markers_topic, application)
            ledger.catch_up()
            ledger.forget()
    session.done(f"{application} begins anew at its next start.", application=application, deleted=own)


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
