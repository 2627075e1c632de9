"""`moldau cluster verify`: do all replicas hold the same committed records?"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import typer

from moldau.admin import resets, topics, verification
from moldau.admin.comparison import Difference
from moldau.admin.mistakes import NO, Mistake
from moldau.admin.verification import Partition
from moldau.cli.cluster.verbs import verb
from moldau.cli.commands import parse
from moldau.cli.options import option
from moldau.cli.output import progress, size
from moldau.cli.session import Session


@verb(
    "verify",
    "moldau cluster verify",
    "moldau cluster verify --topic orders --topic 'pay*'",
    "moldau cluster verify --since -1h -o json",
)
def verify(
    session: Session,
    topic: list[str] | None = option(
        "--topic -t", "Only topics that match; * stands for anything; repeatable.", metavar="PATTERN"
    ),
    since: str | None = option(
        "--since", "Only records from this time on: 2026-11-15T10:00:00, or -1h.", metavar="TIME"
    ),
) -> None:
    """Compare the committed records of all replicas, byte by byte; if they differ, exit with code 3.

    Every replica is read up to the high watermark, the followers too, on Moldau and on Kafka. Differences are named by
    partition, offsets and brokers. Each replica compacts by itself: of a compacted topic the records are compared that
    all replicas still have. The cluster may be in use; what is written meanwhile is not looked at.
    """
    since_ms = None if since is None else parse(resets.moment_ms, since)
    listed = topics.listed(session.client)
    chosen = [one for one in listed if not topic or any(fnmatchcase(one.name, pattern) for pattern in topic)]
    if topic and not chosen:
        raise Mistake(f"There is no topic {' or '.join(topic)}. `moldau topic list` shows what there is.")
    parts = verification.plan(session.client, chosen, since_ms)
    gone: dict[int, str] = {}
    with progress("offsets", sum(one.end - one.start for one in parts)) as bar:
        for one in parts:
            for passed in verification.verify(session.client, one, gone):
                bar.advance(passed)
    _show(session, parts, sum(len(one.partitions) for one in chosen) - len(parts))
    if not all(one.is_same for one in parts):
        raise typer.Exit(NO)


def _show(session: Session, parts: list[Partition], single: int) -> None:
    rows = [row for one in parts for row in _rows(one)]
    facts = {
        "same": all(one.is_same for one in parts),
        "partitions": len(parts),
        "single_replica": single,
        "offsets": sum(one.end - one.start for one in parts),
        "bytes": sum(one.size for one in parts),
        "differences": sum(len(one.differences) for one in parts),
        "left_out": sum(len(one.left_out) for one in parts),
    }
    if not session.for_people:
        session.show({**facts, "found": rows})
        return
    session.show({**facts, "bytes": size(facts["bytes"])})
    if rows:
        print()
        session.show(rows, ("partition", "offsets", "what"))


def _rows(one: Partition) -> Iterator[dict[str, Any]]:
    for found in one.differences:
        offsets = str(found.first) if found.first == found.last else f"{found.first} to {found.last}"
        row = {"partition": one.name, "offsets": offsets, "what": _sentence(found)}
        yield {**row, "first": found.first, "last": found.last, "brokers": dict(found.brokers)}
    for broker, why in sorted(one.left_out.items()):
        yield {"partition": one.name, "offsets": None, "what": f"broker {broker} was not compared: {why}"}


def _sentence(found: Difference) -> str:
    """Say which brokers have the same, the most frequent content first."""
    sides: dict[str, list[int]] = {}
    for broker, content in sorted(found.brokers.items()):
        sides.setdefault(content, []).append(broker)
    ordered = sorted(sides.items(), key=lambda side: -len(side[1]))
    return "; ".join(
        f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers))}: {content}"
        for content, brokers in ordered
    )
