"""Transactions on this node: their coordinators, and the markers that these write.

The machines (machines/transactions.py) decide; here a committed decision becomes markers in the partitions, and when
these are committed too, the transaction is complete. A crash in between does no harm: what was decided is in
`__transaction_state`, and its markers are written when the machine is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.coordinators import Coordinators
from moldau.broker.outbox import Lost, Peer
from moldau.broker.steps import start
from moldau.log.answers import Origin
from moldau.machines.effects import Effects, Promise, error_promise
from moldau.machines.transactions import Identity, Limits, Outcome, Partition, Transactions
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import end_txn_marker
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

TOPIC = "__transaction_state"
FEATURE = "transaction.version"
# Where a marker finds nothing to end: the topic is gone, or a newer epoch has ended what was open.
NOTHING_TO_END = frozenset({Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.INVALID_PRODUCER_EPOCH})


def transaction_coordinators(node: Node) -> Coordinators[Transactions]:
    """Return the coordinators of transactional ids, on the topic as Kafka creates it."""
    settings = node.settings
    limits = Limits(
        abort_interval_ms=settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"],
        expiration_ms=settings["transactional.id.expiration.ms"],
        expiration_interval_ms=settings["transaction.remove.expired.transaction.cleanup.interval.ms"],
    )

    def version() -> int:
        return node.cluster.features.get(FEATURE, 0)

    def configs() -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(node.settings["transaction.state.log.min.isr"]),
            "segment.bytes": str(node.settings["transaction.state.log.segment.bytes"]),
            "unclean.leader.election.enable": "false",
        }

    return Coordinators(
        node,
        TOPIC,
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        configs,
        lambda index: Transactions(limits, lambda: node.metadata.next_producer_id(), version),
        lambda index, machine: write_decided(node, index, machine),
    )


# Markers.


def write_decided(node: Node, index: int, machine: Transactions) -> None:
    """Write the markers of every transaction whose decision is committed.

    What cannot be written now (a disk has failed) is tried again with the machine's next tick. Called again by the
    runtime while it is at work, it leaves the rest to the first call.
    """
    if not machine.unmarked or machine.starts_marking:
        return
    machine.starts_marking = True
    try:
        undecided = {
            change.key.transactional_id
            for effects in node.transactions.uncommitted.get(index, ())
            for change in effects.changes
        }
        for name in [name for name in machine.unmarked if name not in machine.marking and name not in undecided]:
            start(node, write_markers(node, index, machine, name))
    finally:
        machine.starts_marking = False


async def write_markers(node: Node, index: int, machine: Transactions, name: str) -> None:
    """Write the markers of one transaction that are missing; when all are committed it is complete."""
    one, missing = machine.by_id[name], machine.unmarked[name]
    machine.marking.add(name)
    coordinator_epoch = node.transactions.home(index).placement.leader_epoch
    end = Marker(node, Identity(one.producer_id, one.epoch), one.commits, coordinator_epoch, one.client_version)
    outcomes = end.write_all(sorted(missing))
    missing.difference_update([where for where, error in outcomes if await error in NOTHING_TO_END])
    machine.marking.discard(name)
    if missing:
        if name not in machine.delayed:  # every request to the coordinator is another try
            log.warning("markers of a transaction cannot be written yet", id=name, partitions=len(missing))
            machine.delayed.add(name)
        return
    machine.delayed.discard(name)
    if node.transactions.machines.get(index) is machine:
        node.transactions.run(index, machine.marked(name, node.clock.wall_ms()))


class Marker:
    """The end of one producer's transaction, for as many partitions as it has."""

    def __init__(
        self, node: Node, producer: Identity, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> None:
        self.node = node
        self.producer = producer
        self.commit = commit
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version
        self.now_ms = node.clock.wall_ms()
        self.batch = memoryview(
            end_txn_marker(
                commit,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=self.now_ms,
            )
        )

    def write_all(self, partitions: Iterable[Partition]) -> list[tuple[Partition, Promise]]:
        """Write the marker to partitions wherever they are led; each promise is an Error, NONE when it is committed."""
        outcomes: list[tuple[Partition, Promise]] = []
        elsewhere: dict[Peer, list[tuple[Partition, Promise]]] = {}
        for where in partitions:
            leader = self.node.leader_of(*where)
            if leader in (self.node.id, None):  # of a partition that is gone the short way tells
                outcomes.append((where, self.write(*where)))
                continue
            promise, address = error_promise(), self.node.replication.address_of(leader, "markers")
            outcomes.append((where, promise))
            if address is None:
                promise.resolve(Error.NOT_LEADER_OR_FOLLOWER)
            else:
                elsewhere.setdefault(address, []).append((where, promise))
        for address, some in elsewhere.items():
            self.node.ask(address, self.request(dict(some)), partial(told_by_leader, dict(some)))
        return outcomes

    def request(self, partitions: Iterable[Partition]) -> Any:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        marker = m.WriteTxnMarkersRequest_WritableTxnMarker(
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            transaction_result=self.commit,
            topics=[m.WriteTxnMarkersRequest_WritableTxnMarkerTopic(*item) for item in topics.items()],
            coordinator_epoch=self.coordinator_epoch,
            transaction_version=self.transaction_version,
        )
        return m.WriteTxnMarkersRequest([marker])

    def write(self, topic: str, index: int) -> Promise:
        """Append the marker to a partition; the promise is an Error, NONE when the marker is committed.

        Offsets that were committed in the transaction count from now on.
        """
        node, promise = self.node, error_promise()
        try:
            partition = node.replicas.leader(topic, index)
            partition.append(self.batch, self.now_ms, Origin.COORDINATOR, self.transaction_version)
        except Refused as refused:
            promise.resolve(refused.error)
            return promise
        for coordinators in node.coordinators:
            if coordinators.topic == topic:
                coordinators.replay_marker(index, *self.producer, self.commit)
        node.replicas.commit(partition, promise.resolve)
        return promise


def told_by_leader(promises: Mapping[Partition, Promise], response: Any) -> None:
    """Take over what the leader of some partitions says about their markers; what it does not say is tried again.

    A leader that does not know a partition yet has not heard of its creation.
    """
    if not isinstance(response, Lost):
        for topic in (topic for one in response.markers for topic in one.topics):
            for row in topic.partitions:
                error = Error(row.error_code)
                if error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                    error = Error.NOT_LEADER_OR_FOLLOWER
                if (promise := promises.get((topic.name, row.partition_index))) is not None:
                    promise.resolve(error)
    for promise in promises.values():
        promise.resolve(Error.NOT_LEADER_OR_FOLLOWER)


# What the coordinator says. Each promise is kept when the answer is committed.

Command = Callable[[Transactions, Promise], Effects]


def init_producer_id(node: Node, name: str, timeout_ms: int, expected: Identity | None) -> Promise:
    """Ask for an Outcome."""
    now = node.clock.wall_ms()
    return ask(node, name, lambda it, promise: it.init_producer_id(promise, name, timeout_ms, expected, now), Outcome)


def add_partitions(
    node: Node, name: str, producer: Identity, partitions: Iterable[Partition], client_version: int
) -> Promise:
    """Make the partitions part of the producer's transaction; asks for an Error."""
    if (address := coordinator_elsewhere(node, name)) is not None:
        return start(node, ask_elsewhere(node, address, name, producer, partitions, verify_only=False))

    def command(machine: Transactions, promise: Promise) -> Effects:
        return machine.add_partitions(promise, name, producer, partitions, client_version, node.clock.wall_ms())

    return ask(node, name, command, lambda error: error)


def end_transaction(node: Node, name: str, producer: Identity, commit: bool, client_version: int) -> Promise:
    """Ask for an Outcome."""
    now = node.clock.wall_ms()
    return ask(node, name, lambda it, promise: it.end(promise, name, producer, commit, client_version, now), Outcome)


def verify_partitions(node: Node, name: str, producer: Identity, partitions: Iterable[Partition]) -> Promise:
    """Ask whether each partition is part of the producer's transaction: a dictionary of errors."""
    if (address := coordinator_elsewhere(node, name)) is not None:
        return start(node, ask_elsewhere(node, address, name, producer, partitions, verify_only=True))

    def command(machine: Transactions, promise: Promise) -> Effects:
        return Effects(answers=[(promise, machine.verify(name, producer, partitions))])

    return ask(node, name, command, lambda error: dict.fromkeys(partitions, error))


def coordinator_elsewhere(node: Node, name: str) -> Peer | None:
    """Return where the coordinator of a transactional id is, if it is not here."""
    leader = node.leader_of(TOPIC, node.transactions.partition_for(name))
    return None if leader in (node.id, None) else node.replication.address_of(leader)


async def ask_elsewhere(
    node: Node, address: Peer, name: str, producer: Identity, partitions: Iterable[Partition], *, verify_only: bool
) -> Any:
    """Ask another broker's coordinator (KIP-890): an error for each partition, or one for all where they are added."""
    topics: dict[str, list[int]] = {}
    for topic, index in (partitions := list(partitions)):
        topics.setdefault(topic, []).append(index)
    rows = [m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic(*item) for item in topics.items()]
    one = m.AddPartitionsToTxnRequest_AddPartitionsToTxnTransaction(
        name, producer.producer_id, producer.epoch, verify_only, rows
    )
    response = await node.call(address, m.AddPartitionsToTxnRequest([one]))
    errors = dict.fromkeys(partitions, Error.COORDINATOR_NOT_AVAILABLE)
    if not isinstance(response, Lost):
        for topic in (topic for result in response.results_by_transaction for topic in result.topic_results):
            for row in topic.results_by_partition:
                errors[topic.name, row.partition_index] = Error(row.partition_error_code)
    if verify_only:
        return errors
    wrong = [error for error in errors.values() if error not in (Error.NONE, Error.OPERATION_NOT_ATTEMPTED)]
    return wrong[0] if wrong else Error.NONE


def ask(node: Node, name: str, command: Command, refuse: Callable[[Error], Any]) -> Promise:
    """Put a command to the coordinator of a transactional id."""
    promise = Promise(refuse)
    try:
        index, machine = node.transactions.of(name)
        effects = command(machine, promise)
    except Refused as refused:  # there is no coordinator, or no producer id
        promise.resolve(refuse(refused.error))
        return promise
    return node.transactions.start(index, promise, effects)
