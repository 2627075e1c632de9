"""From the classic protocol to the consumer protocol and back, while members go on consuming (KIP-848).

The first member that joins a classic group of consumers with the new protocol turns it into a consumer group, in which
the others are guests (classic_members.py). When the last member with the new protocol goes, the group turns back.
`group.consumer.migration.policy` says which of the two may happen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from moldau.machines.classic import rebalance as classic_rebalance
from moldau.machines.classic.group import CONSUMER, ClassicGroup, State
from moldau.machines.classic.group import Member as ClassicMember
from moldau.machines.consumer.assignors import NO_TARGET, Partitions
from moldau.machines.consumer.group import REPLAY, ConsumerGroup
from moldau.machines.consumer.members import (
    ClassicProtocol,
    Member,
    assignment_change,
    subscription_change,
    target_change,
)
from moldau.machines.effects import Change, Effects
from moldau.machines.epochs.hashing import metadata_hash
from moldau.machines.epochs.records import epoch_change, target_epoch_change
from moldau.machines.group import Client, Group, refuse
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

Answers = classic_rebalance.Answers


@dataclass(slots=True)
class Scratch:
    """A place to try a group out before it is true."""

    groups: dict[str, Group] = field(default_factory=dict[str, Group])


def policy(groups: Groups) -> str:
    return groups.setting("group.consumer.migration.policy").lower()


# Up.


def upgrade(groups: Groups, group: ClassicGroup) -> tuple[ConsumerGroup, list[Change], Answers]:
    """Return the consumer group that a classic group becomes, with the changes that make it so; raises Refused.

    Members go on with what they have. Those that wait in a rebalance are told to join again.
    """
    check_upgrade(groups, group)
    cluster = groups.cluster()
    try:
        members = [guest_of(group, member, cluster) for member in group.members.values()]
    except WireError:
        refuse_upgrade(group, "the embedded consumer protocol is malformed")
    changes = [*group.tombstones(), *conversion(group, members, cluster)]
    return build_group(group.id, changes), changes, dismiss(groups, group)


def check_upgrade(groups: Groups, group: ClassicGroup) -> None:
    if policy(groups) not in ("upgrade", "bidirectional"):
        refuse_upgrade(group, "online upgrade is disabled")
    if not group.consumes():
        refuse_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > groups.setting("group.consumer.max.size"):
        refuse_upgrade(group, "the group size exceeds the consumer group maximum size")


def refuse_upgrade(group: ClassicGroup, why: str) -> NoReturn:
    problem = f"Cannot upgrade classic group {group.id} to consumer group because {why}."
    refuse(Error.GROUP_ID_NOT_FOUND, problem)


def guest_of(group: ClassicGroup, member: ClassicMember, cluster: Cluster) -> Member:
    """Return a classic member as a guest, with the partitions that its leader had assigned to it."""
    subscription = read_subscription(member.metadata(group.protocol) if group.protocol else member.protocols[0][1])
    assigned: Partitions = {}
    if member.assignment:
        assignment = read(m.ConsumerProtocolAssignment, member.assignment)
        if assignment.user_data:
            refuse_upgrade(group, "an unsupported custom assignor is in use")
        assigned = ids_of(assignment.assigned_partitions, cluster)
    return Member(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client.id,
        client_host=member.client.host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicProtocol(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned={topic: dict.fromkeys(sorted(indexes), group.generation) for topic, indexes in assigned.items()},
    )


def conversion(group: ClassicGroup, members: list[Member], cluster: Cluster) -> list[Change]:
    """Return the records of the consumer group."""
    number = metadata_hash({name for member in members for name in member.topics}, cluster)
    return [
        *(subscription_change(group.id, member) for member in members),
        epoch_change(ConsumerGroup.kind, group.id, group.generation, number),
        *(target_change(group.id, member.id, has(member)) for member in members),
        target_epoch_change(ConsumerGroup.kind, group.id, group.generation),
        *(assignment_change(group.id, member) for member in members),
    ]


def has(member: Member) -> Partitions:
    return {topic: frozenset(mine) for topic, mine in member.assigned.items()}


def build_group(group_id: str, changes: list[Change]) -> ConsumerGroup:
    """Return a group as it will be, for decisions that rest on changes not yet made."""
    scratch: Any = Scratch({group_id: ConsumerGroup(group_id)})
    for change in changes:
        if replay := REPLAY.get(change.key.SCHEMA.name):
            replay(scratch, change.key, change.value)
    return scratch.groups[group_id]


def dismiss(groups: Groups, group: ClassicGroup) -> Answers:
    """Send those who wait into the new group, in which their sessions go on."""
    groups.timers.cancel(("join", group.id))
    groups.timers.cancel(("sync", group.id))
    answers: Answers = []
    for member in group.members.values():
        groups.timers.cancel(("member", group.id, member.id))
        answers += classic_rebalance.refuse_waiting(member, Error.REBALANCE_IN_PROGRESS)
    return answers


# Down.


def may_downgrade(groups: Groups, group: ConsumerGroup, gone: Collection[Member]) -> bool:
    """Return whether only guests stay, and whether the settings let them have a classic group."""
    ours = sum(member.classic is None for member in gone)
    stay = len(group.members) - len(gone)
    only_guests = ours > 0 and group.guests == len(group.members) - ours
    allowed = policy(groups) in ("downgrade", "bidirectional") and stay <= groups.setting("group.max.size")
    return only_guests and stay > 0 and allowed


def may_be_replaced(groups: Groups, group: ConsumerGroup, replaced: Member) -> bool:
    """Return the same for a static member that comes back as a guest, so that nobody goes."""
    only_guests = replaced.classic is None and group.guests == len(group.members) - 1
    allowed = policy(groups) in ("downgrade", "bidirectional")
    return only_guests and allowed and len(group.members) <= groups.setting("group.max.size")


def downgrade(groups: Groups, group: ConsumerGroup, gone: Collection[Member], now_ms: int) -> Effects:
    """Make it a classic group of those who stay; they are asked to join as soon as it is one."""
    ids = {member.id for member in gone}
    stay = [member for member in group.members.values() if member.id not in ids]
    return to_classic(groups, group, stay, group.target, now_ms, rebalance=True)


def to_classic(
    groups: Groups,
    group: ConsumerGroup,
    members: list[Member],
    target: Mapping[str, Partitions],
    now_ms: int,
    *,
    rebalance: bool,
) -> Effects:
    action = partial(go_on, groups, group.id, rebalance)
    groups.timers.set(("downgraded", group.id), now_ms, action)
    return Effects([*group.tombstones(), classic_record(groups.cluster(), group, members, target, now_ms)])


def classic_record(
    cluster: Cluster, group: ConsumerGroup, members: list[Member], target: Mapping[str, Partitions], now_ms: int
) -> Change:
    """Return the classic group, in which each member has what the target gave it."""
    classic = ClassicGroup(group.id, State.STABLE, since_ms=now_ms, protocol_type=CONSUMER, generation=group.epoch)
    classic.members = {member.id: classic_member(member) for member in members}
    classic.protocol = common_protocol(members)
    return classic.record(
        {member.id: write_assignment(target.get(member.id, NO_TARGET), member, cluster) for member in members}
    )


def common_protocol(members: list[Member]) -> str:
    """Return what a group of these members would agree on."""
    group = ClassicGroup("", members={member.id: classic_member(member) for member in members})
    return group.select_protocol()


def classic_member(member: Member) -> ClassicMember:
    assert member.classic is not None
    client = Client(member.client_id, member.client_host)
    return ClassicMember(
        member.id,
        member.instance_id,
        client,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
    )


def go_on(groups: Groups, group_id: str, rebalance: bool, now_ms: int) -> Effects:
    """Begin the sessions of the classic group's members, and a rebalance if somebody went."""
    group = groups.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.state is not State.STABLE:
        return Effects()
    for member in group.members.values():
        classic_rebalance.touch(groups, group, member, now_ms)
    return classic_rebalance.prepare(groups, group, now_ms) if rebalance else Effects()


