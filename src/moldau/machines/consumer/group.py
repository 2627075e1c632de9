"""A consumer group (KIP-848): its members, its target assignment, and who owns what.

Three epochs tell how far it is. The group's epoch grows with each change of members, subscriptions or topics; the
target's epoch is that for which an assignor has worked; each member's epoch is that of the target it has reached.
State changes only by replay. The commands are in heartbeats.py and, for members that still speak the classic
protocol, in migration.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.consumer.members import Member, target_of, with_assignment, with_subscription
from moldau.machines.consumer.subscriptions import Resolved
from moldau.machines.effects import Change
from moldau.machines.epochs import FIRST_EPOCH, check_commit_version, must_be_member
from moldau.machines.group import CheckPartition, Expiry, refuse
from moldau.machines.reconciling import Owned
from moldau.machines.replaying import members_with_epochs, put_epoch, row
from moldau.wire import messages as m
from moldau.wire.errors import Error

NO_TARGET: Partitions = {}


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

    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        settled = all(member.is_reconciled(self.target_epoch) for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    def protocol_name(self) -> str:
        return "consumer"

    def is_empty(self) -> bool:
        return not self.members

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
    ) -> CheckPartition | None:
        """A member commits in its epoch; what it owned before it may also commit in the epochs since it got it."""
        if not must_be_member(self.members, member_id, instance_id, epoch, transactional):
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None:
            check_commit_version(self.kind, version)
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            refuse(stale(member), f"Epoch {epoch} is ahead of the member's, which is {member.epoch}.")
        return partition_check(member, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self.member(member_id or "")
        if epoch != member.epoch:
            refuse(stale(member), f"Epoch {epoch} is not the member's, which is {member.epoch}.")

    def check_offset_delete(self) -> None:
        """Offsets of topics that nobody subscribes to may go at any time."""

    def check_delete(self) -> None:
        if self.members:
            refuse(Error.NON_EMPTY_GROUP, f"Group '{self.id}' has {len(self.members)} members.")

    def subscribes(self, topic: str) -> bool:
        return topic in self.names or any(topic in resolved.topics for resolved in self.regexes.values())

    def offset_expiry(self) -> Expiry | None:
        return Expiry()

    def tombstones(self) -> list[Change]:
        return [*map(deletion, self.tombstone_keys())]

    def tombstone_keys(self) -> Iterator[Any]:
        """The keys of all that is written about the group."""
        members = [*dict.fromkeys([*self.members, *self.target])]
        yield from (m.ConsumerGroupCurrentMemberAssignmentKey(self.id, member) for member in members)
        yield from (m.ConsumerGroupTargetAssignmentMemberKey(self.id, member) for member in members)
        yield m.ConsumerGroupTargetAssignmentMetadataKey(self.id)
        yield from (m.ConsumerGroupMemberMetadataKey(self.id, member) for member in members)
        yield from (m.ConsumerGroupRegularExpressionKey(self.id, pattern) for pattern in self.regexes)
        if self.has_old_metadata:
            yield m.ConsumerGroupPartitionMetadataKey(self.id)
        yield m.ConsumerGroupMetadataKey(self.id)

    # Questions of the commands.

    def member(self, member_id: str) -> Member:
        member = self.members.get(member_id)
        if member is None:
            refuse(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return member

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members[member_id]

    def topics_of(self, member: Member) -> frozenset[str]:
        """The names that a member's subscription stands for."""
        resolved = self.regexes.get(member.regex)
        return member.topics | resolved.topics if resolved else member.topics

    def preferred_assignor(self, default: str) -> str:
        """The one that most of those members want who say so."""
        return max(self.assignors, key=self.assignors.__getitem__) if self.assignors else default

    # Replay: the only writers.

    def put(self, member: Member) -> None:
        old = self.members.get(member.id)
        self.count(old, -1)
        self.count(member, 1)
        self.members[member.id] = member
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
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
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


def stale(member: Member) -> Error:
    """Clients of the classic protocol know of generations, not of epochs."""
    return Error.ILLEGAL_GENERATION if member.classic else Error.STALE_MEMBER_EPOCH


def partition_check(member: Member, epoch: int) -> CheckPartition:
    """A member that has moved on commits what it already owned in the epoch it names (KIP-1251)."""

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        given = member.epoch_of(topic_id, partition)
        if given is None:
            refuse(stale(member), f"Partition {topic}-{partition} is not the member's.")
        if epoch < given:
            refuse(stale(member), f"Partition {topic}-{partition} was given in epoch {given}; {epoch} is older.")

    return check


def deletion(key: Any) -> Change:
    return Change(key, None)


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
