"""`moldau spark`: the progress markers of Spark sinks, and how to resume a query that lost its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from moldau.admin.mistakes import Mistake
from moldau.cli.commands import Sure, noun
from moldau.cli.output import pick
from moldau.cli.session import Session

cli, verb = noun()

MARKERS = "__moldau_sink_markers"
Topic = Annotated[str, typer.Option("--markers-topic", metavar="NAME", help="Topic of the markers.")]
Application = Annotated[str, typer.Argument(help="The application.id of a query, or the id in its checkpoint.")]


@verb("list", "moldau spark list")
def applications(session: Session, markers_topic: Topic = MARKERS) -> None:
    """List the applications that have written topics, and their last batch."""
    from moldau.spark.sink.marker_topic import everyone, exists

    with refusals():
        markers = everyone(session.client, markers_topic) if exists(session.client, markers_topic) else {}
    columns = ("batch", "query", "checkpoint", "handed_on=released")
    rows = [{"application": name, **pick(one, *columns)} for name, one in sorted(markers.items())]
    session.show(rows, empty="No application has written yet.")


@verb("resume", "moldau spark resume orders")
def resume(session: Session, application: Application, markers_topic: Topic = MARKERS) -> None:
    """Let a query with a new checkpoint continue where the application stopped.

    Prints the offsets to start with, for the source's option startingOffsets. A source with the same application.id
    needs neither this command nor the offsets.
    """
    import json

    from moldau.spark.sink.marker_topic import Ledger

    with refusals():
        state = json.loads(Ledger(session.client, markers_topic, application).hand_on())
    print(json.dumps({name: offsets for name, offsets in state.items() if not name.startswith("@")}))


@verb("reset", "moldau spark reset orders", "moldau spark reset orders --yes")
def reset(session: Session, application: Application, markers_topic: Topic = MARKERS, sure: Sure = False) -> None:
    """Forget the progress of an application. Input that it reads again will be in its output twice."""
    from moldau.spark.sink.marker_topic import Ledger

    session.confirm(f"Forget the progress of {application}?", sure)
    with refusals():
        ledger = Ledger(session.client, markers_topic, application)
        ledger.catch_up()
        ledger.forget()
    session.done(f"Forgot the progress of {application}.", application=application)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn a refusal of the markers into a Mistake."""
    from moldau.spark.sink.markers import Refused

    try:
        yield
    except Refused as error:
        sentence = str(error)
        raise Mistake(f"{sentence[0].upper()}{sentence[1:]}.") from None
