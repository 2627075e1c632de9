"""What may be written in a transaction.

Whoever writes in a transaction is checked against its coordinator when it first writes to a partition (KIP-890): a
batch that comes after the marker of its transaction would else open a new one that nobody ends. Clients of
transactions version 2 count on that first write to make the partition part of the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from moldau.broker.partition import Partition
from moldau.broker.transactions import add_partitions, verify_partitions
from moldau.machines.transactions import Identity
from moldau.machines.transactions import Partition as Name
from moldau.wire.errors import Error, WireError
from moldau.wire.records import MAGIC, TRANSACTIONAL, Batch
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

MAGIC_AT, ATTRIBUTES_AT = 16, 22
KNOWS_ABORTABLE, ADDS_PARTITIONS = 11, 12  # versions of Produce
VERIFICATION = "transaction.partition.verification.enable"
NO_COORDINATOR = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})


def is_transactional(records: memoryview | None) -> bool:
    """Whether a batch says that it is part of a transaction."""
    return (
        records is not None
        and len(records) > ATTRIBUTES_AT
        and records[ATTRIBUTES_AT] & TRANSACTIONAL != 0
        and records[MAGIC_AT] == MAGIC
    )


def barred_partitions(node: Node, request: Any, version: int) -> dict[Name, Refused]:
    """To which partitions a produce request may not write in its transaction, and why; Refused if to none."""
    parts = [(t, p) for t in request.topic_data for p in t.partition_data if is_transactional(p.records)]
    if not parts:
        return {}
    if request.transactional_id is None:
        raise Refused(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch needs a transactional id")
    batches: dict[Partition, Batch] = {}
    for topic, part in parts:
        partitions = node.replicas.by_id.get(topic.topic_id) if version >= 13 else node.replicas.by_name.get(topic.name)
        partition = partitions.get(part.index) if partitions else None
        try:
            if partition is not None:
                batches[partition] = Batch(part.records)
        except WireError:
            continue  # the log will say what is wrong with it
    batches = {partition: batch for partition, batch in batches.items() if batch.has_producer_id}
    producers = {Identity(batch.producer_id, batch.producer_epoch) for batch in batches.values()}
    if len(producers) > 1:
        raise Refused(Error.INVALID_PRODUCER_ID_MAPPING, "the batches have more than one producer id")
    if not producers:
        return {}
    (producer,), adds = producers, version >= ADDS_PARTITIONS
    barred = admit(node, request.transactional_id, producer, batches, adds, version >= KNOWS_ABORTABLE)
    if adds:
        barred |= out_of_order({p: batch for p, batch in batches.items() if (p.topic, p.index) not in barred})
    return barred


def out_of_order(batches: dict[Partition, Batch]) -> dict[Name, Refused]:
    """With an epoch for each transaction, the first batch that a partition sees of one has sequence 0."""
    found: dict[Name, Refused] = {}
    for partition, batch in batches.items():
        if batch.base_sequence:
            known = partition.log.producers.by_id.get(batch.producer_id)
            if known is None or not known.batches:
                text = f"Producer {batch.producer_id} begins with sequence {batch.base_sequence}, not 0."
                found[partition.topic, partition.index] = Refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
    return found


def admit(
    node: Node, name: str, producer: Identity, partitions: Iterable[Partition], adds: bool, knows_abortable: bool
) -> dict[Name, Refused]:
    """Why a producer may not write to some of these partitions in its transaction.

    `adds`: the client counts on its first write to make a partition part of the transaction. `knows_abortable`: it
    understands TRANSACTION_ABORTABLE.
    """
    refusals: dict[Name, Refused] = {}
    unknown: list[Name] = []
    for partition in partitions:
        where = partition.topic, partition.index
        try:
            if not has_open_transaction(partition, producer):
                unknown.append(where)
        except Refused as refused:
            refusals[where] = refused
    if not unknown or not (adds or node.settings[VERIFICATION]):
        return refusals
    if adds:
        errors = dict.fromkeys(unknown, add_partitions(node, name, producer, unknown, 2))
    else:
        errors = verify_partitions(node, name, producer, unknown)
    for where, error in errors.items():
        if error:
            refusals[where] = told_to_writer(error, adds, knows_abortable)
    return refusals


def has_open_transaction(partition: Partition, producer: Identity) -> bool:
    """Whether the partition has records of the producer's transaction already; Refused if the producer is fenced."""
    known = partition.log.producers.by_id.get(producer.producer_id)
    if known is None:
        return False
    if producer.epoch < known.epoch:
        text = f"Producer {producer.producer_id} has epoch {producer.epoch}, but epoch {known.epoch} was seen already."
        raise Refused(Error.INVALID_PRODUCER_EPOCH, text)
    return known.txn_first_offset >= 0 and known.epoch == producer.epoch


def told_to_writer(error: Error, adds: bool, knows_abortable: bool) -> Refused:
    """The coordinator's error in the words of Produce and TxnOffsetCommit. Old clients do not retry all they should."""
    if error is Error.PRODUCER_FENCED:
        error = Error.INVALID_PRODUCER_EPOCH
    elif error is Error.TRANSACTION_ABORTABLE and not knows_abortable:
        error = Error.INVALID_TXN_STATE
    elif error in NO_COORDINATOR or (error is Error.CONCURRENT_TRANSACTIONS and not adds):
        return Refused(Error.NOT_ENOUGH_REPLICAS, f"The transaction cannot be verified now: {error.message}")
    if error in (Error.INVALID_TXN_STATE, Error.TRANSACTION_ABORTABLE):
        return Refused(error, "The partition was not added to the transaction.")
    return Refused(error, error.message)
