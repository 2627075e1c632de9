"""Sends record batches to the leaders of their partitions, several in flight, in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from moldau.client.client import Client
from moldau.client.cluster import NO_ID
from moldau.client.config import Address
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline
from moldau.client.errors import ClientError, error_of
from moldau.client.outcomes import check
from moldau.client.targets import OF_LEADERS, UNKNOWN, Leader
from moldau.wire import messages
from moldau.wire.compression import Buffer
from moldau.wire.errors import Error
from moldau.wire.records import Batch, identify

ALL = -1
MOST_SEQUENCE = 0x7FFFFFFF
PASSING = OF_LEADERS | UNKNOWN
LAST_WITH_NAMES = 12  # after this version topics go by their ids


@dataclass(slots=True, eq=False)
class Sent:
    """A batch in flight. `base_offset` is None until it is acknowledged, -1 if it is unknown."""

    topic: str
    partition: int
    batch: Buffer
    base_offset: int | None = None
    log_append_time_ms: int = -1


class Sequences:
    """The next sequence of a producer in each partition."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: dict[tuple[str, int], int] = {}

    def stamp(
        self, topic: str, partition: int, batch: Buffer, producer_id: int, epoch: int, *, transactional: bool
    ) -> bytearray:
        """Return a copy of the batch with producer and sequence."""
        mine, place = bytearray(batch), (topic, partition)
        sequence = self._next.get(place, 0)
        self._next[place] = sequence + Batch(mine).last_offset_delta + 1 & MOST_SEQUENCE
        identify(memoryview(mine), producer_id, epoch, sequence, transactional=transactional)
        return mine

    def clear(self) -> None:
        self._next.clear()


@dataclass(slots=True, eq=False)
class Lane:
    """A connection to a leader, and its batches that have no answer yet."""

    connection: Connection
    sent: deque[Sent] = field(default_factory=deque)


