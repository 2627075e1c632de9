"""Transactions that one process writes and another may end.

`TransactionalProducer` writes; `flush` returns a `Transaction`, a small value that can be sent elsewhere; `end` commits
or aborts it there. With transaction version 2 (KIP-890) a write adds its partition, and the end raises the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from moldau.client.client import Client
from moldau.client.errors import ClientError
from moldau.client.fetch import TopicPartition
from moldau.client.membership import Generation
from moldau.client.outcomes import check
from moldau.client.produce import ALL, Sender, Sent, Sequences
from moldau.client.targets import group, transaction
from moldau.wire import messages
from moldau.wire.compression import Buffer

SECOND = 2
# The last versions of requests that speak of transactions of the first kind.
PRODUCE_1, END_1, OFFSETS_1, ADD_1 = 11, 4, 4, 3


@dataclass(frozen=True, slots=True)
class Transaction:
    """Who is writing a transaction: all that is needed to end it. `empty` if nothing was written."""

    transactional_id: str
    producer_id: int
    epoch: int
    version: int = SECOND
    empty: bool = False


def end(client: Client, open_one: Transaction, commit: bool, *, timeout_s: float | None = None) -> Transaction:
    """Commit or abort, and return the producer's next transaction. Doing so twice changes nothing.

    PRODUCER_FENCED and INVALID_PRODUCER_EPOCH mean that another producer has taken over the id and so ended it.
    """
    if open_one.empty:
        return open_one
    second = open_one.version >= SECOND
    request = messages.EndTxnRequest(open_one.transactional_id, open_one.producer_id, open_one.epoch, commit)
    to = transaction(open_one.transactional_id)
    answer = check(client.send(request, to, timeout_s=timeout_s, at_most=None if second else END_1))
    after = replace(open_one, empty=True)
    return replace(after, producer_id=answer.producer_id, epoch=answer.producer_epoch) if second else after


class TransactionalProducer:
    """A producer of transactions under an id. A new one fences its predecessor and aborts its open transaction.

    One thread at a time. After a ClientError from `send` or `flush` only `abort` makes sense.
    """

    def __init__(self, client: Client, transactional_id: str, *, timeout_ms: int | None = None) -> None:
        self._client, self._id = client, transactional_id
        self._timeout_ms = client.config["transaction.timeout.ms"] if timeout_ms is None else timeout_ms
        self._sequences = Sequences()
        self._added: set[TopicPartition | str] = set()
        self._begin()

    def send(self, topic: str, partition: int, batch: Buffer) -> Sent:
        """Send a batch as part of the transaction, with its producer, epoch and sequence."""
        self.add([(topic, partition)])
        now = self.transaction
        mine = self._sequences.stamp(topic, partition, batch, now.producer_id, now.epoch, transactional=True)
        self.transaction = replace(now, empty=False)
        return self._sender.send(topic, partition, mine)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Announce the partitions that will be written to, in one request; version 2 does not need it."""
        new = [place for place in dict.fromkeys(partitions) if place not in self._added]
        if self.transaction.version >= SECOND or not new:
            return
        rows: dict[str, list[int]] = {}
        for topic, partition in new:
            rows.setdefault(topic, []).append(partition)
        topics = [messages.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic(*row) for row in rows.items()]
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.transaction.producer_id,
            v3_and_below_producer_epoch=self.transaction.epoch,
            v3_and_below_topics=topics,
        )
        self._announce(request, ADD_1)
        self._added.update(new)

    def send_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int],
        generation: Generation | None = None,
        instance_id: str | None = None,
    ) -> None:
        """Commit a group's offsets with the transaction; `generation` keeps a replaced member from doing so."""
        now, second = self.transaction, self.transaction.version >= SECOND
        if not second and group_id not in self._added:
            self._announce(messages.AddOffsetsToTxnRequest(self._id, now.producer_id, now.epoch, group_id))
            self._added.add(group_id)
        rows: dict[str, list[Any]] = {}
        for (topic, partition), offset in offsets.items():
            row = messages.TxnOffsetCommitRequest_TxnOffsetCommitRequestPartition(partition, offset, -1, "")
            rows.setdefault(topic, []).append(row)
        topics = [messages.TxnOffsetCommitRequest_TxnOffsetCommitRequestTopic(*row) for row in rows.items()]
        member = (generation.id, generation.member_id) if generation else (-1, "")
        producer = now.producer_id, now.epoch
        request = messages.TxnOffsetCommitRequest(self._id, group_id, *producer, *member, instance_id, topics)
        check(self._client.send(request, group(group_id), at_most=None if second else OFFSETS_1))
        self.transaction = replace(now, empty=False)

    def flush(self) -> Transaction:
        """Wait for all acknowledgements, and return what `end` needs, here or in another process."""
        self._sender.flush()
        return self.transaction

    def commit(self) -> None:
        self._end(self.flush(), True)

    def abort(self) -> None:
        """Undo the transaction, whatever state it is in."""
        failed = self._sender.failure is not None
        if not failed:
            try:
                self._sender.flush()  # a batch that came later than the end would open another transaction
            except ClientError:
                failed = True
        self._end(self.transaction, False)
        if failed:
            self._begin()

    def close(self) -> None:
        """Leave a transaction that is open to whoever ends it."""
        self._sender.close()

    def _begin(self) -> None:
        to = transaction(self._id)
        answer = check(self._client.send(messages.InitProducerIdRequest(self._id, self._timeout_ms), to))
        version = min(SECOND, self._client.features(to).get("transaction.version", 0))
        self.transaction = Transaction(self._id, answer.producer_id, answer.producer_epoch, version, True)
        self._sequences.clear()
        self._added.clear()
        limit = None if version >= SECOND else PRODUCE_1
        self._sender = Sender(self._client, acks=ALL, transactional_id=self._id, at_most=limit)

    def _end(self, open_one: Transaction, commit: bool) -> None:
        before = (open_one.producer_id, open_one.epoch)
        self.transaction = end(self._client, open_one, commit)
        self._added.clear()
        if (self.transaction.producer_id, self.transaction.epoch) != before:
            self._sequences.clear()

    def _announce(self, request: Any, at_most: int | None = None) -> None:
        """Announce what will be part of the transaction; wait for a topic that was created just now."""
        to, send = transaction(self._id), self._client.send
        deadline = self._client.deadline()
        self._client.until(deadline, lambda left: check(send(request, to, timeout_s=left.left, at_most=at_most)))
        self.transaction = replace(self.transaction, empty=False)
