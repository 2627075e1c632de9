"""A turn of a streams group's member: what follows from its heartbeat for it and for the group (KIP-1071).

The topology is looked at whenever its topics have changed. No target is computed before a group that was empty had time
to gather members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines.effects import Change, Effects, Promise
from moldau.machines.epochs.group import config
from moldau.machines.epochs.hashing import metadata_hash
from moldau.machines.epochs.heartbeats import is_assignment_due, write_target
from moldau.machines.epochs.records import epoch_change
from moldau.machines.group import refuse
from moldau.machines.reconciling import Goal, is_reconciled, reconcile
from moldau.machines.replaying import existing
from moldau.machines.streams import topology as topologies
from moldau.machines.streams.assignor import Worker, assign
from moldau.machines.streams.configuring import NO_PARTS, Configured, Status, Told, configure
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.members import Member, assignment_change, member_change, target_change
from moldau.machines.streams.tasks import NO_TASKS, Tasks
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

STANDBYS = "num.standby.replicas"


@dataclass(slots=True)
class Turn:
    """A heartbeat in the making: the group before it, the topology that the member tells, if it does, the changes so
    far, and what the member is to be told."""

    groups: Groups
    group: StreamsGroup
    now_ms: int
    topology: Any = None
    changes: list[Change] = field(default_factory=list[Change])
    told: list[Told] = field(default_factory=list[Told])
    answers: list[tuple[Promise, Any]] = field(default_factory=list[tuple[Promise, Any]])
    epoch: int = 0

    def __post_init__(self) -> None:
        self.epoch = self.group.epoch

    def config(self, name: str) -> int:
        return config(self.groups, self.group.id, name, self.group.kind)


def take_turn(turn: Turn, before: Member, wanted: Member, owned: Tasks | None) -> Member:
    """Member, topology, epoch, target, assignment: each writes what it changes. Returns the member after it."""
    if wanted != before:
        turn.changes.append(member_change(turn.group.id, wanted))
    topology = update_topology(turn, wanted)
    configured, number = look_at_topics(turn, topology)
    if configured.is_ready:
        check_tasks(configured, owned or NO_TASKS)
    update_epoch(turn, configured, number, force=wanted != before)
    gather_first(turn)
    epoch, target = update_target(turn, configured, wanted)
    return move(turn, wanted, epoch, target, owned)


# Topology.


def update_topology(turn: Turn, member: Member) -> Any:
    """Return the group's topology, which is that of its first member. Members that have an older one are told so."""
    group, told = turn.group, turn.topology
    if group.topology is None:
        if told is None:  # the disk lost the record in a crash: the member has to join again, and then tells it
            refuse(Error.FENCED_MEMBER_EPOCH, "The group has no topology. The member must join again and provide it.")
        topology = topologies.record_of(told)
        turn.changes.append(Change(m.StreamsGroupTopologyKey(group.id), topology))
        return topology
    known = group.topology
    if told is not None and told.epoch >= known.epoch and not topologies.is_same(topologies.record_of(told), known):
        refuse(Error.INVALID_REQUEST, "Topology updates are not supported yet.")
    if member.topology_epoch < known.epoch:
        behind = f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
        turn.told.append((Status.STALE_TOPOLOGY, f"{behind} {known.epoch}."))
    return known


def look_at_topics(turn: Turn, topology: Any) -> tuple[Configured, int]:
    """Return the topology on the existing topics, and their hash; made anew when a topic has changed."""
    group, cluster = turn.group, turn.groups.cluster()
    if group.configured is not None and group.seen == (cluster.topic_changes, group.epoch):
        return group.configured, group.metadata_hash
    number = metadata_hash(topologies.required_topics(topology), cluster)
    if group.configured is None or number != group.metadata_hash:

        def count(name: str) -> int | None:
            topic = cluster.topics.get(name)
            return None if topic is None else len(topic.partitions)

        group.configured = configure(topology, count)
    return group.configured, number


