"""`moldau txn`: transactions, and an end for those that hang."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from moldau.admin import resets, topics, transactions
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Sure, Topic, complete_topics, noun, verb
from moldau.cli.output import progress, time_of
from moldau.cli.session import Session
from moldau.cli.topic import chosen

cli = noun()

Id = Annotated[str, typer.Argument(metavar="ID", help="The transactional id.")]
MS = 1000


@verb(cli, "list", ("moldau txn list", "moldau txn list --state ongoing --longer-than 15m"))
def list_transactions(
    session: Session,
    pattern: Annotated[
        str | None, typer.Option("--pattern", help="Only ids that this regular expression fits.")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Ongoing, CompleteCommit, Empty ...; repeatable.")
    ] = None,
    longer_than: Annotated[
        str | None, typer.Option("--longer-than", metavar="DURATION", help="Only open for longer: 15m, 2h.")
    ] = None,
) -> None:
    """List transactional ids and their states."""
    try:
        longest = -1 if longer_than is None else int(resets.duration(longer_than).total_seconds() * MS)
    except resets.ResetError as error:
        raise misused(str(error)) from None
    found = transactions.listed(session.client, _states(state or []), (), longest, pattern)
    rows = [
        {"id": one.id, "state": one.state, "producer": one.producer_id, "coordinator": one.coordinator} for one in found
    ]
    session.show(rows, empty="No transactional ids.")


STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


def _states(given: list[str]) -> list[str]:
    known = {state.lower(): state for state in STATES}
    for text in given:
        if text.lower() not in known:
            raise misused(f"There is no state {text!r}: there are {', '.join(STATES)}.")
    return [known[text.lower()] for text in given]


@verb(cli, "describe", ("moldau txn describe load-1", "moldau txn describe load-1 -o json"))
def describe(session: Session, name: Id) -> None:
    """Show who writes under an id, since when, and where."""
    found = transactions.described(session.client, name)
    session.show(
        {
            "id": found.id,
            "state": found.state,
            "producer": found.producer_id,
            "epoch": found.producer_epoch,
            "timeout_ms": found.timeout_ms,
            "since": time_of(found.start_ms),
            "partitions": [f"{topic}-{part}" for topic, part in found.partitions],
        }
    )


@verb(cli, "producers", ("moldau txn producers orders", "moldau txn producers orders --partition 0"))
def producers(
    session: Session,
    name: Topic,
    partition: Annotated[list[int] | None, typer.Option("--partition", "-p", help="Only these; repeatable.")] = None,
) -> None:
    """List producers that partitions know, and where their open transactions begin."""
    rows = [
        _producer(place, one)
        for place in chosen(session, name, partition)
        for one in transactions.producers(session.client, place)
    ]
    session.show(rows, empty="No producers.")


def _producer(place: tuple[str, int], one: transactions.Producer) -> dict[str, Any]:
    return {
        "topic": place[0],
        "partition": place[1],
        "producer": one.id,
        "epoch": one.epoch,
        "last_sequence": one.last_sequence,
        "last_write": time_of(one.last_timestamp_ms),
        "open_since_offset": None if one.start_offset < 0 else one.start_offset,
    }


@verb(cli, "hanging", ("moldau txn hanging --topic orders", "moldau txn hanging --longer-than 1h"))
def hanging(
    session: Session,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", "-t", help="Only here.", autocompletion=complete_topics)
    ] = None,
    longer_than: Annotated[
        str, typer.Option("--longer-than", metavar="DURATION", help="Open for at least so long.")
    ] = "15m",
) -> None:
    """Find transactions that are open in a partition, and that no coordinator will ever end."""
    try:
        before = resets.moment_ms(f"-{longer_than}")
    except resets.ResetError as error:
        raise misused(str(error)) from None
    names = topic or [one.name for one in topics.listed(session.client)]
    places = topics.partitions(session.client, names)
    rows = []
    with progress("partitions", len(places)) as shown:
        for place in places:
            open_ones = [
                one
                for one in transactions.producers(session.client, place)
                if one.start_offset >= 0 and one.last_timestamp_ms <= before
            ]
            rows += [_producer(place, one) for one in open_ones if not _is_known(session, place, one)]
            shown.advance()
    session.show(rows, empty="No transaction hangs.")


def _is_known(session: Session, place: tuple[str, int], one: transactions.Producer) -> bool:
    """Whether a coordinator has the partition in an open transaction of the producer."""
    for found in transactions.listed(session.client, (), [one.id]):
        if place in transactions.described(session.client, found.id).partitions:
            return True
    return False


@verb(
    cli,
    "abort",
    (
        "moldau txn abort load-1  (whatever is open under this id; its producer is fenced)",
        "moldau txn abort --topic orders --partition 0 --start-offset 42  (one that hangs)",
    ),
)
def abort(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[ID]", help="The transactional id.")] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", "-t", help="Where one hangs.", autocompletion=complete_topics)
    ] = None,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="Where one hangs.")] = None,
    start_offset: Annotated[int | None, typer.Option("--start-offset", min=0, help="Where it begins.")] = None,
    sure: Sure = False,
) -> None:
    """Abort a transaction: by its id, or by where it hangs."""
    if name is not None:
        session.confirm(f"Abort what is open under {name}, and fence its producer?", sure)
        transactions.terminate(session.client, name)
        session.done(f"Aborted what was open under {name}; its producer is fenced.", id=name)
        return
    if topic is None or partition is None or start_offset is None:
        raise misused("Give an id; or --topic, --partition and --start-offset of one that hangs.")
    place = (topic, partition)
    found = [one for one in transactions.producers(session.client, place) if one.start_offset == start_offset]
    if not found:
        raise Mistake(
            f"No transaction is open in {topic}-{partition} from {start_offset} on; see `moldau txn producers`."
        )
    session.confirm(f"Abort the transaction of producer {found[0].id} in {topic}-{partition}?", sure)
    transactions.abort(session.client, place, found[0])
    now = time_of(time.time_ns() // 1_000_000)
    session.done(
        f"Aborted the transaction of producer {found[0].id} in {topic}-{partition}.",
        topic=topic,
        partition=partition,
        producer=found[0].id,
        at=now,
    )
