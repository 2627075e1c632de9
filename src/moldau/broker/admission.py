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
EPOCH_FOR_EACH = 2  # the transactions version of a client that lets its writes add partitions
VERIFICATION = "transaction.partition.verification.enable"
NO_COORDINATOR = frozenset({Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR})


def is_transactional(records: memoryview | None) -> bool:
    """Tell whether a batch says that it is part of a transaction."""
    return (
        records is not None
        and len(records) > ATTRIBUTES_AT
        and records[ATTRIBUTES_AT] & TRANSACTIONAL != 0
        and records[MAGIC_AT] == MAGIC
    )


def transactional_parts(request: Any) -> list[tuple[Any, Any]]:
    """Return the topics and partitions of a produce request whose batches are part of a transaction."""
    return [(t, p) for t in request.topic_data for p in t.partition_data if is_transactional(p.records)]


async def barred_partitions(
    node: Node, request: Any, version: int, parts: Iterable[tuple[Any, Any]]
) -> dict[Name, Refused]:
    """Return to which partitions a produce request may not write in its transaction, and why; Refused if to none."""
    if request.transactional_id is None:
        raise Refused(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch needs a transactional id")
    batches = batches_of(node, parts, version)
    producers = {Identity(batch.producer_id, batch.producer_epoch) for batch in batches.values()}
    if len(producers) > 1:
        raise Refused(Error.INVALID_PRODUCER_ID_MAPPING, "the batches have more than one producer id")
    if not producers:
        return {}
    (producer,), adds = producers, version >= ADDS_PARTITIONS
    first = {partition: batch.base_sequence for partition, batch in batches.items()}
    errors = await admit(node, request.transactional_id, producer, list(batches), adds, version >= KNOWS_ABORTABLE)
    barred = {where: refusal_for_producer(error, adds) for where, error in errors.items()}
    if adds:
        admitted = {p: sequence for p, sequence in first.items() if (p.topic, p.index) not in barred}
        barred |= out_of_order(admitted, producer.producer_id)
    return barred


def batches_of(node: Node, parts: Iterable[tuple[Any, Any]], version: int) -> dict[Partition, Batch]:
    """Return the producers' batches by partition. What is not a batch, or not for us, is refused later."""
    found: dict[Partition, Batch] = {}
    by_id = version >= 13
    for topic, part in parts:
        partitions = node.replicas.table(by_id).get(topic.topic_id if by_id else topic.name)
        partition = partitions.get(part.index) if partitions else None
        try:
            if partition is not None and (batch := Batch(part.records)).has_producer_id:
                found[partition] = batch
        except WireError:
            continue
    return found


def out_of_order(sequences: dict[Partition, int], producer_id: int) -> dict[Name, Refused]:
    """Refuse a first batch whose sequence is not 0: with an epoch for each transaction it must be."""
    found: dict[Name, Refused] = {}
    for partition, sequence in sequences.items():
        known = partition.log.producers.by_id.get(producer_id)
        if sequence and (known is None or not known.batches):
            text = f"Producer {producer_id} begins with sequence {sequence}, not 0."
            found[partition.topic, partition.index] = Refused(Error.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
    return found


def refusal_for_producer(error: Error, adds: bool) -> Refused:
    """Choose the error for a producer: old clients retry only after some, and get one of those."""
    if error in NO_COORDINATOR or (error is Error.CONCURRENT_TRANSACTIONS and not adds):
        return Refused(Error.NOT_ENOUGH_REPLICAS, f"The transaction cannot be verified now: {error.message}")
    if error in (Error.INVALID_TXN_STATE, Error.TRANSACTION_ABORTABLE):
        return Refused(error, "The partition was not added to the transaction.")
    return Refused(error, error.message)


async def admit(
    node: Node, name: str, producer: Identity, partitions: Iterable[Partition], adds: bool, knows_abortable: bool
) -> dict[Name, Error]:
    """Return why a producer may not write to some of these partitions in its transaction.

    `adds`: the client counts on its first write to make a partition part of the transaction. `knows_abortable`: it
    understands TRANSACTION_ABORTABLE.
    """
    errors: dict[Name, Error] = {}
    unseen: list[Name] = []
    for partition in partitions:
        where = partition.topic, partition.index
        try:
            if not has_open_transaction(partition, producer):
                unseen.append(where)
        except Refused as refused:
            errors[where] = refused.error
    if unseen and adds:
        error: Error = await add_partitions(node, name, producer, unseen, EPOCH_FOR_EACH)
        errors |= dict.fromkeys(unseen, error)
    elif unseen and node.settings[VERIFICATION]:
        errors |= await verify_partitions(node, name, producer, unseen)
    return {where: translate(error, knows_abortable) for where, error in errors.items() if error}


def has_open_transaction(partition: Partition, producer: Identity) -> bool:
    """Tell whether the partition has records of the producer's transaction; raises Refused if it is fenced."""
    known = partition.log.producers.by_id.get(producer.producer_id)
    if known is None:
        return False
    if producer.epoch < known.epoch:
        raise Refused(Error.INVALID_PRODUCER_EPOCH, "")
    return known.txn_first_offset >= 0 and known.epoch == producer.epoch


def translate(error: Error, knows_abortable: bool) -> Error:
    """Return the coordinator's error as producers know it."""
    if error is Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    return Error.INVALID_TXN_STATE if error is Error.TRANSACTION_ABORTABLE and not knows_abortable else error