class Sender:
    """A sender of batches, for one thread at a time.

    Up to `max.in.flight` batches are in flight to a broker. If one fails for a while, later ones wait and all are sent
    again. With acks -1 a batch without a producer gets an id and a sequence, so that none is written twice or out of
    order; with other acks that can happen. A batch that is refused for good raises ClientError from the current call
    and from all later ones.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int | None = None,
        transactional_id: str | None = None,
        at_most: int | None = None,
    ) -> None:
        self._client = client
        self._acks = client.config["acks"] if acks is None else acks
        self._transactional_id = transactional_id
        self._at_most = at_most
        self._producer: tuple[int, int] | None = None  # id and epoch, once they are needed
        self._sequences = Sequences()
        self._lanes: dict[Address, Lane] = {}
        self._again: list[Sent] = []  # in the order in which they were sent
        # A broker takes any sequence from a producer that it does not know. So the first batch of a partition travels
        # alone: one behind it must not arrive first.
        self._known: set[tuple[str, int]] = set()
        self._first: set[tuple[str, int]] = set()
        self._lane_of: dict[tuple[str, int], Lane] = {}
        self.failure: ClientError | None = None

    def send(self, topic: str, partition: int, batch: Buffer) -> Sent:
        """Send a batch."""
        self._check()
        if self._again:
            self.flush()
        sent = Sent(topic, partition, self._identify(topic, partition, batch))
        deadline = self._client.deadline()
        lane = self._client.until(deadline, lambda left: self._lane(Leader(topic, partition), left))
        place = (topic, partition)
        self._make_way(place, lane)
        if self._again:  # then it must not overtake
            self._again.append(sent)
            self.flush()
            return sent
        try:
            waits = lane.connection.send(self._request(sent), self._limit(), at_most=self._version(topic))
        except ClientError as error:
            self._lose(lane, error)
            self._again.append(sent)
        else:
            if not waits:
                sent.base_offset = -1
                return sent
            lane.sent.append(sent)
            if place not in self._known:
                self._first.add(place)
        return sent

    def _make_way(self, place: tuple[str, int], lane: Lane) -> None:
        """Take answers until a batch for the partition may be sent on its lane."""
        before = self._lane_of.get(place, lane)
        while before is not lane and before.sent:  # the leader has moved
            self._receive(before)
        self._lane_of[place] = lane
        while place in self._first or lane.connection.in_flight >= self._client.config["max.in.flight"]:
            self._receive(lane)

    def flush(self) -> None:
        """Wait until everything that was sent is acknowledged."""
        for lane in list(self._lanes.values()):
            while lane.sent:
                self._receive(lane)
        while self._again:
            self._repeat(self._again[0])
            del self._again[0]
        self._check()

    def close(self) -> None:
        """Give the connections back; batches without an answer get none."""
        for lane in self._lanes.values():
            if lane.sent:
                lane.connection.close()
            self._client.brokers.give_back(lane.connection)
        self._lanes.clear()

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _identify(self, topic: str, partition: int, batch: Buffer) -> Buffer:
        """Return the batch with a producer, if it has none and brokers shall detect duplicates."""
        if self._acks != ALL or Batch(batch).has_producer_id:
            return batch
        if self._producer is None:
            answer = check(self._client.send(messages.InitProducerIdRequest(None, 0)))
            self._producer = answer.producer_id, answer.producer_epoch
        return self._sequences.stamp(topic, partition, batch, *self._producer, transactional=False)

    def _lane(self, leader: Leader, deadline: Deadline) -> Lane:
        address = self._client.locate(leader, deadline)
        lane = self._lanes.get(address)
        if lane is None or (not lane.sent and not lane.connection.is_fresh()):
            if lane is not None:
                lane.connection.close()
                self._client.brokers.give_back(lane.connection)
            try:
                lane = self._lanes[address] = Lane(self._client.brokers.take(address, deadline))
            except ClientError:
                self._client.forget(leader)
                raise
        return lane

    def _receive(self, lane: Lane) -> None:
        """Take the answer to the first batch of a lane; keep it to be sent again if it failed for a while."""
        try:
            answer = lane.connection.receive(self._limit())
        except ClientError as error:
            self._lose(lane, error)
            return
        sent = lane.sent.popleft()
        self._first.discard((sent.topic, sent.partition))
        row = answer.responses[0].partition_responses[0]
        error = error_of(row.error_code)
        follows = any((one.topic, one.partition) == (sent.topic, sent.partition) for one in self._again)
        if error in PASSING or (follows and error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER):
            self._client.forget(Leader(sent.topic, sent.partition))
            self._again.append(sent)
        else:
            self._settle(sent, row, error)

    def _lose(self, lane: Lane, error: ClientError) -> None:
        """Give up a connection; its batches are sent again."""
        self._lanes = {address: one for address, one in self._lanes.items() if one is not lane}
        self._client.brokers.give_back(lane.connection)
        if not error.retriable:
            self.failure = error
            raise error
        for sent in lane.sent:
            self._first.discard((sent.topic, sent.partition))
            self._client.forget(Leader(sent.topic, sent.partition))
        self._again += lane.sent
        lane.sent.clear()

    def _repeat(self, sent: Sent) -> None:
        """Send a batch again, alone, until it has an answer."""
        deadline = self._client.deadline(None, self._client.config.seconds("request.timeout.ms"))
        self._client.until(deadline, lambda left: self._repeat_once(sent, left))

    def _repeat_once(self, sent: Sent, deadline: Deadline) -> None:
        self._client.learn([sent.topic], deadline)  # the topic may have another id by now
        request, leader = self._request(sent), Leader(sent.topic, sent.partition)
        limit, version = deadline.left, self._version(sent.topic)
        answer = self._client.send(request, leader, timeout_s=limit, at_most=version, retry=False)
        if answer is None:
            sent.base_offset = -1
            return
        row = answer.responses[0].partition_responses[0]
        error = error_of(row.error_code)
        if error in PASSING:
            raise ClientError(error, f"{leader} refuses a batch for now: {error.message}", retriable=True)
        self._settle(sent, row, error)

    def _settle(self, sent: Sent, row: Any, error: Error) -> None:
        if error and error is not Error.DUPLICATE_SEQUENCE_NUMBER:  # that one was written when it went out before
            words = (row.error_message or error.message).rstrip(".")
            sentence = f"A batch for {sent.topic}-{sent.partition} was refused: {words} ({error.name})."
            self.failure = ClientError(error, sentence, retriable=False)
            raise self.failure
        self._known.add((sent.topic, sent.partition))
        sent.base_offset, sent.log_append_time_ms = row.base_offset, row.log_append_time_ms

    def _request(self, sent: Sent) -> Any:
        known = self._client.cluster.topics.get(sent.topic)
        data = messages.ProduceRequest_PartitionProduceData(sent.partition, sent.batch)
        topic = messages.ProduceRequest_TopicProduceData(sent.topic, known.id if known else NO_ID, [data])
        timeout_ms = self._client.config["request.timeout.ms"]
        return messages.ProduceRequest(self._transactional_id, self._acks, timeout_ms, [topic])

    def _version(self, topic: str) -> int | None:
        """Return the limit of the version: a topic without a known id must go by its name."""
        known = self._client.cluster.topics.get(topic)
        limits = [self._at_most, LAST_WITH_NAMES if known is None or known.id == NO_ID else None]
        return min((limit for limit in limits if limit is not None), default=None)

    def _limit(self) -> Deadline:
        config = self._client.config
        return Deadline(config.seconds("socket.timeout.ms") + config.seconds("request.timeout.ms"))


def produce(client: Client, topic: str, partition: int, batch: Buffer, *, acks: int | None = None) -> Sent:
    """Send one batch and wait for its offset."""
    sender = Sender(client, acks=acks)
    try:
        sent = sender.send(topic, partition, batch)
        sender.flush()
        return sent
    finally:
        sender.close()
