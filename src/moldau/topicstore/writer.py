"""Append to one partition as its only writer.

A writer has a producer id under a transactional id, so that each take-over raises the producer's epoch. It writes plain
batches with that id and epoch: the partition's leader refuses a batch of an older epoch as soon as the log has one of a
newer epoch. That fences a deposed writer at the one place that orders all writes, without a transaction for each write.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence

from moldau.client import Client, ClientError, Error, Leader, Record, build, check, transaction
from moldau.client import messages as m

log = logging.getLogger(__name__)

Row = tuple[bytes | None, bytes | None]  # key and value
NOBODY = (-1, -1)
ALL = -1
MOST_SEQUENCE = 0x7FFFFFFF
LAST_WITH_NAMES = 12  # of Produce: after this version topics go by their ids
RENEW_S = 3600.0  # less than transactional.id.expiration.ms and producer.id.expiration.ms of any broker
TRANSACTIONS = "__transaction_state"
TOO_LARGE = frozenset({Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE})
FENCED = frozenset({Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_ID_MAPPING})


class Writer:
    """One writer of a partition; one thread at a time. ClientError with a code of FENCED where another took over.

    `in_doubt` says that it is not known what became of the last append.
    """

    def __init__(self, client: Client, topic: str, transactional_id: str | None, partition: int = 0) -> None:
        self._client, self._topic, self._partition = client, topic, partition
        self._id = transactional_id
        self._producer = NOBODY  # id and epoch
        self._sequence = 0
        self._renewed = -math.inf
        self.in_doubt = False

    @property
    def is_certain(self) -> bool:
        """Whether the fate of all appends is known, and the epoch is recent."""
        return not self.in_doubt and time.monotonic() - self._renewed < RENEW_S

    def take_over(self, timeout_s: float) -> None:
        """Become the writer. Others are fenced by the first append that follows."""
        self._open(NOBODY, timeout_s)

    def renew(self, timeout_s: float) -> None:
        """Raise the own epoch, if nobody has taken over."""
        self._open(self._producer, timeout_s)

    def append(self, rows: Sequence[Row], timeout_s: float) -> list[Record]:
        """Append rows and return them as records of the log. They are one batch, unless the topic allows only smaller
        ones."""
        producer, epoch = self._producer
        deadline, now = self._client.deadline(timeout_s), int(time.time() * 1000)
        made = [Record(0, now, key, value) for key, value in rows]
        batch = build(made, producer_id=producer, producer_epoch=epoch, base_sequence=self._sequence)
        try:
            base, time_ms = append(self._client, self._topic, self._partition, batch, timeout_s)
        except ClientError as error:
            if error.error in TOO_LARGE and len(rows) > 1:
                first = self.append(rows[: len(rows) // 2], deadline.left)
                return first + self.append(rows[len(rows) // 2 :], deadline.left)
            self.in_doubt = error.error not in TOO_LARGE
            raise
        self._sequence = (self._sequence + len(rows)) & MOST_SEQUENCE
        stored = now if time_ms < 0 else time_ms
        return [Record(base + number, stored, *row) for number, row in enumerate(rows)]

    def _open(self, known: tuple[int, int], timeout_s: float) -> None:
        deadline = self._client.deadline(timeout_s)
        try:
            answer = self._init(known, deadline.left)
        except ClientError as error:
            if self._id is None or not self._lacks_transactions(error):
                raise
            log.warning("another writer of %s would not be fenced: %s", self._topic, error)
            self._id = None
            answer = self._init(NOBODY, timeout_s)
        self._producer = answer.producer_id, answer.producer_epoch
        self._sequence, self._renewed, self.in_doubt = 0, time.monotonic(), False

    def _init(self, known: tuple[int, int], timeout_s: float) -> m.InitProducerIdResponse:
        if self._id is None:
            return check(self._client.send(m.InitProducerIdRequest(None, 0), timeout_s=timeout_s))
        request = m.InitProducerIdRequest(self._id, self._client.config["transaction.timeout.ms"], *known)
        return check(self._client.send(request, transaction(self._id), timeout_s=timeout_s))

    def _lacks_transactions(self, error: ClientError) -> bool:
        """Say whether the cluster cannot fence: this user may not, or there are too few brokers for its topic."""
        if error.error is Error.COORDINATOR_NOT_AVAILABLE:
            return TRANSACTIONS not in self._client.refresh(None).topics
        return error.error is Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def append(
    client: Client, topic: str, partition: int, batch: bytearray, timeout_s: float | None = None
) -> tuple[int, int]:
    """Append a batch, wait for all replicas, and return its first offset and its time in the log (-1 for its own)."""
    data = m.ProduceRequest_PartitionProduceData(partition, batch)
    named = m.ProduceRequest_TopicProduceData(topic, partition_data=[data])
    request = m.ProduceRequest(None, ALL, client.config["request.timeout.ms"], [named])
    answer = check(client.send(request, Leader(topic, partition), timeout_s=timeout_s, at_most=LAST_WITH_NAMES))
    row = answer.responses[0].partition_responses[0]
    return row.base_offset, row.log_append_time_ms