def check_tasks(configured: Configured, owned: Tasks) -> None:
    for (_, subtopology), partitions in owned.items():
        part = configured.subtopologies.get(subtopology)
        if part is None:
            refuse(Error.INVALID_REQUEST, f"Subtopology {subtopology} does not exist in the topology.")
        wrong = [index for index in sorted(partitions) if not 0 <= index < part.tasks]
        if wrong:
            problem = f"Task {wrong[0]} for subtopology {subtopology} is invalid."
            refuse(Error.INVALID_REQUEST, f"{problem} Number of tasks for this subtopology: {part.tasks}")


# Epoch.


def update_epoch(turn: Turn, configured: Configured, number: int, *, force: bool) -> None:
    """A new epoch, if it must be or if topics, their fitness or the settings of the assignor are not what they were."""
    group = turn.group
    validated = configured.epoch if configured.is_ready else -1
    configs = {STANDBYS: str(turn.config(STANDBYS))}
    before = group.metadata_hash, group.validated_epoch, group.assignment_configs
    if force or before != (number, validated, configs):
        turn.epoch = group.epoch + 1
        turn.changes.append(epoch_change(group.kind, group.id, turn.epoch, number, validated, config_rows(configs)))
    group.seen = turn.groups.cluster().topic_changes, turn.epoch


def config_rows(configs: Mapping[str, str]) -> list[Any]:
    return [m.StreamsGroupMetadataValue_LastAssignmentConfig(*pair) for pair in sorted(configs.items())]


# Target.


def gather_first(turn: Turn) -> None:
    """Let a group that was empty wait before it assigns tasks: members start one after the other."""
    delay = turn.config("initial.rebalance.delay.ms")
    name = gathering(turn.group)
    if turn.group.is_empty() and delay > 0 and not turn.groups.timers.is_set(name):
        action = partial(assign_gathered, turn.groups, turn.group.id)
        turn.groups.timers.set(name, turn.now_ms + delay, action)


def gathering(group: StreamsGroup) -> tuple[str, str]:
    return "gathering", group.id


def assign_gathered(groups: Groups, group_id: str, now_ms: int) -> Effects:
    """Assign tasks: the time for others to join is over."""
    group = existing(groups, group_id, StreamsGroup)
    if group is None or group.is_empty() or group.configured is None:
        return Effects()
    turn = Turn(groups, group, now_ms)
    update_target(turn, group.configured, None)
    return Effects(turn.changes)


def update_target(turn: Turn, configured: Configured, wanted: Member | None) -> tuple[int, Tasks]:
    """Return the target's epoch and the member's part of it, computed anew if it is behind and that is due."""
    group = turn.group
    if turn.groups.timers.is_set(gathering(group)):
        why = "Assignment delayed due to the configured initial rebalance delay."
        turn.told.append((Status.ASSIGNMENT_DELAYED, why))
        return group.target_epoch, NO_TASKS
    last = group.target.get(wanted.id, NO_TASKS) if wanted else NO_TASKS
    if turn.epoch <= group.target_epoch:
        return group.target_epoch, last
    if not is_assignment_due(turn):
        why = "Assignment delayed due to the configured assignment interval."
        turn.told.append((Status.ASSIGNMENT_DELAYED, why))
        return group.target_epoch, last
    members = group.members if wanted is None else {**group.members, wanted.id: wanted}
    target = compute_target(turn, configured, members.values())
    return turn.epoch, target[wanted.id] if wanted else NO_TASKS


def compute_target(turn: Turn, configured: Configured, members: Iterable[Member]) -> dict[str, Tasks]:
    """Ask the assignor; while the topology cannot run nobody has anything to do."""
    group = turn.group
    workers = [
        Worker(member.id, member.process_id, group.target.get(member.id, NO_TASKS))
        for member in sorted(members, key=lambda member: member.id)
    ]
    runs = configured.subtopologies if configured.is_ready else NO_PARTS
    target = assign(workers, runs, turn.config(STANDBYS))
    write_target(turn, target, target_change)
    return target


def move(turn: Turn, member: Member, epoch: int, target: Tasks, owned: Tasks | None) -> Member:
    """Return the member's next step."""
    if is_reconciled(member, epoch):
        return member
    is_taken = partial(turn.group.is_taken, member.process_id)
    moved = reconcile(member, Goal(epoch, target, owned, is_taken, stride=1))
    if moved != member:
        turn.changes.append(assignment_change(turn.group.id, moved))
    return moved
