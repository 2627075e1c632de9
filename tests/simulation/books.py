"""Coordinators that are loaded again are those that were: what was lived through before a crash against the log.

Soft state (who waits, sessions, a rebalance under way) is lost with the process; all else is compared. A crash may
come between an append and its replay: then the log is a step ahead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moldau.broker.coordinators import Coordinators, replay_batch
from moldau.machines.classic.group import ClassicGroup, State
from moldau.machines.groups import Groups
from moldau.machines.share.state import ShareStates
from moldau.machines.transactions import Transactions
from moldau.wire.refusal import Refused
from tests.simulation.copies.output import whole_batches
from tests.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.simulation.world import World

STEPS = 3  # so many batches may be in the log that were not lived through
SOFT = {"seen", "setting_up", "resolved", "configured", "shutdown_by", "endpoint_epoch"}
REBALANCING = "rebalancing"

Books = dict[str, Any]


def lived(world: World, torn: bool = False) -> dict[tuple[str, int], Books]:
    """The books of all coordinators that are loaded; `torn` if the crash came within a step of the disk."""
    return {
        (coordinators.topic, index): books(machine, torn)
        for coordinators in world.node.coordinators
        for index, machine in coordinators.machines.items()
    }


def check_replay(world: World, before: dict[tuple[str, int], Books]) -> None:
    """After a start."""
    for coordinators in world.node.coordinators:
        for topic, index in before:
            if topic == coordinators.topic:
                compare(world, coordinators, index, before[topic, index])


def compare(world: World, coordinators: Coordinators[Any], index: int, before: Books) -> None:
    try:
        log = coordinators.readable(index).log
        data = b"".join(read_all(log))
    except Refused:
        return  # its disk has failed
    batches = list(whole_batches(data))
    machine = coordinators.make(index)
    after: Books = {}
    for place, batch in enumerate(batches):
        replay_batch(coordinators.topic, machine, batch)
        if place >= len(batches) - STEPS:
            after = books(machine)
            if agree(before, after):
                world.counts["coordinators compared"] += 1
                return
    if not agree(before, after):
        seen = f"{coordinators.topic}-{index} was {before}, and is {after}"
        raise Broken(Property.REPLAYED, seen)


def read_all(log: Any) -> list[bytes]:
    offset, found = log.start_offset, []
    while offset < log.end_offset and (span := log.read(offset, 1 << 20).span) is not None:
        data = bytes(span.read())
        found.append(data)
        offset = max(batch.next_offset for batch in whole_batches(data))
    return found


def books(machine: Any, torn: bool = False) -> Books:
    """All that is not soft, as plain values. A classic group is ahead of its record while that is being written."""
    if isinstance(machine, Transactions):
        return {name: replace(one, last_epoch=-1) for name, one in machine.by_id.items()}
    if isinstance(machine, ShareStates):
        return {str(key): replace(state) for key, state in machine.states.items()}
    assert isinstance(machine, Groups)
    groups = {name: group_books(group, torn) for name, group in machine.groups.items()}
    known = machine.offsets
    committed = {
        (g, t, p): o.offset for g, ts in known.committed.items() for t, ps in ts.items() for p, o in ps.items()
    }
    pending = {key: {p: o and o.offset for p, o in waiting.items()} for key, waiting in known.pending.items()}
    return {"groups": groups, "committed": committed, "pending": pending}


def group_books(group: Any, torn: bool) -> Any:
    if isinstance(group, ClassicGroup):
        if torn or group.state not in (State.STABLE, State.EMPTY):
            return REBALANCING
        members = {member.id: member.assignment for member in group.members.values()}
        return group.state, group.generation, group.protocol, members
    return {name: value for name, value in vars(group).items() if name not in SOFT}


def agree(before: Books, after: Books) -> bool:
    """A group that was being rebalanced is at its last generation, or not there at all."""
    if "groups" not in before:
        return before == after
    ours, theirs = before["groups"], after.get("groups", {})
    soft = {name for name, what in ours.items() if what == REBALANCING}
    names = {*ours, *theirs} - soft
    same = all(unwritten(ours.get(name)) or ours.get(name) == theirs.get(name) for name in names)
    return same and all(before[what] == after.get(what, {}) for what in ("committed", "pending"))


def unwritten(group: Any) -> bool:
    """A group that has candidates but never had members, of which nothing is in the log."""
    return isinstance(group, tuple) and group[1] == 0 and not group[3]
