"""What changes in a partition when something is wanted of it: the one place that makes a PartitionChangeRecord.

Whatever is wanted, these steps follow in this order:

1. A reassignment ends when the replicas that it adds are in the ISR; those that are to go leave it.
2. Who leaves an ISR that is below min.insync.replicas stays eligible to lead (KIP-966), since it has all that is
   committed. With enough in the ISR nobody is eligible any more.
3. A leader is elected: the present one if it may go on; else of the ISR, in the order of the replicas; of the eligible
   ones if the ISR is empty; the last known leader if both are empty; any live replica if the topic allows an unclean
   election. The last two may lack records: they lead alone and in recovery.
4. The record says what differs. A leader in it, even the same, begins a new epoch: so it must when a replica is
   removed, and, before metadata.version 12, when the ISR shrinks.

Without eligible leaders the last member of an ISR stays in it, for nobody else may lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from moldau.cluster.controller.policy import Policy, uses_eligible_leaders
from moldau.machines.metadata.cluster import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    NO_LEADER,
    NO_LEADER_CHANGE,
    RECOVERING,
    UNASSIGNED_DIRECTORY,
    Cluster,
    Partition,
    Topic,
)
from moldau.machines.metadata.locations import Place
from moldau.machines.metadata.topics import DIRECTORIES_SINCE, default_directory
from moldau.wire import messages as m

SAME_EPOCH_ON_SHRINK_SINCE = 12  # metadata.version (KAFKA-15021)
NOBODY = -1

Ids = list[int]


class Election(Enum):
    """Whom an election may choose: the first replica before others, whoever is in sync, or anybody alive."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Rules:
    """What all changes of one decision rest on.

    While a broker comes or goes the image still says what was before: `arriving` may lead though it is fenced there,
    `leaving` may not though it is not, nor may `arriving` in directories that are `offline`.
    """

    image: Cluster
    policy: Policy
    uses_eligible: bool
    arriving: int = NOBODY
    leaving: int = NOBODY
    offline: frozenset[bytes] = frozenset()

    def may_lead(self, part: Partition, broker_id: int) -> bool:
        """Whether a broker is alive and its replica lies in a directory that works."""
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker_id == self.leaving or not (broker.is_active or broker_id == self.arriving):
            return False
        directory = directory_of(part, broker_id)
        return is_online(directory, broker.log_dirs) and not (broker_id == self.arriving and directory in self.offline)

    def min_insync(self, topic: Topic) -> int:
        """Return the replicas that must be in sync, of which there can be no more than a partition has."""
        return min(self.policy.min_insync(topic.name), len(topic.partitions[0].replicas))

    def election(self, topic: Topic) -> Election:
        return Election.UNCLEAN if self.policy.unclean(topic.name) else Election.ONLINE


def rules_of(
    image: Cluster,
    policy: Policy,
    arriving: int = NOBODY,
    leaving: int = NOBODY,
    offline: frozenset[bytes] = frozenset(),
) -> Rules:
    return Rules(image, policy, uses_eligible_leaders(image), arriving, leaving, offline)


def directory_of(part: Partition, broker_id: int) -> bytes:
    """Return the directory of a replica; of one that is yet to come there is none."""
    return dict(zip(part.replicas, directories_of(part), strict=False)).get(broker_id, UNASSIGNED_DIRECTORY)


def directories_of(part: Partition) -> tuple[bytes, ...]:
    """Return the directories beside the replicas; logs from before there were directory ids have none."""
    return part.directories or (MIGRATING_DIRECTORY,) * len(part.replicas)


