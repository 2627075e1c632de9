"""A turn of a consumer group's member: what follows from its heartbeat for it and for the group (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.machines.consumer.assignors import ASSIGNORS, NO_TARGET, Assignment, Partitions, Subscriber
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.members import Member, assignment_change, subscription_change, target_change
from moldau.machines.consumer.subscriptions import Resolved, Visible, anything, compiled, resolve
from moldau.machines.effects import Change, Promise
from moldau.machines.epochs.heartbeats import is_assignment_due, update_epoch, write_target
from moldau.machines.reconciling import Goal, is_reconciled, reconcile
from moldau.wire import messages as m

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

REGEX_PAUSE_MS = 10_000  # topics are matched again at most this often, however often they change
ASSIGNOR_CLASSES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


@dataclass(slots=True)
class Turn:
    """A heartbeat in the making: the group before it, the member that it replaces, if any, and the changes so far."""

    groups: Groups
    group: ConsumerGroup
    now_ms: int
    changes: list[Change] = field(default_factory=list[Change])
    answers: list[tuple[Promise, Any]] = field(default_factory=list[tuple[Promise, Any]])
    replaced: Member | None = None
    epoch: int = 0
    regexes: dict[str, Resolved] = field(default_factory=dict[str, Resolved])
    visible: Visible = anything

    def __post_init__(self) -> None:
        self.epoch, self.regexes = self.group.epoch, dict(self.group.regexes)

    def others(self, member: Member) -> list[Member]:
        """Return the members beside this one, after the turn."""
        gone = self.replaced.id if self.replaced else member.id
        return [other for other in self.group.members.values() if other.id not in (member.id, gone)]

    def names(self, member: Member) -> set[str]:
        """Return the topics that the members subscribe to after the turn."""
        group = self.group
        if group.patterns or member.regex:
            return {name for one in (*self.others(member), member) for name in self.topics_of(one)}
        leaving = [one for one in (group.members.get(member.id), self.replaced) if one is not None]
        stay = {name for name, count in group.names.items() if count > sum(name in one.topics for one in leaving)}
        return stay | member.topics

    def topics_of(self, member: Member) -> frozenset[str]:
        resolved = self.regexes.get(member.regex)
        return member.topics | resolved.topics if resolved else member.topics


def assignors(setting: Callable[[str], Any]) -> list[str]:
    """Return the assignors on offer, by their short names; the first is the default."""
    names: list[str] = setting("group.consumer.assignors")
    return [ASSIGNOR_CLASSES.get(name, name) for name in names]


def take_turn(turn: Turn, before: Member, wanted: Member, owned: Partitions | None) -> Member:
    """Subscription, epoch, target, assignment: each writes what it changes. Returns the member after it."""
    group = turn.group
    if wanted is not before and wanted != before:
        turn.changes.append(subscription_change(group.id, wanted))
    changed = wanted.topics != before.topics or wanted.regex != before.regex
    matched = update_regexes(turn, before, wanted)
    if update_epoch(turn, lambda: turn.names(wanted), force=changed or matched) and group.has_old_metadata:
        turn.changes.append(Change(m.ConsumerGroupPartitionMetadataKey(group.id), None))
    epoch, target = update_target(turn, wanted)
    return move(turn, wanted, epoch, target, owned, changed)


def update_regexes(turn: Turn, before: Member, wanted: Member) -> bool:
    """Match new patterns at once and all of them now and then; whether any stands for other topics than before."""
    group, cluster = turn.group, turn.groups.cluster()
    if not (group.patterns or before.regex or wanted.regex):
        return False
    patterns = set(group.patterns)
    if wanted.regex != before.regex and before.regex and group.patterns[before.regex] == 1:
        patterns.discard(before.regex)
        if turn.regexes.pop(before.regex, None):
            turn.changes.append(regex_change(group.id, before.regex, None))
    if wanted.regex:
        compiled(wanted.regex)
        patterns.add(wanted.regex)
    stale = patterns - turn.regexes.keys()
    if patterns and is_refresh_due(turn):
        stale, group.resolved = patterns, (cluster.topic_changes, turn.now_ms)
    matched = {pattern: resolve(pattern, cluster, turn.visible, turn.now_ms) for pattern in sorted(stale)}
    new = {
        pattern: resolved
        for pattern, resolved in matched.items()
        if pattern not in turn.regexes or turn.regexes[pattern].topics != resolved.topics
    }
    turn.regexes |= new
    turn.changes += [regex_change(group.id, pattern, resolved) for pattern, resolved in new.items()]
    return bool(new)


def is_refresh_due(turn: Turn) -> bool:
    """Return whether patterns are to be matched again: topics changed since, or the last time is long ago."""
    topic_changes, at_ms = turn.group.resolved
    age = turn.now_ms - max(at_ms, *(resolved.at_ms for resolved in turn.group.regexes.values()), 0)
    if age <= REGEX_PAUSE_MS:
        return False
    changed = topic_changes != turn.groups.cluster().topic_changes
    return changed or age > turn.groups.setting("group.consumer.regex.refresh.interval.ms")


def regex_change(group_id: str, pattern: str, resolved: Resolved | None) -> Change:
    value = resolved and m.ConsumerGroupRegularExpressionValue(
        sorted(resolved.topics), resolved.version, resolved.at_ms
    )
    return Change(m.ConsumerGroupRegularExpressionKey(group_id, pattern), value)


def update_target(turn: Turn, wanted: Member) -> tuple[int, Partitions]:
    """Return the target's epoch and the member's part of it, computed anew if it is behind and that is due."""
    group = turn.group
    if turn.epoch <= group.target_epoch or not is_assignment_due(turn):
        former = turn.replaced.id if turn.replaced else wanted.id
        return group.target_epoch, group.target.get(former, NO_TARGET)
    assignment = assign(turn, [*turn.others(wanted), wanted])
    write_target(turn, assignment, target_change)
    return turn.epoch, assignment[wanted.id]


def assign(turn: Turn, members: Iterable[Member]) -> Assignment:
    """Ask the assignor that most members want."""
    topics, targets = turn.groups.cluster().topics, turn.group.target
    ids: dict[frozenset[str], frozenset[bytes]] = {}
    counts: dict[bytes, int] = {}
    subscribers: list[Subscriber] = []
    votes: dict[str, int] = {}
    for member in members:
        names = turn.topics_of(member) if turn.regexes else member.topics
        if names not in ids:
            known = [topics[name] for name in names if name in topics]
            ids[names] = frozenset(topic.id for topic in known)
            counts.update((topic.id, len(topic.partitions)) for topic in known)
        former = turn.replaced.id if turn.replaced and member.instance_id == turn.replaced.instance_id else member.id
        subscribers.append(Subscriber(member.id, ids[names], targets.get(former, NO_TARGET), member.instance_id))
        if member.assignor is not None:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    offered = assignors(turn.groups.setting)
    chosen = max(votes, key=votes.__getitem__) if votes else offered[0]
    return ASSIGNORS[chosen if chosen in offered else offered[0]](subscribers, counts)


def move(turn: Turn, member: Member, epoch: int, target: Partitions, owned: Partitions | None, changed: bool) -> Member:
    """Return the member's next step."""
    if is_reconciled(member, epoch) and not changed:
        return member
    group, topics = turn.group, turn.groups.cluster().topics
    mine = {member.id, turn.replaced.id if turn.replaced else member.id}

    def is_taken(topic: bytes, index: int) -> bool:
        owner = group.owners.get(topic, {}).get(index)
        return owner is not None and owner not in mine

    subscribed = frozenset(topics[name].id for name in turn.topics_of(member) if name in topics)
    moved = reconcile(member, Goal(epoch, target, owned, is_taken, subscribed, changed))
    if moved != member:
        turn.changes.append(assignment_change(group.id, moved))
    return moved
