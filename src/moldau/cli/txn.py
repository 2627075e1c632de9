"""`moldau txn`: transactions, and the way to abort those that hang."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from moldau.admin import resets, topics, transactions
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Partitions, Sure, Topic, complete_topics, noun, parse
from moldau.cli.options import argument, option
from moldau.cli.output import pick, progress, time_of
from moldau.cli.session import Session
from moldau.cli.topic import choose_partitions

cli, verb = noun()

Id = Annotated[str, typer.Argument(metavar="ID", help="The transactional id.")]
MS = 1000


@verb("list", "moldau txn list", "moldau txn list --state ongoing --longer-than 15m")
def list_transactions(
    session: Session,
    pattern: str | None = option("--pattern", "Only ids that match this regular expression."),
    state: list[str] | None = option(
        "--state", "Only ids in this state: Ongoing, CompleteCommit, Empty ...; repeatable."
    ),
    longer_than: str | None = option(
        "--longer-than", "Only transactions open for longer: 15m, 2h.", metavar="DURATION"
    ),
) -> None:
    """List transactional ids and their states."""
    longest = -1 if longer_than is None else int(parse(resets.duration, longer_than).total_seconds() * MS)
    listed = transactions.listed(session.client, _states(state or []), (), longest, pattern)
    rows = [pick(one, "id", "state", "producer=producer_id", "coordinator") for one in listed]
    session.show(rows, empty="There are no transactional ids.")


STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence")


def _states(given: list[str]) -> list[str]:
    known = {state.lower(): state for state in STATES}
    for text in given:
        if text.lower() not in known:
            raise misused(f"There is no state {text!r}: there are {', '.join(STATES)}.")
    return [known[text.lower()] for text in given]


@verb("describe", "moldau txn describe load-1", "moldau txn describe load-1 -o json")
def describe(session: Session, name: Id) -> None:
    """Show the producer that writes under an id, since when, and to which partitions."""
    one = transactions.described(session.client, name)
    session.show(
        {
            **pick(one, "id", "state", "producer=producer_id", "epoch=producer_epoch", "timeout_ms"),
            "since": time_of(one.start_ms),
            "partitions": [f"{topic}-{part}" for topic, part in one.partitions],
        }
    )


@verb("producers", "moldau txn producers orders", "moldau txn producers orders --partition 0")
def producers(session: Session, name: Topic, partition: Partitions = None) -> None:
    """List the producers that partitions know, and where their open transactions start."""
    rows = [
        _producer(place, one)
        for place in choose_partitions(session, name, partition)
        for one in transactions.producers(session.client, place)
    ]
    session.show(rows, empty="There are no producers.")


def _producer(place: tuple[str, int], one: transactions.Producer) -> dict[str, Any]:
    return {
        "topic": place[0],
        "partition": place[1],
        **pick(one, "producer=id", "epoch", "last_sequence"),
        "last_write": time_of(one.last_timestamp_ms),
        "open_since_offset": None if one.start_offset < 0 else one.start_offset,
    }


@verb("hanging", "moldau txn hanging --topic orders", "moldau txn hanging --longer-than 1h")
def hanging(
    session: Session,
    topic: list[str] | None = option("--topic -t", "Only this topic; repeatable.", autocompletion=complete_topics),
    longer_than: str = option(
        "--longer-than", "Only transactions open for at least this long.", "15m", metavar="DURATION"
    ),
) -> None:
    """Find transactions that are open in a partition and that no coordinator will ever end."""
    before = parse(resets.moment_ms, f"-{longer_than}")
    names = topic or [one.name for one in topics.listed(session.client)]
    places = topics.partitions(session.client, names)
    rows = []
    with progress("partitions", len(places)) as bar:
        for place in places:
            open_ones = [
                one
                for one in transactions.producers(session.client, place)
                if one.start_offset >= 0 and one.last_timestamp_ms <= before
            ]
            rows += [_producer(place, one) for one in open_ones if not _is_known(session, place, one)]
            bar.advance()
    session.show(rows, empty="No transaction hangs.")


def _is_known(session: Session, place: tuple[str, int], one: transactions.Producer) -> bool:
    """Return whether a coordinator has the partition in an open transaction of the producer."""
    listed = transactions.listed(session.client, (), [one.id])
    return any(place in transactions.described(session.client, each.id).partitions for each in listed)


@verb(
    "abort",
    "moldau txn abort load-1  (aborts what is open under this id, and fences its producer)",
    "moldau txn abort --topic orders --partition 0 --start-offset 42  (aborts one that hangs)",
)
def abort(
    session: Session,
    name: str | None = argument("The transactional id.", None, metavar="[ID]"),
    topic: str | None = option("--topic -t", "Topic in which the transaction hangs.", autocompletion=complete_topics),
    partition: int | None = option("--partition -p", "Partition in which the transaction hangs.", min=0),
    start_offset: int | None = option("--start-offset", "First offset of the transaction.", min=0),
    sure: Sure = False,
) -> None:
    """Abort a transaction by its id, or by the place where it hangs."""
    if name is not None:
        session.confirm(f"Abort what is open under {name}, and fence its producer?", sure)
        transactions.terminate(session.client, name)
        session.done(f"Aborted what was open under {name}; its producer is fenced.", id=name)
        return
    if topic is None or partition is None or start_offset is None:
        raise misused("Give an id, or --topic, --partition and --start-offset of a transaction that hangs.")
    place = (topic, partition)
    writers = [one for one in transactions.producers(session.client, place) if one.start_offset == start_offset]
    if not writers:
        raise Mistake(
            f"No transaction is open in {topic}-{partition} from offset {start_offset}; see `moldau txn producers`."
        )
    what = f"the transaction of producer {writers[0].id} in {topic}-{partition}"
    session.confirm(f"Abort {what}?", sure)
    transactions.abort(session.client, place, writers[0])
    now = time_of(time.time_ns() // 1_000_000)
    session.done(f"Aborted {what}.", topic=topic, partition=partition, producer=writers[0].id, at=now)
