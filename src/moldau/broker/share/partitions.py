"""The share partitions that this node leads: machines/share/partition.py over logs and the share coordinator.

One is made of what was persisted when a member first fetches, and let go when the group has no session left, when its
state was set anew by an administrator, or when the share coordinator says that another leader has taken over. What
becomes of records is persisted before anybody is told: one change of a share partition after the other, each decided
on the state that the one before left. Who waits for records watches the `Key`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau import settings as table
from moldau.broker.partition import Partition
from moldau.broker.share.sessions import ShareSession
from moldau.broker.steps import Turns, start
from moldau.log import lookup
from moldau.log.log import Isolation, Log
from moldau.machines.effects import Promise
from moldau.machines.metadata.cluster import GROUP
from moldau.machines.share.batches import StateBatch, read_batches
from moldau.machines.share.partition import Limits, SharePartition, state_batches
from moldau.machines.share.runs import Run
from moldau.machines.share.state import UNKNOWN, Key
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

# What the share coordinator's refusals mean for a member.
TOLD = {
    Error.COORDINATOR_LOAD_IN_PROGRESS: Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR: Error.COORDINATOR_NOT_AVAILABLE,
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_LEADER_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
}
MOVING = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE)
AGAIN_MS = 100.0
OUTDATED = (Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_TOPIC_OR_PARTITION)


@dataclass(slots=True, eq=False)
class Shared:
    """A share partition, and the epochs under which it was read."""

    key: Key
    home: Partition
    machine: SharePartition
    state_epoch: int
    leader_epoch: int
    turns: Turns = field(default_factory=Turns)


class SharePartitions:
    """Those that members use now."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.known: dict[Key, Shared] = {}
        self.loading: dict[Key, Promise] = {}
        self.settings: dict[str, dict[str, Any]] = {}  # of groups, until any setting changes
        self.deadline_ms = inf  # no lock ends before

    # What groups are allowed.

    def setting(self, group: str, name: str) -> Any:
        if group not in self.settings:
            self.settings[group] = table.group_settings(self.node.settings, self.node.cluster.config(GROUP, group))
        return self.settings[group][name]

    def limits(self, group: str) -> Limits:
        return Limits(
            self.setting(group, "share.delivery.count.limit"),
            self.setting(group, "share.record.lock.duration.ms"),
            self.setting(group, "share.partition.max.record.locks"),
            self.setting(group, "share.renew.acknowledge.enable"),
        )

    def isolation(self, group: str) -> Isolation:
        committed = self.setting(group, "share.isolation.level") == "read_committed"
        return Isolation.COMMITTED if committed else Isolation.HIGH_WATERMARK

    # Made and let go.

    def find(self, key: Key) -> Shared | None:
        """Return a share partition that is in use, unless the partition has another leader epoch by now."""
        shared = self.known.get(key)
        if shared is not None and shared.home.placement.leader_epoch != shared.leader_epoch:
            self.forget(key)
            return None
        return shared

    def open(self, key: Key, home: Partition) -> Shared:
        """Find a share partition, or load it from the share coordinator; raises Refused, also while it is loaded."""
        shared = self.find(key) or self.loaded(key, home)
        if not shared.turns.busy:
            shared.machine.cut(home.log.start_offset)
        return shared

    def loaded(self, key: Key, home: Partition) -> Shared:
        """Return a share partition whose load has ended, or begin one; who waits for it is signalled by its key."""
        if key not in self.loading:
            self.loading[key] = start(self.node, self.load(key, home))
            self.loading[key].then = lambda: self.node.signal(key)
        outcome = self.loading[key].answer
        if outcome is None:
            raise Refused(Error.COORDINATOR_LOAD_IN_PROGRESS, "The state of the share partition is being read.")
        del self.loading[key]
        if isinstance(outcome, Refused):
            raise outcome
        self.known[key] = outcome
        return self.find(key) or self.loaded(key, home)  # what was read for an earlier epoch may be old

    async def load(self, key: Key, home: Partition) -> Shared | Refused:
        leader_epoch = home.placement.leader_epoch
        try:
            state = await self.read(key, leader_epoch)
            offset, batches = state.start_offset, read_batches(state.state_batches)
            if offset == UNKNOWN:
                offset = self.initial_offset(key.group, home.log)
                await self.write(key, state.state_epoch, leader_epoch, offset, 0, ())
        except Refused as refused:
            return refused
        machine = SharePartition(offset, batches, lambda: self.limits(key.group))
        return Shared(key, home, machine, state.state_epoch, leader_epoch)

    def initial_offset(self, group: str, log: Log) -> int:
        """Return where a group begins that has never read the partition. It is stored: a crash must not move it."""
        strategy: str = self.setting(group, "share.auto.offset.reset")
        if strategy == "earliest":
            return log.start_offset
        if strategy != "latest":
            since = self.node.clock.wall_ms() - table.duration_ms(strategy.partition(":")[2])
            found = log.offset_for_time(max(0, since), Isolation.HIGH_WATERMARK).offset
            if found >= 0:
                return found
        return log.offset_for_time(lookup.LATEST, Isolation.HIGH_WATERMARK).offset

    def forget(self, key: Key) -> None:
        """Drop a share partition and its locks: what is persisted counts again, or somebody else leads."""
        self.loading.pop(key, None)
        if self.known.pop(key, None) is not None:
            self.node.signal(key)

    def forget_topic(self, topic_id: bytes) -> None:
        for key in [key for key in self.known if key.topic_id == topic_id]:
            self.forget(key)

    def end_session(self, session: ShareSession) -> None:
        """Release what a member holds that has left or was lost."""
        self.node.share_sessions.close(session)
        for topic_id, index in session.parts:
            shared = self.find(Key(session.group, topic_id, index))
            if shared is not None:
                start(self.node, self.release(shared, session.member))

    async def release(self, shared: Shared, member: str) -> None:
        try:
            await self.commit(shared, lambda: shared.machine.release(member))
        except Refused as refused:
            log.warning("records are not released yet", partition=str(shared.key), reason=refused.message)

    def end_connection(self, connection_id: int) -> None:
        """End the sessions of a connection that is gone; groups without sessions are forgotten."""
        for session in self.node.share_sessions.of_connection(connection_id):
            self.end_session(session)
        for key in [key for key in self.known if not self.node.share_sessions.is_anybody_in(key.group)]:
            self.forget(key)

    # Deliveries that end.

    async def commit(self, shared: Shared, decide: Callable[[], list[Run]]) -> None:
        """Persist what `decide` says, carry it out, and wake who waits for records.

        If it raises Refused nothing has changed.
        """
        try:
            async with shared.turns:
                changes = decide()
                if changes:
                    await self.persist(shared, changes)
                    self.carry_out(shared, changes)
        finally:
            self.note_deadline(shared)

    async def persist(self, shared: Shared, changes: list[Run]) -> None:
        batches, machine = state_batches(changes), shared.machine
        if batches:
            epochs = shared.state_epoch, shared.leader_epoch
            try:
                await self.write(shared.key, *epochs, machine.start, machine.done_count(changes), batches)
            except Refused as refused:
                if refused.error in OUTDATED:
                    self.forget(shared.key)
                raise

    def carry_out(self, shared: Shared, changes: list[Run]) -> None:
        shared.machine.apply(changes)
        self.node.signal(shared.key)

    def note_deadline(self, shared: Shared) -> None:
        """Note when the next lock ends."""
        self.deadline_ms = min(self.deadline_ms, shared.machine.deadline_ms)

    def tick(self, now_ms: float) -> None:
        """End the locks whose time is up. One that is being changed notes its deadline when that is done."""
        if now_ms < self.deadline_ms:
            return
        idle = [one for one in self.known.values() if not one.turns.busy]
        for shared in [one for one in idle if one.machine.deadline_ms <= now_ms]:
            start(self.node, self.expire(shared, now_ms))
        idle = [one for one in self.known.values() if not one.turns.busy]
        self.deadline_ms = min((one.machine.deadline_ms for one in idle), default=inf)

    async def expire(self, shared: Shared, now_ms: float) -> None:
        """End locks. It is worth no more than a message if that cannot be persisted."""
        async with shared.turns:
            changes = shared.machine.expire(now_ms)
            try:
                await self.persist(shared, changes)
            except Refused as refused:
                log.warning("the end of a lock is not persisted", partition=str(shared.key), reason=refused.message)
            self.carry_out(shared, changes)
        self.note_deadline(shared)

    # The share coordinator.

    async def read(self, key: Key, leader_epoch: int) -> Any:
        part = m.ReadShareGroupStateRequest_PartitionData(key.partition, leader_epoch)
        topic = m.ReadShareGroupStateRequest_ReadStateData(key.topic_id, [part])
        return await self.ask(self.node.share_state.read, m.ReadShareGroupStateRequest(key.group, [topic]))

    async def write(
        self, key: Key, state_epoch: int, leader_epoch: int, start: int, done: int, batches: Iterable[StateBatch]
    ) -> None:
        rows = [m.WriteShareGroupStateRequest_StateBatch(*batch) for batch in batches]
        fields = key.partition, state_epoch, leader_epoch, start, done, rows
        part = m.WriteShareGroupStateRequest_PartitionData(*fields)
        topic = m.WriteShareGroupStateRequest_WriteStateData(key.topic_id, [part])
        await self.ask(self.node.share_state.write, m.WriteShareGroupStateRequest(key.group, [topic]))

    async def ask(self, state: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
        """Ask the share coordinator about one partition; in a cluster again and again while it moves elsewhere."""
        node = self.node
        # Tries are counted, not timed: a node that stops lets all pauses end at once.
        tries = int(node.settings["share.coordinator.write.timeout.ms"] / AGAIN_MS) if node.membership else 0
        while True:
            try:
                return only_row(await state(request))
            except Refused as refused:
                if refused.error not in MOVING or tries <= 0:
                    raise
            tries -= 1
            await node.after(AGAIN_MS)


def only_row(response: Any) -> Any:
    """Return the only row of an answer; raises Refused if it has an error."""
    if not response.results:  # a group without a name has no state
        raise Refused(Error.UNKNOWN_SERVER_ERROR, "The share coordinator does not know the group.")
    row = response.results[0].partitions[0]
    if row.error_code:
        raise Refused(TOLD.get(Error(row.error_code), Error.UNKNOWN_SERVER_ERROR), row.error_message)
    return row
