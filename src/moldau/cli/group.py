"""`moldau group`: consumer groups of any protocol, their lag, and their offsets."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from moldau.admin import TopicPartition, groups, resets, topics
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Group, Groups, Pattern, Sure, complete_topics, noun, parse
from moldau.cli.options import argument, flag, option
from moldau.cli.output import Column, pick
from moldau.cli.session import Session
from moldau.client import Error

cli, verb = noun()

LARGEST_FILE = 64 << 20
ONLY_THERE = "Only these topics or partitions; repeatable."
OfTopics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC[:PARTITION,...]", help=ONLY_THERE, autocompletion=complete_topics),
]


@verb("list", "moldau group list", "moldau group list --state stable -o json")
def list_groups(
    session: Session,
    pattern: Pattern = "*",
    state: list[str] | None = option("--state", "Only groups in this state: stable, empty ...; repeatable."),
    kind: list[str] | None = option("--type", "Only classic, consumer, share or streams groups; repeatable."),
) -> None:
    """List groups."""
    listed = groups.listed(session.client, state or (), kind or ())
    columns = ("group=id", "type", "state", "protocol", "coordinator")
    session.show([pick(one, *columns) for one in listed if fnmatchcase(one.id, pattern)], empty="There are no groups.")


@verb(
    "describe",
    "moldau group describe billing",
    "moldau group describe billing --members",
    "moldau group describe billing -o json",
)
def describe(
    session: Session, names: Groups, members: bool = flag("--members", "Show the members instead of the lag.")
) -> None:
    """Show the state, the members and the lag of groups."""
    described = [groups.described(session.client, name) for name in names]
    lags = {one.id: groups.lags(session.client, one) for one in described}
    if not session.for_people:
        session.show([_document(one, lags[one.id]) for one in described])
        return
    for number, one in enumerate(described):
        print("\n" if number else "", end="")
        session.show(_head(one, lags[one.id]))
        print()
        if members:
            session.show([_member(row) for row in one.members], MEMBER_COLUMNS, "It has no members.")
        else:
            empty = "It has committed nothing and has no members."
            session.show([_lag(row) for row in lags[one.id]], LAG_COLUMNS, empty)


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
    return facts if one.epoch < 0 else {**facts, **pick(one, "epoch", "target_epoch")}


def _document(one: groups.DescribedGroup, lags: list[groups.Lag]) -> dict[str, Any]:
    members, partitions = [_member(row) for row in one.members], [_lag(row) for row in lags]
    return {**_head(one, lags), "coordinator": one.coordinator, "members": members, "partitions": partitions}


def _lag(row: groups.Lag) -> dict[str, Any]:
    who = {"member": "id", "client": "client_id", "host": "host"}
    reader = {key: getattr(row.member, name) if row.member else None for key, name in who.items()}
    return {**pick(row, "topic", "partition", "offset", "start", "end", "lag"), **reader}


def _member(row: groups.GroupMember) -> dict[str, Any]:
    return {
        **pick(row, "member=id", "instance=instance_id", "client=client_id", "host"),
        "epoch": None if row.epoch < 0 else row.epoch,
        "count": len(row.partitions),
        "assigned": [f"{topic}-{part}" for topic, part in row.partitions],
    }


@dataclass(slots=True)
class Reset:
    """The options that `moldau group reset` and `moldau share reset` share."""

    topic: OfTopics = None
    to_earliest: bool = flag("--to-earliest", "Go to the first records.")
    to_latest: bool = flag("--to-latest", "Go to the end, after the last records.")
    to_time: str | None = option(
        "--to-time", "Go to a time: 2026-11-15T10:00:00 (UTC), milliseconds, or -1h.", metavar="TIME"
    )
    execute: bool = flag("--execute", "Change the offsets; without this they are only shown.")

    def target(self, **more: resets.Wanted | None) -> resets.Wanted:
        """Return the one target that was given, by these options or by others."""
        given = {
            "to_earliest": resets.Earliest() if self.to_earliest else None,
            "to_latest": resets.Latest() if self.to_latest else None,
            "to_time": resets.At(parse(resets.moment_ms, self.to_time)) if self.to_time else None,
            **more,
        }
        targets = [one for one in given.values() if one is not None]
        if len(targets) != 1:
            names = (f"--{name.replace('_', '-')}" for name in given)
            raise misused(f"Say where to go, by one of {', '.join(names)}.")
        return targets[0]

    def show(self, session: Session, rows: list[dict[str, Any]]) -> None:
        """Show the offsets before and after, and say if nothing was changed."""
        session.show(rows)
        if not self.execute:
            session.tell("Nothing was changed. --execute changes it.")


@verb(
    "reset",
    "moldau group reset billing --to-earliest",
    "moldau group reset billing --to-time -1h --execute",
    "moldau group reset billing --shift -10 --topic orders:0,1 --execute",
    "moldau group reset billing --to-latest --export > offsets.csv",
    "moldau group reset billing --from-file offsets.csv --execute",
)
def reset(
    session: Session,
    name: Group,
    options: Reset,
    to_current: bool = flag("--to-current", "Stay at the committed offsets; for --export."),
    by_duration: str | None = option("--by-duration", "Go back by a duration: 90m, 7d, PT1H.", metavar="DURATION"),
    to_offset: int | None = option("--to-offset", "Go to this offset.", min=0),
    shift: int | None = option("--shift", "Skip this many records, or go back if negative."),
    from_file: Path | None = option(
        "--from-file", "Read lines topic,partition,offset from a file, or from stdin with -.", allow_dash=True
    ),
    export: bool = flag("--export", "Print lines that --from-file reads."),
) -> None:
    """Set the committed offsets of a group without members; without --execute only show them."""
    target = options.target(
        to_current=resets.Current() if to_current else None,
        by_duration=resets.At(parse(resets.moment_ms, f"-{by_duration}")) if by_duration else None,
        to_offset=None if to_offset is None else resets.To(to_offset),
        shift=None if shift is None else resets.Shift(shift),
        from_file=resets.Given(parse(resets.from_csv, _read(from_file), name)) if from_file else None,
    )
    rows, new = _plan(session, name, target, options.topic)
    if options.execute:
        resets.apply(session.client, name, new)
    if export:
        print(resets.to_csv(None, new), end="")
    else:
        options.show(session, rows)


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return sys.stdin.read(LARGEST_FILE)
        if file.stat().st_size > LARGEST_FILE:
            raise misused(f"{file} is larger than {LARGEST_FILE} bytes.")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None


def _plan(
    session: Session, name: str, target: resets.Wanted, topic: list[str] | None
) -> tuple[list[dict[str, Any]], dict[TopicPartition, int]]:
    """Return a row for each partition with its old and its new offset, and the new offsets."""
    committed = {place: one.offset for place, one in groups.committed(session.client, name).items()}
    places = places_of(session, topic) if topic else sorted(committed)
    if not places and not isinstance(target, resets.Given):
        raise Mistake(f"Group {name} has committed nothing: name the topics with --topic.")
    new = resets.plan(session.client, target, places, committed)
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


def places_of(session: Session, given: list[str]) -> list[TopicPartition]:
    """Turn `orders` or `orders:0,2` into partitions."""
    places: list[TopicPartition] = []
    for text in given:
        name, colon, numbers = text.partition(":")
        have = topics.partitions(session.client, [name])
        if not colon:
            places += have
            continue
        for number in numbers.split(","):
            if not number.isdecimal() or (name, int(number)) not in have:
                raise misused(f"{text!r}: topic {name} has partitions 0 to {len(have) - 1}, not {number!r}.")
            places.append((name, int(number)))
    return places


POSITIONS: dict[str, resets.Wanted] = {"start": resets.Earliest(), "end": resets.Latest()}


@verb(
    "seek",
    "moldau group seek billing start",
    "moldau group seek billing 10 --topic orders:0",
    "moldau group seek billing -- -1h",
)
def seek(
    session: Session,
    name: Group,
    to: str = argument("Go to start, end, an offset, +N records, or a time (2026-11-15T10:00:00, -1h)."),
    topic: OfTopics = None,
) -> None:
    """Set the committed offsets of a group without members at once; `reset` shows them first."""
    if to in POSITIONS:
        target = POSITIONS[to]
    elif to.isdecimal():
        target = resets.To(int(to))
    elif to[:1] == "+" and to[1:].isdecimal():
        target = resets.Shift(int(to))
    else:
        target = resets.At(parse(resets.moment_ms, to))
    rows, new = _plan(session, name, target, topic)
    resets.apply(session.client, name, new)
    session.show(rows)


@verb("delete", "moldau group delete billing", "moldau group delete billing --topic orders")
def delete(session: Session, names: Groups, topic: OfTopics = None, sure: Sure = False) -> None:
    """Delete groups without members; with --topic delete only their offsets of these topics."""
    session.confirm(f"Delete {', '.join(names)}{' in ' + ', '.join(topic) if topic else ''}?", sure)
    outcomes: dict[str, Error] = {}
    if topic:
        places = places_of(session, topic)
        for name in names:
            deleted = groups.delete_offsets(session.client, name, places)
            outcomes |= {f"{name} {place[0]}-{place[1]}": error for place, error in deleted.items()}
    else:
        outcomes = groups.delete(session.client, names)
    rows = [{"deleted": what, "error": error.name if error else None} for what, error in outcomes.items()]
    refused = [f"{what}: {error.message}" for what, error in outcomes.items() if error]
    if refused:
        raise Mistake(" ".join(refused) + " A group must have no members; `moldau group describe` shows them.")
    session.done(f"Deleted {', '.join(outcomes)}.", outcomes=rows)
