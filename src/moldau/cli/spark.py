"""`moldau spark`: what the sinks of Spark queries remember of themselves, and how to go on where that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli.commands import Sure, noun, verb
from moldau.cli.session import Session

cli = noun()

MARKERS = "__moldau_sink_markers"
Topic = Annotated[str, typer.Option("--markers-topic", metavar="NAME", help="The topic of markers.")]
Application = Annotated[str, typer.Argument(help="The application.id of a query, or the id in its checkpoint.")]


@verb(cli, "list", ("moldau spark list",))
def applications(session: Session, markers_topic: Topic = MARKERS) -> None:
    """List the applications that have written topics, and how far they have got."""
    from moldau.spark.sink.marker_topic import everyone, exists

    with refusals():
        found = everyone(session.client, markers_topic) if exists(session.client, markers_topic) else {}
    rows = [
        {
            "application": name,
            "batch": one.batch,
            "query": one.query,
            "checkpoint": one.checkpoint,
            "handed_on": one.released,
        }
        for name, one in sorted(found.items())
    ]
    session.show(rows, empty="No application has written yet.")


@verb(cli, "resume", ("moldau spark resume orders",))
def resume(session: Session, application: Application, markers_topic: Topic = MARKERS) -> None:
    """Let a query with a new checkpoint go on where the application stopped.

    Prints the offsets to start it with, for the source's option startingOffsets. A source that has the application.id
    too needs neither this command nor the offsets.
    """
    import json

    from moldau.spark.sink.marker_topic import Ledger

    with refusals():
        found = json.loads(Ledger(session.client, markers_topic, application).hand_on())
    print(json.dumps({name: offsets for name, offsets in found.items() if not name.startswith("@")}))


@verb(cli, "reset", ("moldau spark reset orders", "moldau spark reset orders --yes"))
def reset(session: Session, application: Application, markers_topic: Topic = MARKERS, sure: Sure = False) -> None:
    """Forget what an application has written. What it reads again will be in its topics twice."""
    from moldau.spark.sink.marker_topic import Ledger

    session.confirm(f"Forget what {application} has written?", sure)
    with refusals():
        ledger = Ledger(session.client, markers_topic, application)
        ledger.catch_up()
        ledger.forget()
    session.done(f"Forgot what {application} has written.", application=application)


@contextmanager
def refusals() -> Iterator[None]:
    """What the markers have against it is told as it is."""
    from moldau.spark.sink.markers import Refused

    try:
        yield
    except Refused as error:
        sentence = str(error)
        raise Mistake(f"{sentence[0].upper()}{sentence[1:]}.") from None
