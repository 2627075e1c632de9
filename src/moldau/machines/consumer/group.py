"""A consumer group (KIP-848): its members, its target assignment, and who owns what.

Three epochs tell how far it is. The group's epoch grows with each change of members, subscriptions or topics; the
target's epoch is that for which an assignor has worked; each member's epoch is that of the target it has reached.
State changes only by replay. The commands are in heartbeats.py and, for members that still speak the classic
protocol, in migration.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.consumer.members import Member, target_of, with_assignment, with_subscription
from moldau.machines.consumer.subscriptions import Resolved
from moldau.machines.effects import Change
from moldau.machines.epochs import group as epochs
from moldau.machines.epochs.group import FIRST_EPOCH, check_given
from moldau.machines.epochs.records import tombstones
from moldau.machines.group import CheckPartition, Expiry
from moldau.machines.reconciling import Owned
from moldau.machines.replaying import members_with_epochs, put_epoch, row
from moldau.wire import messages as m


class ConsumerGroup:
    """All that the log says about a group, and what follows from it."""

    kind = "consumer"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        self.target: dict[str, Partitions] = {}
        self.target_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        self.regexes: dict[str, Resolved] = {}
        self.has_old_metadata = False
        self.owners: dict[bytes, dict[int, str]] = {}
        self.names: Counter[str] = Counter()
        self.patterns: Counter[str] = Counter()
        self.assignors: Counter[str] = Counter()
        self.guests = 0  # members that speak the classic protocol
        # Soft: at which state of the metadata, and in which epoch, the topics were last looked at.
        self.seen: tuple[int, int] = (-1, -1)
        # Soft: at which state of the metadata, and when, the patterns were last matched.
        self.resolved: tuple[int, int] = (-1, 0)

    # What all kinds of groups are asked.

    state_name = epochs.state_name
    protocol_name = epochs.protocol_name
    is_empty = epochs.is_empty
    check_commit = epochs.check_commit
    check_fetch = epochs.check_fetch
    check_delete = epochs.check_delete

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go at any time."""

    def subscribes(self, topic: str) -> bool:
        return topic in self.names or any(topic in resolved.topics for resolved in self.regexes.values())

    def offset_expiry(self) -> Expiry | None:
        return Expiry()

    def tombstones(self) -> list[Change]:
        regexes = [m.ConsumerGroupRegularExpressionKey(self.id, pattern) for pattern in self.regexes]
        old_metadata = [m.ConsumerGroupPartitionMetadataKey(self.id)] if self.has_old_metadata else []
        return tombstones(self, *regexes, *old_metadata)

    # Questions of the commands.

    member = epochs.member

    def partition_check(self, member: Member, epoch: int) -> CheckPartition:
        def check(topic: str, topic_id: bytes, partition: int) -> None:
            check_given(member, f"Partition {topic}-{partition}", member.epoch_of(topic_id, partition), epoch)

        return check

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def topics_of(self, member: Member) -> frozenset[str]:
        """Return the names that a member's subscription stands for."""
        resolved = self.regexes.get(member.regex)
        return member.topics | resolved.topics if resolved else member.topics

    def preferred_assignor(self, default: str) -> str:
        """Return the one that most of those members want who say so."""
        return max(self.assignors, key=self.assignors.__getitem__) if self.assignors else default

    # Replay: the only writers.

    def put(self, member: Member) -> None:
        old = self.members.get(member.id)
        self.count(old, -1)
        self.count(member, 1)
        self.members[member.id] = member
        self.forget_instance(old)  # it may have come back as another one
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        if old is None or old.assigned is not member.assigned or old.revoking is not member.revoking:
            self.release(old)
            self.own(member.id, member.assigned)
            self.own(member.id, member.revoking)

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self.count(member, -1)
        self.release(member)
        self.forget_instance(member)

    def forget_instance(self, member: Member | None) -> None:
        if member is not None and member.instance_id is not None and self.static.get(member.instance_id) == member.id:
            del self.static[member.instance_id]

    def count(self, member: Member | None, by: int) -> None:
        """Keep the sums over all members."""
        if member is None:
            return
        add(self.names, member.topics, by)
        add(self.patterns, [member.regex] if member.regex else (), by)
        add(self.assignors, [member.assignor] if member.assignor else (), by)
        self.guests += by * (member.classic is not None)

    def own(self, member_id: str, owned: Owned[bytes]) -> None:
        for topic, mine in owned.items():
            self.owners.setdefault(topic, {}).update(dict.fromkeys(mine, member_id))

    def release(self, member: Member | None) -> None:
        if member is None:
            return
        for topic, mine in (*member.assigned.items(), *member.revoking.items()):
            owners = self.owners.get(topic, {})
            for index in mine:
                if owners.get(index) == member.id:
                    del owners[index]
            if not owners:
                self.owners.pop(topic, None)


def add(counts: Counter[str], names: Iterable[str], by: int) -> None:
    """Counters without zeros, so that they can be asked what is in them."""
    for name in names:
        counts[name] += by
        if not counts[name]:
            del counts[name]


def unassigned(member: Member) -> Member:
    return member._replace(epoch=-1, previous_epoch=-1, assigned={}, revoking={})


def put_regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.regexes[key.regular_expression] = Resolved(frozenset(value.topics), value.version, value.timestamp)


def take_regex(group: ConsumerGroup, key: Any) -> None:
    group.regexes.pop(key.regular_expression, None)


def put_old_metadata(group: ConsumerGroup, key: Any, value: Any) -> None:
    """Kafka before 4.1 wrote the topics themselves; their hash takes the record's place at the next change."""
    group.has_old_metadata = True


def take_old_metadata(group: ConsumerGroup, key: Any) -> None:
    group.has_old_metadata = False


REPLAY = {
    **members_with_epochs(ConsumerGroup, Member, with_subscription, with_assignment, unassigned, target_of, put_epoch),
    "ConsumerGroupPartitionMetadataKey": row(ConsumerGroup, put_old_metadata, take_old_metadata),
    "ConsumerGroupRegularExpressionKey": row(ConsumerGroup, put_regex, take_regex),
}
