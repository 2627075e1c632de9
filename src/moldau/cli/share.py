"""`moldau share`: share groups, the queues of Kafka."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from moldau.admin import groups, resets, shares
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Group, Sure, complete_groups, noun, verb
from moldau.cli.group import OfTopics, places_of
from moldau.cli.session import Session
from moldau.cli.topic import moment

cli = noun()


@verb(cli, "list", ("moldau share list",))
def list_groups(session: Session) -> None:
    """List share groups."""
    found = groups.listed(session.client, types=["share"])
    rows = [{"group": one.id, "state": one.state, "coordinator": one.coordinator} for one in found]
    session.show(rows, empty="No share groups.")


@verb(cli, "describe", ("moldau share describe workers", "moldau share describe workers --members"))
def describe(
    session: Session,
    name: Group,
    members: Annotated[bool, typer.Option("--members", help="The members instead of the partitions.")] = False,
) -> None:
    """Show where a share group is in its partitions, and who works."""
    found = groups.described(session.client, name, "share")
    places = [_offset(row) for row in shares.offsets(session.client, name)]
    who = [
        {
            "member": one.id,
            "client": one.client_id,
            "host": one.host,
            "epoch": one.epoch,
            "assigned": [f"{topic}-{part}" for topic, part in one.partitions],
        }
        for one in found.members
    ]
    head: dict[str, Any] = {"group": name, "state": found.state, "coordinator": found.coordinator, "epoch": found.epoch}
    if session.output.value != "table":
        session.show({**head, "members": who, "partitions": places})
        return
    session.show({**head, "members": len(who)})
    print()
    session.show(who if members else places, empty="No members." if members else "It has begun nowhere yet.")


def _offset(row: shares.ShareOffset) -> dict[str, Any]:
    return {"topic": row.topic, "partition": row.partition, "start": row.start, "lag": row.lag}


@verb(
    cli,
    "reset",
    (
        "moldau share reset workers --to-earliest --topic orders",
        "moldau share reset workers --to-time -1h --topic orders --execute",
    ),
)
def reset(
    session: Session,
    name: Group,
    topic: OfTopics = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first records there are.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the last records.")] = False,
    to_time: Annotated[
        str | None, typer.Option("--to-time", metavar="TIME", help="2026-11-15T10:00:00 (UTC), ms, or -1h.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without this it is only shown.")] = False,
) -> None:
    """Set where a share group without members begins. Without --execute only shows what would be."""
    if [to_earliest, to_latest, to_time is not None].count(True) != 1:
        raise misused("Say where to, by one of --to-earliest, --to-latest and --to-time.")
    wanted: resets.Wanted = resets.Earliest() if to_earliest else resets.Latest()
    if to_time is not None:
        wanted = resets.At(moment(to_time))
    known = {(row.topic, row.partition): row.start for row in shares.offsets(session.client, name)}
    places = places_of(session, topic) if topic else sorted(known)
    if not places:
        raise Mistake(f"Group {name} has begun nowhere: say with --topic where it shall.")
    new = resets.plan(session.client, wanted, places, {})
    if execute:
        shares.alter(session.client, name, new)
    session.show(
        [
            {"topic": place[0], "partition": place[1], "start": known.get(place), "new_start": offset}
            for place, offset in new.items()
        ]
    )
    if not execute:
        session.tell("Nothing was changed. --execute does it.")


@verb(cli, "delete", ("moldau share delete workers", "moldau share delete workers --topic orders"))
def delete(
    session: Session,
    names: Annotated[list[str], typer.Argument(metavar="GROUP...", help="Groups.", autocompletion=complete_groups)],
    topic: Annotated[list[str] | None, typer.Option("--topic", "-t", help="Only where they are in this one.")] = None,
    sure: Sure = False,
) -> None:
    """Delete share groups without members; with --topic only where they are in it."""
    session.confirm(f"Delete {', '.join(names)}{' in ' + ', '.join(topic) if topic else ''}?", sure)
    if topic:
        for name in names:
            shares.delete_offsets(session.client, name, topic)
    else:
        refused = {name: error for name, error in groups.delete(session.client, names).items() if error}
        if refused:
            raise Mistake(" ".join(f"{name}: {error.message}" for name, error in refused.items()))
    session.done(f"Deleted {', '.join(names)}.", deleted=names)