def is_online(directory: bytes, online: tuple[bytes, ...]) -> bool:
    """Whether a directory works; a broker of an old release does not name any."""
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and (not online or directory in online)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a partition; None leaves it as it is."""

    isr: Ids | None = None
    replicas: Ids | None = None
    adding: Ids | None = None
    removing: Ids | None = None
    directories: dict[int, bytes] | None = None  # by broker, of those that change
    recovery_state: int | None = None
    lost: int = NOBODY  # a broker that may have lost records: it is not eligible
    election: Election | None = None  # else what the topic's settings allow


NOTHING = Wanted()


@dataclass(slots=True)
class Draft:
    """A partition as it is going to be."""

    isr: Ids
    replicas: Ids
    adding: Ids
    removing: Ids
    eligible: Ids


def change(rules: Rules, topic: Topic, part: Partition, wanted: Wanted = NOTHING) -> Any | None:
    """Return the record that gives what is wanted, with all that follows from it; None if nothing changes."""
    draft = draft_of(part, wanted)
    end_reassignment(draft)
    if rules.uses_eligible:
        draft.eligible = still_eligible(part, draft, rules.min_insync(topic), wanted.lost)
    election = wanted.election or rules.election(topic)
    leader, is_unclean = elect(rules, part, draft, election)
    fields = change_leader(part, draft, leader, is_unclean)
    if is_unclean or not rules.uses_eligible:
        draft.eligible = []
    if tuple(draft.eligible) != part.eligible_leaders:
        fields["eligible_leader_replicas"] = draft.eligible
    if (draft.isr or rules.uses_eligible) and tuple(draft.isr) != part.isr:
        fields["isr"] = draft.isr
        bump_on_shrink(rules, part, fields)
    if rules.uses_eligible:
        remember_leader(part, draft, fields)
    fields |= move(rules, part, draft, wanted.directories)
    if wanted.recovery_state not in (None, part.recovery_state):
        fields["leader_recovery_state"] = wanted.recovery_state
    return m.PartitionChangeRecord(partition_id=part.index, topic_id=topic.id, **fields) if fields else None


def draft_of(part: Partition, wanted: Wanted) -> Draft:
    return Draft(
        isr=list(part.isr if wanted.isr is None else wanted.isr),
        replicas=list(part.replicas if wanted.replicas is None else wanted.replicas),
        adding=list(part.adding if wanted.adding is None else wanted.adding),
        removing=list(part.removing if wanted.removing is None else wanted.removing),
        eligible=list(part.eligible_leaders),
    )


def end_reassignment(draft: Draft) -> None:
    """End a reassignment if the ISR has all replicas that it adds; if it leaves fewer than before, all that stay."""
    if not draft.adding and not draft.removing:
        return
    isr = [replica for replica in draft.isr if replica not in draft.removing]
    replicas = [replica for replica in draft.replicas if replica not in draft.removing]
    needed = replicas if len(draft.adding) < len(draft.removing) else draft.adding
    if isr and set(draft.adding) <= set(isr) and set(needed) <= set(isr):
        draft.isr, draft.replicas, draft.adding, draft.removing = isr, replicas, [], []


def still_eligible(part: Partition, draft: Draft, min_insync: int, lost: int) -> Ids:
    """Return who is not in the ISR but has all that is committed."""
    if len(draft.isr) >= min_insync:
        return []
    were = {*part.isr, *draft.eligible}
    return sorted(one for one in were if one not in draft.isr and one != lost and one in draft.replicas)


def elect(rules: Rules, part: Partition, draft: Draft, election: Election) -> tuple[int, bool]:
    """Return who leads, and whether it may lack records that were committed."""

    def is_fit(replica: int) -> bool:
        is_complete = replica in draft.isr or (not draft.isr and replica in draft.eligible)
        return is_complete and rules.may_lead(part, replica)

    order = [part.leader, *draft.replicas]
    if election is Election.PREFERRED:
        order.insert(0, draft.replicas[0])
    for replica in order:
        if is_fit(replica):
            return replica, False
    if rules.uses_eligible and not draft.isr and not draft.eligible and len(part.last_known_leaders) == 1:
        last = part.last_known_leaders[0]
        if last in draft.replicas and rules.may_lead(part, last):
            return last, True
    if election is Election.UNCLEAN:
        for replica in draft.replicas:
            if rules.may_lead(part, replica):
                return replica, True
    return NO_LEADER, False


def change_leader(part: Partition, draft: Draft, leader: int, is_unclean: bool) -> dict[str, Any]:
    """Return the fields of an election, whose winner leads alone if it was not in the ISR."""
    if leader == part.leader:
        is_removing = not set(part.replicas) <= set(draft.replicas)
        return {"leader": leader} if is_removing else {}
    fields: dict[str, Any] = {"leader": leader}
    if is_unclean or leader in draft.eligible:
        draft.isr = [leader]
        draft.eligible = [replica for replica in draft.eligible if replica != leader]
    if is_unclean and part.recovery_state != RECOVERING:
        fields["leader_recovery_state"] = RECOVERING
    return fields


def bump_on_shrink(rules: Rules, part: Partition, fields: dict[str, Any]) -> None:
    is_shrinking = not set(part.isr) <= set(fields["isr"])
    if is_shrinking and "leader" not in fields and rules.image.metadata_version < SAME_EPOCH_ON_SHRINK_SINCE:
        fields["leader"] = part.leader


def remember_leader(part: Partition, draft: Draft, fields: dict[str, Any]) -> None:
    """Note who led last when nobody does any more, and forget it when somebody does.

    It is forgotten as well if it is no replica any more: Kafka's controller fails when such a broker comes back.
    """
    leader = fields.get("leader", NO_LEADER_CHANGE)
    is_kept = leader < 0 and set(part.last_known_leaders) <= set(draft.replicas)
    if leader == NO_LEADER and part.leader in draft.replicas and not part.last_known_leaders:
        fields["last_known_elr"] = [part.leader]
    elif part.last_known_leaders and not is_kept:
        fields["last_known_elr"] = []


def move(rules: Rules, part: Partition, draft: Draft, changed: dict[int, bytes] | None) -> dict[str, Any]:
    """Return the fields that say who keeps the partition, and in which directories."""
    fields: dict[str, Any] = {}
    if rules.image.metadata_version >= DIRECTORIES_SINCE:
        old = directories_of(part)
        known = dict(zip(part.replicas, old, strict=False)) | (changed or {})
        new = [known.get(i) or default_directory(rules.image, i) for i in draft.replicas]
        if tuple(new) != old:
            fields["directories"] = new
    pairs = ("replicas", part.replicas), ("removing", part.removing), ("adding", part.adding)
    for name, before in pairs:
        after = getattr(draft, name)
        if tuple(after) != before:
            fields[name if name == "replicas" else f"{name}_replicas"] = after
    return fields


def remove(rules: Rules, places: Iterable[Place], broker_id: int, *, is_lost: bool = False) -> Iterator[Any]:
    """Take a broker out of the ISR of partitions, and with `is_lost` out of the eligible ones, and elect others."""
    for topic, part in places:
        isr = [replica for replica in part.isr if replica != broker_id]
        record = change(rules, topic, part, Wanted(isr=isr, lost=broker_id if is_lost else NOBODY))
        if record is not None:
            yield record


def in_isr(image: Cluster, broker_id: int) -> Iterator[Place]:
    """Yield the partitions whose ISR a broker is in."""
    return (place for place in image.partitions_of(broker_id) if broker_id in place[1].isr)


def is_eligible_in(image: Cluster, broker_id: int) -> Iterator[Place]:
    """Yield the partitions that a broker is eligible to lead without being in their ISR."""
    return (place for place in image.partitions_of(broker_id) if broker_id in place[1].eligible_leaders)
