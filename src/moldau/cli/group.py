"""`moldau group`: consumer groups of any protocol, their lag, and their offsets."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from moldau.admin import TopicPartition, groups, resets, topics
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Group, Sure, complete_groups, complete_topics, noun, verb
from moldau.cli.output import Column
from moldau.cli.session import Session
from moldau.client import Error

cli = noun()

LARGEST_FILE = 64 << 20
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups.", autocompletion=complete_groups)]
OfTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC[:PARTITION,...]",
        help="Only here; repeatable.",
        autocompletion=complete_topics,
    ),
]


@verb(cli, "list", ("moldau group list", "moldau group list --state stable -o json"))
def list_groups(
    session: Session,
    pattern: Annotated[str, typer.Argument(help="Only names like this; * stands for anything.")] = "*",
    state: Annotated[list[str] | None, typer.Option("--state", help="Stable, empty ...; repeatable.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="Classic, consumer, share or streams; repeatable.")
    ] = None,
) -> None:
    """List groups."""
    found = groups.listed(session.client, state or (), kind or ())
    rows = [
        {
            "group": one.id,
            "type": one.type,
            "state": one.state,
            "protocol": one.protocol,
            "coordinator": one.coordinator,
        }
        for one in found
        if fnmatchcase(one.id, pattern)
    ]
    session.show(rows, empty="No groups.")


@verb(
    cli,
    "describe",
    (
        "moldau group describe billing",
        "moldau group describe billing --members",
        "moldau group describe billing -o json",
    ),
)
def describe(
    session: Session,
    names: Groups,
    members: Annotated[bool, typer.Option("--members", help="The members instead of the lag.")] = False,
) -> None:
    """Show state, members and lag of groups."""
    found = [groups.described(session.client, name) for name in names]
    lags = {one.id: groups.lags(session.client, one) for one in found}
    if session.output.value != "table":
        session.show([_document(one, lags[one.id]) for one in found])
        return
    for number, one in enumerate(found):
        print("\n" if number else "", end="")
        session.show(_head(one, lags[one.id]))
        print()
        if members:
            session.show([_member(row) for row in one.members], MEMBER_COLUMNS, "No members.")
        else:
            session.show([_lag(row) for row in lags[one.id]], LAG_COLUMNS, "Nothing is committed, and nobody reads.")


LAG_COLUMNS = ("topic", "partition", "offset", "end", "lag", "client", "host")
MEMBER_COLUMNS = ("member", "instance", "client", "host", "epoch", Column("count", "partitions"), "assigned")


def _head(one: groups.DescribedGroup, lags: list[groups.Lag]) -> dict[str, Any]:
    known = [row.lag for row in lags if row.lag is not None]
    facts = {
        "group": one.id,
        "type": one.type.lower(),
        "state": one.state,
        "assignor": one.assignor or None,
        "coordinator": f"{one.coordinator} ({one.coordinator_address})",
        "members": len(one.members),
        "lag": sum(known) if known else None,
    }
    return facts if one.epoch < 0 else {**facts, "epoch": one.epoch, "target_epoch": one.target_epoch}


def _document(one: groups.DescribedGroup, lags: list[groups.Lag]) -> dict[str, Any]:
    return {
        **_head(one, lags),
        "coordinator": one.coordinator,
        "members": [_member(row) for row in one.members],
        "partitions": [_lag(row) for row in lags],
    }


def _lag(row: groups.Lag) -> dict[str, Any]:
    return {
        "topic": row.topic,
        "partition": row.partition,
        "offset": row.offset,
        "start": row.start,
        "end": row.end,
        "lag": row.lag,
        "member": row.member.id if row.member else None,
        "client": row.member.client_id if row.member else None,
        "host": row.member.host if row.member else None,
    }


def _member(row: groups.GroupMember) -> dict[str, Any]:
    return {
        "member": row.id,
        "instance": row.instance_id,
        "client": row.client_id,
        "host": row.host,
        "epoch": None if row.epoch < 0 else row.epoch,
        "count": len(row.partitions),
        "assigned": [f"{topic}-{part}" for topic, part in row.partitions],
    }


@verb(
    cli,
    "reset",
    (
        "moldau group reset billing --to-earliest",
        "moldau group reset billing --to-time -1h --execute",
        "moldau group reset billing --shift -10 --topic orders:0,1 --execute",
        "moldau group reset billing --to-latest --export > offsets.csv",
        "moldau group reset billing --from-file offsets.csv --execute",
    ),
)
def reset(
    session: Session,
    name: Group,
    topic: OfTopics = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first records there are.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the last records.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To what is committed; for --export.")] = False,
    to_time: Annotated[
        str | None, typer.Option("--to-time", metavar="TIME", help="2026-11-15T10:00:00 (UTC), ms, or -1h.")
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option("--by-duration", metavar="DURATION", help="So long ago: 90m, 7d, PT1H.")
    ] = None,
    to_offset: Annotated[int | None, typer.Option("--to-offset", min=0, help="To this offset.")] = None,
    shift: Annotated[int | None, typer.Option("--shift", help="So many records on, or back if negative.")] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from-file", allow_dash=True, help="Lines topic,partition,offset; - reads stdin.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this it is only shown.")] = False,
    export: Annotated[bool, typer.Option("--export", help="Print lines that --from-file reads.")] = False,
) -> None:
    """Set what a group without members has committed. Without --execute only shows what would be."""
    wanted = _wanted(
        name,
        {
            "--to-earliest": resets.Earliest() if to_earliest else None,
            "--to-latest": resets.Latest() if to_latest else None,
            "--to-current": resets.Current() if to_current else None,
            "--to-offset": None if to_offset is None else resets.To(to_offset),
            "--shift": None if shift is None else resets.Shift(shift),
        },
        to_time,
        by_duration,
        from_file,
    )
    rows, new = _planned(session, name, wanted, topic)
    if execute:
        _apply(session, name, new)
    if export:
        print(resets.to_csv(None, new), end="")
        return
    session.show(rows)
    if not execute:
        session.tell("Nothing was changed. --execute does it.")


def _wanted(
    name: str,
    plain: dict[str, resets.Wanted | None],
    to_time: str | None,
    by_duration: str | None,
    from_file: Path | None,
) -> resets.Wanted:
    try:
        given = {
            **plain,
            "--to-time": resets.At(resets.moment_ms(to_time)) if to_time else None,
            "--by-duration": resets.At(resets.moment_ms(f"-{by_duration}")) if by_duration else None,
            "--from-file": resets.Given(resets.from_csv(_read(from_file), name)) if from_file else None,
        }
    except resets.ResetError as error:
        raise misused(str(error)) from None
    found = [one for one in given.values() if one is not None]
    if len(found) != 1:
        raise misused(f"Say where to, by one of {', '.join(given)}.")
    return found[0]


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read(LARGEST_FILE)
        if file.stat().st_size > LARGEST_FILE:
            raise misused(f"{file} is larger than {LARGEST_FILE} bytes.")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None


def _planned(
    session: Session, name: str, wanted: resets.Wanted, topic: list[str] | None
) -> tuple[list[dict[str, Any]], dict[TopicPartition, int]]:
    """What was and what will be, by partition."""
    committed = {place: one.offset for place, one in groups.committed(session.client, name).items()}
    places = places_of(session, topic) if topic else sorted(committed)
    if not places and not isinstance(wanted, resets.Given):
        raise Mistake(f"Group {name} has committed nothing: say with --topic where its offsets shall be.")
    try:
        new = resets.plan(session.client, wanted, places, committed)
    except resets.ResetError as error:
        raise Mistake(str(error)) from None
    rows = [
        {
            "topic": place[0],
            "partition": place[1],
            "offset": committed.get(place),
            "new_offset": offset,
            "change": None if place not in committed else offset - committed[place],
        }
        for place, offset in new.items()
    ]
    return rows, new


def _apply(session: Session, name: str, new: dict[TopicPartition, int]) -> None:
    try:
        resets.apply(session.client, name, new)
    except resets.ResetError as error:
        raise Mistake(str(error)) from None


def places_of(session: Session, given: list[str]) -> list[TopicPartition]:
    """From `orders` or `orders:0,2` to partitions."""
    found: list[TopicPartition] = []
    for text in given:
        name, colon, numbers = text.partition(":")
        have = topics.partitions(session.client, [name])
        if not colon:
            found += have
            continue
        for number in numbers.split(","):
            if not number.isdecimal() or (name, int(number)) not in have:
                raise misused(f"{text!r}: topic {name} has partitions 0 to {len(have) - 1}, not {number!r}.")
            found.append((name, int(number)))
    return found


POSITIONS: dict[str, resets.Wanted] = {"start": resets.Earliest(), "end": resets.Latest()}


@verb(
    cli,
    "seek",
    (
        "moldau group seek billing start",
        "moldau group seek billing 10 --topic orders:0",
        "moldau group seek billing -- -1h",
    ),
)
def seek(
    session: Session,
    name: Group,
    to: Annotated[str, typer.Argument(help="start, end, an offset, +N, or a time (2026-11-15T10:00:00, -1h).")],
    topic: OfTopics = None,
) -> None:
    """Set at once what a group without members has committed; `reset` shows it first."""
    if to in POSITIONS:
        wanted = POSITIONS[to]
    elif to.isdecimal():
        wanted = resets.To(int(to))
    elif to[:1] == "+" and to[1:].isdecimal():
        wanted = resets.Shift(int(to))
    else:
        try:
            wanted = resets.At(resets.moment_ms(to))
        except resets.ResetError as error:
            raise misused(str(error)) from None
    rows, new = _planned(session, name, wanted, topic)
    _apply(session, name, new)
    session.show(rows)


@verb(cli, "delete", ("moldau group delete billing", "moldau group delete billing --topic orders"))
def delete(session: Session, names: Groups, topic: OfTopics = None, sure: Sure = False) -> None:
    """Delete groups without members; with --topic only what they have committed there."""
    session.confirm(f"Delete {', '.join(names)}{' in ' + ', '.join(topic) if topic else ''}?", sure)
    outcomes: dict[str, Error] = {}
    if topic:
        places = places_of(session, topic)
        for name in names:
            gone = groups.delete_offsets(session.client, name, places)
            outcomes |= {f"{name} {place[0]}-{place[1]}": error for place, error in gone.items()}
    else:
        outcomes = groups.delete(session.client, names)
    rows = [{"deleted": what, "error": error.name if error else None} for what, error in outcomes.items()]
    refused = [f"{what}: {error.message}" for what, error in outcomes.items() if error]
    if refused:
        raise Mistake(" ".join(refused) + " A group must have no members; `moldau group describe` shows them.")
    session.done(f"Deleted {', '.join(outcomes)}.", outcomes=rows)
