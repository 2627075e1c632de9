"""The machine of one partition of `__consumer_offsets`: groups of every kind, and their committed offsets.

Each kind of group lives in a module of its own, which has a table `REPLAY` of its records and a row in `KINDS`.
A group's id belongs to one kind at a time. What clients wait for, and when members were last heard of, is soft: it is
lost with the process, and members then have their session timeout to come back, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.machines import offsets
from moldau.machines.classic import group as classic
from moldau.machines.classic import requests as classic_requests
from moldau.machines.classic.group import ClassicGroup
from moldau.machines.consumer import classic_members
from moldau.machines.consumer import group as consumer
from moldau.machines.consumer import heartbeats as consumer_heartbeats
from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.epochs import sessions
from moldau.machines.group import Client, Group, Randomness, refuse
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.offset_records import OffsetKey
from moldau.machines.offsets import Offsets
from moldau.machines.replaying import Replay
from moldau.machines.share import group as share
from moldau.machines.share import heartbeats as share_heartbeats
from moldau.machines.streams import group as streams
from moldau.machines.streams import heartbeats as streams_heartbeats
from moldau.machines.timers import Timers
from moldau.wire import messages as m
from moldau.wire.errors import Error

EXPIRE_AT_ONCE = 1000  # changes in one batch of expired offsets


class Groups:
    """The groups of one partition. `setting` reads a setting of the broker, `cluster` gives its metadata."""

    def __init__(self, setting: Callable[[str], Any], random: Randomness, cluster: Callable[[], Cluster]) -> None:
        self.setting = setting
        self.random = random
        self.cluster = cluster
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.timers = Timers()

    # What the runtime asks of a machine.

    def replay(self, key: Any, value: Any, producer_id: int) -> None:
        kind = key.__class__
        if kind is OffsetKey or kind is m.OffsetCommitKey:
            if value is not None and key.group not in self.groups:
                # Offsets without members: a group that only stores them. It has no record of its own.
                self.groups[key.group] = ClassicGroup(key.group)
            self.offsets.replay(key, value, producer_id)
        else:
            REPLAY.get(key.SCHEMA.name, ignore)(self, key, value)

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        self.offsets.replay_marker(producer_id, commit)

    def loaded(self, now_ms: int) -> Effects:
        """Give everybody a session's time to be heard of, and begin with expiry."""
        effects = Effects()
        for group in list(self.groups.values()):
            started = KINDS[group.kind].loaded(self, group, now_ms)
            effects.add(started.changes, started.answers)
        self.schedule_expiry(now_ms)
        return effects

    def tick(self, now_ms: int) -> Effects:
        """Do what one timer asks for: what follows from it must be replayed before the next is looked at."""
        action = self.timers.take(now_ms)
        return Effects() if action is None else action(now_ms)

    def next_deadline_ms(self) -> float:
        return self.timers.next_deadline_ms()

    def give_up(self, group_id: str, member_id: str, epoch: int | None, now_ms: int) -> Effects:
        """Take out a member with epochs that fell silent, or that has not left the epoch in which it was to give
        something up."""
        group = self.groups.get(group_id)
        fence = None if group is None else KINDS[group.kind].fence
        member = None if group is None else group.members.get(member_id)
        if fence is None or member is None or epoch not in (None, member.epoch):
            return Effects()
        return fence(self, group, [member], now_ms)

    # Commands for all kinds.

    def get(self, group_id: str, kind: str) -> Any:
        """Return the group if it is there and of this kind; raises Refused with GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None or group.kind != kind:
            refuse(Error.GROUP_ID_NOT_FOUND, f"There is no {kind} group '{group_id}'.")
        return group

    def kind_of(self, group_id: str) -> Kind:
        """Return the kind that answers members of the classic protocol: most empty groups make room for them."""
        group = self.groups.get(group_id)
        if group is None or (group.is_empty() and KINDS[group.kind].makes_room):
            return KINDS["classic"]
        return KINDS[group.kind]

    def has_room_for(self, group_id: str) -> bool:
        """Return whether there is the group, or room for it: one client could make any number of them."""
        return group_id in self.groups or len(self.groups) < self.setting("moldau.group.max.count")

    def check_room_for(self, group_id: str) -> None:
        if not self.has_room_for(group_id):
            refuse(Error.GROUP_MAX_SIZE_REACHED, "The coordinator has as many groups as moldau.group.max.count allows.")

    def delete(self, group_id: str) -> list[Change]:
        """Changes that delete a group and its offsets; raises Refused."""
        group = self.groups.get(group_id)
        if group is None:
            refuse(Error.GROUP_ID_NOT_FOUND, f"There is no group '{group_id}'.")
        group.check_delete()
        return [*offsets.delete_all(self, group_id), *group.tombstones()]

    def forget(self, group_id: str) -> None:
        """Take out a group of which nothing is written: it has neither members nor offsets."""
        self.groups.pop(group_id, None)

    def schedule_expiry(self, now_ms: int) -> None:
        interval = self.setting("offsets.retention.check.interval.ms")
        self.timers.set("expiry", now_ms + interval, self.expire)

    def expire(self, now_ms: int) -> Effects:
        """Delete expired offsets, and groups that have neither members nor offsets left."""
        changes: list[Change] = []
        for group in list(self.groups.values()):
            gone, all_gone = offsets.expire(self, group, now_ms)
            changes += gone
            if all_gone and group.is_empty():
                changes += group.tombstones()
            if len(changes) >= EXPIRE_AT_ONCE:
                self.timers.set("expiry", now_ms, self.expire)
                return Effects(changes)
        self.schedule_expiry(now_ms)
        return Effects(changes)


Command = Callable[[Groups, Promise, Any, Client, int, int], Effects]  # ..., request, client, version, now_ms


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of group does in its own way: how it goes on after a load, how it takes members with epochs out, and
    how it answers members that speak the classic protocol. A group that makes room is replaced by a classic one if it
    is empty."""

    loaded: Callable[[Groups, Any, int], Effects]
    join: Command
    sync: Command = classic_requests.sync  # these three find no classic group of another kind's id
    heartbeat: Command = classic_requests.heartbeat
    leave: Command = classic_requests.leave
    fence: Callable[[Groups, Any, list[Any], int], Effects] | None = None
    makes_room: bool = True


KINDS: dict[str, Kind] = {
    "classic": Kind(classic_requests.loaded, classic_requests.join),
    "consumer": Kind(
        sessions.loaded,
        classic_members.join,
        classic_members.sync,
        classic_members.heartbeat,
        classic_members.leave,
        consumer_heartbeats.fence,
    ),
    "share": Kind(sessions.loaded, classic_requests.turn_away, fence=share_heartbeats.fence, makes_room=False),
    "streams": Kind(sessions.loaded, classic_requests.turn_away, fence=streams_heartbeats.fence),
}
REPLAY: dict[str, Replay] = {**classic.REPLAY, **consumer.REPLAY, **share.REPLAY, **streams.REPLAY}


def ignore(groups: Groups, key: Any, value: Any) -> None:
    """Pass over records of kinds that this release does not serve."""