# What consumers put into the classic protocol.


def read(cls: Any, data: bytes) -> Any:
    """Read a message after its version; one later than the latest known is read as that; raises WireError."""
    if len(data) < 2 or data[0] & 0x80:
        raise WireError("a consumer protocol message without a version")
    return codec.decode_from(cls, min(int.from_bytes(data[:2]), cls.SCHEMA.versions[1]), data, 2)[0]


def read_subscription(data: bytes) -> Any:
    return read(m.ConsumerProtocolSubscription, data)


def write_assignment(partitions: Mapping[bytes, Collection[int]], member: Member, cluster: Cluster) -> bytes:
    """In the version of the member's subscription; topics that are gone are left out."""
    assert member.classic is not None
    latest = m.ConsumerProtocolAssignment.SCHEMA.versions[1]
    version = min(int.from_bytes(member.classic.protocols[0][1][:2]), latest)
    rows = [
        m.ConsumerProtocolAssignment_TopicPartition(cluster.topics_by_id[topic].name, sorted(indexes))
        for topic, indexes in partitions.items()
        if topic in cluster.topics_by_id
    ]
    return version.to_bytes(2) + codec.encode(m.ConsumerProtocolAssignment(rows), version)


def ids_of(rows: Collection[Any], cluster: Cluster) -> Partitions:
    """Topic names and partitions, by topic id; topics that are gone are left out."""
    return {cluster.topics[row.topic].id: frozenset(row.partitions) for row in rows if row.topic in cluster.topics}
