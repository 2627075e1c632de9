"""`moldau share`: share groups, Kafka's queues."""

from __future__ import annotations

from moldau.admin import groups, resets, shares
from moldau.admin.mistakes import Mistake
from moldau.cli.commands import Group, Groups, Sure, noun
from moldau.cli.group import Reset, places_of
from moldau.cli.options import flag, option
from moldau.cli.output import pick
from moldau.cli.session import Session

cli, verb = noun()


@verb("list", "moldau share list")
def list_groups(session: Session) -> None:
    """List share groups."""
    listed = groups.listed(session.client, types=["share"])
    session.show([pick(one, "group=id", "state", "coordinator") for one in listed], empty="There are no share groups.")


@verb("describe", "moldau share describe workers", "moldau share describe workers --members")
def describe(
    session: Session, name: Group, members: bool = flag("--members", "Show the members instead of the partitions.")
) -> None:
    """Show how far a share group is in its partitions, and its members."""
    group = groups.described(session.client, name, "share")
    places = [pick(row, "topic", "partition", "start", "lag") for row in shares.offsets(session.client, name)]
    who = [
        {
            **pick(one, "member=id", "client=client_id", "host", "epoch"),
            "assigned": [f"{topic}-{part}" for topic, part in one.partitions],
        }
        for one in group.members
    ]
    head = {"group": name, **pick(group, "state", "coordinator", "epoch")}
    if not session.for_people:
        session.show({**head, "members": who, "partitions": places})
        return
    session.show({**head, "members": len(who)})
    print()
    session.show(who if members else places, empty="It has no members." if members else "It has not started yet.")


@verb(
    "reset",
    "moldau share reset workers --to-earliest --topic orders",
    "moldau share reset workers --to-time -1h --topic orders --execute",
)
def reset(session: Session, name: Group, options: Reset) -> None:
    """Set where a share group without members starts; without --execute only show it."""
    target = options.target()
    known = {(row.topic, row.partition): row.start for row in shares.offsets(session.client, name)}
    places = places_of(session, options.topic) if options.topic else sorted(known)
    if not places:
        raise Mistake(f"Group {name} has not started anywhere: name the topics with --topic.")
    new = resets.plan(session.client, target, places, {})
    if options.execute:
        shares.alter(session.client, name, new)
    rows = [
        {"topic": place[0], "partition": place[1], "start": known.get(place), "new_start": offset}
        for place, offset in new.items()
    ]
    options.show(session, rows)


@verb("delete", "moldau share delete workers", "moldau share delete workers --topic orders")
def delete(
    session: Session,
    names: Groups,
    topic: list[str] | None = option("--topic -t", "Delete only the offsets of this topic; repeatable."),
    sure: Sure = False,
) -> None:
    """Delete share groups without members; with --topic delete only their offsets of these topics."""
    session.confirm(f"Delete {', '.join(names)}{' in ' + ', '.join(topic) if topic else ''}?", sure)
    if topic:
        for name in names:
            shares.delete_offsets(session.client, name, topic)
    else:
        refused = {name: error for name, error in groups.delete(session.client, names).items() if error}
        if refused:
            raise Mistake(" ".join(f"{name}: {error.message}" for name, error in refused.items()))
    session.done(f"Deleted {', '.join(names)}.", deleted=names)
