"""The share coordinator of this node: machines/share/state.py on the partitions of `__share_group_state`.

Leaders of share partitions and the group coordinator ask it with the messages of its APIs, be they on this node or on
another, and await the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.coordinators import Coordinators
from moldau.broker.share.combining import Combined, Home
from moldau.broker.steps import start
from moldau.log.log import Log
from moldau.machines.effects import Change, Effects
from moldau.machines.metadata.cluster import Topic
from moldau.machines.share.batches import read_batches
from moldau.machines.share.state import UNKNOWN, Key, ShareStates, Write, rows
from moldau.wire import messages as m
from moldau.wire.records import Batch
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

TOPIC = "__share_group_state"
TOMBSTONES_AT_ONCE, SNAPSHOTS_AT_ONCE = 1000, 10  # in a batch, which has its largest size

# What is asked about one share partition: changes to commit, and what to tell when they are.
Ask = Callable[[ShareStates, Key, Any, int], tuple[list[Change], Callable[[], Mapping[str, Any]]]]


def share_coordinators(node: Node) -> Coordinators[ShareStates]:
    def setting(name: str) -> object:
        return node.settings[name]

    def configs() -> Mapping[str, str]:
        """Never compacted and never too old: what is not needed any more is cut off by `prune`."""
        never = {"cleanup.policy": "delete", "retention.ms": "-1", "compression.type": "producer"}
        return never | {
            "min.insync.replicas": str(node.settings["share.coordinator.state.topic.min.isr"]),
            "segment.bytes": str(node.settings["share.coordinator.state.topic.segment.bytes"]),
        }

    def make(index: int) -> ShareStates:
        return ShareStates(setting, lambda: node.cluster, first_replayed(node.shares.readable(index).log))

    return Coordinators(
        node,
        TOPIC,
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        configs,
        make,
        codec=node.settings["share.coordinator.state.topic.compression.codec"],
    )


def first_replayed(log: Log) -> int:
    """Return the offset of the first record that a load replays: that of its batch, in which the log may begin."""
    span = log.read(log.start_offset, max_bytes=1).span
    return log.start_offset if span is None else Batch(memoryview(span.read())).base_offset


class ShareState:
    """What the share coordinator is asked: each request has its own response.

    Parts of this node ask the coordinator wherever it is; a request of another broker (`is_here`) is not sent on.
    """

    def __init__(self, node: Node, *, is_here: bool = False) -> None:
        self.node = node
        self.is_here = is_here
        self.combined = Combined(node)

    async def initialize(self, request: Any) -> Any:
        return await self.each(request, m.InitializeShareGroupStateResponse, "InitializeStateResult", initialize, True)

    async def read(self, request: Any) -> Any:
        return await self.each(request, m.ReadShareGroupStateResponse, "ReadStateResult", read)

    async def write(self, request: Any) -> Any:
        return await self.each(request, m.WriteShareGroupStateResponse, "WriteStateResult", write)

    async def delete(self, request: Any) -> Any:
        return await self.each(request, m.DeleteShareGroupStateResponse, "DeleteStateResult", delete, True)

    async def read_summary(self, request: Any) -> Any:
        return await self.each(request, m.ReadShareGroupStateSummaryResponse, "ReadStateSummaryResult", read_summary)

    async def each(self, request: Any, response: Any, result: str, ask: Ask, sets: bool = False) -> Any:
        """Ask about each partition; of one that is named twice the last answer counts. What says little gets none.

        Where state is set anew (`sets`), members start from it.
        """
        if not request.group_id or not request.topics or not all(topic.partitions for topic in request.topics):
            return response()
        row = getattr(m, f"{response.__name__}_PartitionResult")
        answers: dict[bytes, dict[int, Any]] = {}
        for topic in request.topics:
            for part in topic.partitions:
                key = Key(request.group_id, bytes(topic.topic_id), part.partition)
                classes = type(request), type(topic)
                answer = start(self.node, self.one(key, part, row, ask, sets, classes))
                answers.setdefault(key.topic_id, {})[part.partition] = answer
        topic_row = getattr(m, f"{response.__name__}_{result}")
        return response([topic_row(id_, [await part for part in parts.values()]) for id_, parts in answers.items()])

    async def one(self, key: Key, part: Any, row: Any, ask: Ask, sets: bool, classes: tuple[Any, Any]) -> Any:
        node = self.node
        try:
            await node.shares.create_topic()  # Kafka's brokers look for the coordinator before they ask it
            leader = node.leader_of(TOPIC, node.shares.partition_for(str(key)))
            if leader is not None and leader != node.id and not self.is_here:
                return await self.combined.ask(Home(leader, key.group), classes, key.topic_id, part)
            index, machine = node.shares.of(str(key))
            changes, tell = ask(machine, key, part, node.clock.wall_ms())
            committed = node.shares.commit(index, changes)
            answer = {} if committed.answer else tell()
            if error := await committed:
                raise Refused(error, error.message)
        except Refused as refused:
            return row(key.partition, refused.error, refused.message)
        if sets:
            node.share_partitions.forget(key)
        return row(key.partition, **answer)


def nothing() -> Mapping[str, Any]:
    return {}


def initialize(machine: ShareStates, key: Key, part: Any, now_ms: int) -> Any:
    return machine.initialize(key, part.state_epoch, part.start_offset, now_ms), nothing


def read(machine: ShareStates, key: Key, part: Any, now_ms: int) -> Any:
    def tell() -> Mapping[str, Any]:
        state = machine.states[key]
        batches = rows(m.ReadShareGroupStateResponse_StateBatch, state.batches)
        return {"state_epoch": state.state_epoch, "start_offset": state.start_offset, "state_batches": batches}

    return machine.read(key, part.leader_epoch, now_ms), tell


def write(machine: ShareStates, key: Key, part: Any, now_ms: int) -> Any:
    epochs = part.state_epoch, part.leader_epoch
    said = Write(*epochs, part.start_offset, part.delivery_complete_count, read_batches(part.state_batches))
    return machine.write(key, said, now_ms), nothing


def delete(machine: ShareStates, key: Key, part: Any, now_ms: int) -> Any:
    return machine.delete(key), nothing


def read_summary(machine: ShareStates, key: Key, part: Any, now_ms: int) -> Any:
    state = machine.summary(key)

    def tell() -> Mapping[str, Any]:
        if state is None:
            return {"start_offset": UNKNOWN}
        return {
            "state_epoch": state.state_epoch,
            "leader_epoch": state.leader_epoch,
            "start_offset": state.start_offset,
            "delivery_complete_count": state.complete_count,
        }

    return [], tell


# What the node does about it by itself.


def forget_shared(node: Node, topic: Topic) -> None:
    """Delete what groups shared of a topic that is gone."""
    for index, machine in list(node.shares.machines.items()):
        commit(node, index, machine.of_deleted_topic(topic.id), TOMBSTONES_AT_ONCE)


def refresh_cold(node: Node) -> None:
    """Share partitions that nobody uses must not hold up the pruning."""
    for index, machine in list(node.shares.machines.items()):
        commit(node, index, machine.refresh_cold(node.clock.wall_ms()), SNAPSHOTS_AT_ONCE)


def commit(node: Node, index: int, changes: list[Change], at_once: int) -> None:
    for at in range(0, len(changes), at_once):
        if index in node.shares.machines:
            node.shares.run(index, Effects(changes[at : at + at_once]))


def prune(node: Node) -> None:
    """Cut off what later snapshots have made worthless, once these are committed."""
    for index, machine in list(node.shares.machines.items()):
        try:
            home = node.shares.readable(index)
            if index not in node.shares.uncommitted and machine.needed_from() > home.log.start_offset:
                home.log.delete_records(machine.needed_from())
        except Refused as refused:
            log.error("share state cannot be pruned", partition=index, reason=refused.message)
