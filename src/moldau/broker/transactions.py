"""Transactions on this node: their coordinators, and the markers that these write.

The machines (machines/transactions.py) decide; here a decision becomes markers in the partitions. A crash in between
does no harm: what was decided is in `__transaction_state`, and its markers are written when the machine is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moldau.broker import logs
from moldau.broker.coordinators import Coordinators
from moldau.log.answers import Origin
from moldau.machines.effects import Promise
from moldau.machines.transactions import Identity, Limits, Outcome, Partition, Transactions
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
    """The coordinators of transactional ids, on the topic as Kafka creates it."""
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
    """Write the markers of every transaction that is decided, and complete those that have all of them.

    What cannot be written now (a disk has failed) is tried again with the machine's next tick. Called again by the
    runtime while it is at work, it leaves the rest to the first call.
    """
    if not machine.unmarked or machine.marking:
        return
    machine.marking = True
    try:
        coordinator_epoch = node.transactions.home(index).placement.leader_epoch
        for name in list(machine.unmarked):
            if write_markers(node, machine, name, coordinator_epoch):
                node.transactions.run(index, machine.marked(name, node.clock.wall_ms()))
    finally:
        machine.marking = False


def write_markers(node: Node, machine: Transactions, name: str, coordinator_epoch: int) -> bool:
    """Write the markers of one transaction that are missing; whether it has all of them then."""
    one, missing = machine.by_id[name], machine.unmarked[name]
    end = Marker(node, Identity(one.producer_id, one.epoch), one.commits, coordinator_epoch, one.client_version)
    missing.difference_update([where for where in sorted(missing) if end.write(*where) in NOTHING_TO_END])
    if missing:
        log.warning("markers of a transaction cannot be written yet", id=name, partitions=len(missing))
    return not missing


class Marker:
    """The end of one producer's transaction, for as many partitions as it has."""

    def __init__(
        self, node: Node, producer: Identity, commit: bool, coordinator_epoch: int, transaction_version: int
    ) -> None:
        self.node = node
        self.producer = producer
        self.commit = commit
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

    def write(self, topic: str, index: int) -> Error:
        """Append the marker to a partition; offsets that were committed in the transaction count from now on."""
        node = self.node
        try:
            partition = node.replicas.leader(topic, index)
            partition.append(self.batch, self.now_ms, Origin.COORDINATOR, self.transaction_version)
        except Refused as refused:
            return refused.error
        for coordinators in node.coordinators:
            if coordinators.topic == topic:
                coordinators.replay_marker(index, *self.producer, self.commit)
        node.signal(partition)
        return Error.NONE


# What the coordinator says.


def init_producer_id(node: Node, name: str, timeout_ms: int, expected: Identity | None) -> Outcome:
    def ask(machine: Transactions, promise: Promise) -> Any:
        return machine.init_producer_id(promise, name, timeout_ms, expected, node.clock.wall_ms())

    return asked(node, name, ask, Outcome)


def add_partitions(
    node: Node, name: str, producer: Identity, partitions: Iterable[Partition], client_version: int
) -> Error:
    """Make the partitions part of the producer's transaction."""

    def ask(machine: Transactions, promise: Promise) -> Any:
        return machine.add_partitions(promise, name, producer, partitions, client_version, node.clock.wall_ms())

    return asked(node, name, ask, lambda error: error)


def end_transaction(node: Node, name: str, producer: Identity, commit: bool, client_version: int) -> Outcome:
    def ask(machine: Transactions, promise: Promise) -> Any:
        return machine.end(promise, name, producer, commit, client_version, node.clock.wall_ms())

    return asked(node, name, ask, Outcome)


def verify_partitions(
    node: Node, name: str, producer: Identity, partitions: Iterable[Partition]
) -> dict[Partition, Error]:
    """Whether each partition is part of the producer's transaction."""
    try:
        return node.transactions.of(name)[1].verify(name, producer, partitions)
    except Refused as refused:
        return dict.fromkeys(partitions, refused.error)


def asked(node: Node, name: str, ask: Any, refuse: Any) -> Any:
    """The coordinator's answer, which is always there at once."""
    promise = Promise(refuse)
    try:
        index, machine = node.transactions.of(name)
        effects = ask(machine, promise)
    except Refused as refused:  # there is no coordinator, or no producer id
        return refuse(refused.error)
    return node.transactions.ask(index, promise, effects)
