"""Fetches record batches as they are stored, from the leaders of many partitions at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client.client import Client
from moldau.client.cluster import NO_ID, NOBODY, Cluster
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline
from moldau.client.errors import ClientError, error_of
from moldau.client.fetch_session import NO_SESSION, FetchSession, Key, Want
from moldau.client.targets import OF_LEADERS, UNKNOWN, Leader, Node
from moldau.wire import messages
from moldau.wire.errors import Error
from moldau.wire.records import Batch, ControlType, control_type, records, starts

TopicPartition = tuple[str, int]
SESSION_ERRORS = {
    Error.FETCH_SESSION_ID_NOT_FOUND,
    Error.INVALID_FETCH_SESSION_EPOCH,
    Error.FETCH_SESSION_TOPIC_ID_ERROR,
}
PASSING = OF_LEADERS | UNKNOWN
LAST_WITH_NAMES = 12  # after this version topics go by their ids
NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was fetched of a partition.

    `records` are batches as they are stored: the first may begin before the requested offset, the last may be cut.
    `aborted` are producer ids and first offsets of aborted transactions in them.
    """

    error: Error
    records: memoryview = NOTHING
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: tuple[tuple[int, int], ...] = ()

    def batches(self) -> Iterator[Batch]:
        """Return the complete batches."""
        return (Batch(self.records, at) for at in starts(self.records))

    def next_offset(self, asked: int) -> int:
        """Return the offset after the last complete batch, markers included; `asked` if there is none."""
        last = max(starts(self.records), default=-1)
        return asked if last < 0 else max(asked, Batch(self.records, last).next_offset)

    def committed(self) -> Iterator[Batch]:
        """Yield the complete batches, without markers and aborted transactions."""
        coming = sorted(self.aborted, key=lambda pair: pair[1], reverse=True)
        aborted: set[int] = set()
        for batch in self.batches():
            while coming and coming[-1][1] <= batch.last_offset:
                aborted.add(coming.pop()[0])
            if batch.is_control:
                if control_type(next(records(batch)).key) == ControlType.ABORT:
                    aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                yield batch


class Fetcher:
    """A fetcher from any number of leaders, for one thread at a time.

    A topic is known by its id from its first fetch on (or from `topic_ids`): one that was deleted and created again
    under the same name fails with INCONSISTENT_TOPIC_ID. With `sessions` a response has only partitions with news.
    """

    def __init__(
        self,
        client: Client,
        *,
        isolation_level: str | None = None,
        sessions: bool = False,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> None:
        level = isolation_level or client.config["isolation.level"]
        self._client = client
        self._committed = level == "read_committed"
        self._sessions: dict[int, FetchSession] | None = {} if sessions else None
        self._preferred: dict[TopicPartition, tuple[int, float]] = {}  # a replica nearby (KIP-392), and until when
        self.topic_ids = dict(topic_ids or {})

    def fetch(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        max_wait_ms: int | None = None,
        min_bytes: int | None = None,
        max_bytes: int | None = None,
        max_partition_bytes: int | None = None,
        timeout_s: float | None = None,
    ) -> dict[TopicPartition, Fetched]:
        """Ask every leader once, all at the same time. What is not given comes from the settings.

        A partition that failed has its error. If all partitions have passing errors the round is tried again, until
        ClientError when the time is up.
        """
        config = self._client.config
        request = messages.FetchRequest(
            max_wait_ms=config["fetch.wait.max.ms"] if max_wait_ms is None else max_wait_ms,
            min_bytes=config["fetch.min.bytes"] if min_bytes is None else min_bytes,
            max_bytes=config["fetch.max.bytes"] if max_bytes is None else max_bytes,
            isolation_level=int(self._committed),
            rack_id=config["client.rack"],
        )
        most = config["max.partition.fetch.bytes"] if max_partition_bytes is None else max_partition_bytes
        deadline = self._client.deadline(timeout_s, request.max_wait_ms / 1000)
        return self._client.until(deadline, lambda left: self._round(request, offsets, most, left))

    def _round(
        self, request: Any, offsets: Mapping[TopicPartition, int], most: int, deadline: Deadline
    ) -> dict[TopicPartition, Fetched]:
        cluster = self._client.learn((topic for topic, _ in offsets), deadline)
        found: dict[TopicPartition, Fetched] = {}
        plan: dict[int, dict[Key, Want]] = {}
        for partition, offset in offsets.items():
            placed = self._place(cluster, partition)
            if isinstance(placed, Error):
                found[partition] = Fetched(placed)
            else:
                node, topic_id, epoch = placed
                plan.setdefault(node, {})[Key(partition[0], topic_id, partition[1])] = Want(offset, epoch, most)
        found |= self._ask_all(request, plan, deadline)
        self._forget_moved(found)
        errors = [one.error for one in found.values()]
        if errors and all(error in PASSING for error in errors):
            partition = next(iter(found))
            sentence = f"Nothing can be fetched of {partition[0]}-{partition[1]}: {errors[0].message}"
            raise ClientError(errors[0], sentence, retriable=True)
        return found

    def _place(self, cluster: Cluster, partition: TopicPartition) -> tuple[int, bytes, int] | Error:
        """Return the broker to ask, the topic's id and the leader's epoch; or the error why none can be asked."""
        topic = cluster.topics.get(partition[0])
        if topic is None:
            return cluster.unknown.get(partition[0], Error.UNKNOWN_TOPIC_OR_PARTITION)
        if self.topic_ids.setdefault(topic.name, topic.id) != topic.id:
            return Error.INCONSISTENT_TOPIC_ID
        row = topic.partitions.get(partition[1])
        if row is None:
            return Error.UNKNOWN_TOPIC_OR_PARTITION
        node, until = self._preferred.get(partition, (row.leader, float("inf")))
        if until < time.monotonic() or node not in cluster.brokers:
            self._preferred.pop(partition, None)
            node = row.leader
        return Error.LEADER_NOT_AVAILABLE if node == NOBODY else (node, topic.id, row.leader_epoch)

    def _ask_all(
        self, request: Any, plan: Mapping[int, Mapping[Key, Want]], deadline: Deadline
    ) -> dict[TopicPartition, Fetched]:
        """Send all requests, then take all answers, so that brokers work at the same time."""
        found: dict[TopicPartition, Fetched] = {}
        asked: list[tuple[int, Connection]] = []
        limit = deadline.within(self._client.config.seconds("socket.timeout.ms") + request.max_wait_ms / 1000)
        for node, wanted in plan.items():
            try:
                asked.append((node, self._send(request, node, wanted, limit)))
            except ClientError as error:
                found |= self._fail(node, plan[node], error)
        for node, connection in asked:
            try:
                found |= self._read(node, plan[node], connection.receive(limit))
            except ClientError as error:
                found |= self._fail(node, plan[node], error)
            finally:
                self._client.brokers.give_back(connection)
        return found

    def _send(self, request: Any, node: int, wanted: Mapping[Key, Want], deadline: Deadline) -> Connection:
        said, forgotten = wanted, []
        request.session_id, request.session_epoch = 0, NO_SESSION
        if self._sessions is not None:
            session = self._sessions.setdefault(node, FetchSession())
            request.session_id, request.session_epoch = session.id, session.epoch
            said, forgotten = session.changes(wanted)
        request.topics = _topics(said)
        request.forgotten_topics_data = [
            messages.FetchRequest_ForgottenTopic(key.topic, key.topic_id, [key.partition]) for key in forgotten
        ]
        named = any(key.topic_id == NO_ID for key in wanted)
        connection = self._client.connection(Node(node), deadline)
        try:
            connection.send(request, deadline, at_most=LAST_WITH_NAMES if named else None)
        except ClientError:
            self._client.brokers.give_back(connection)
            raise
        return connection

    def _read(self, node: int, wanted: Mapping[Key, Want], answer: Any) -> dict[TopicPartition, Fetched]:
        error = error_of(answer.error_code)
        if error:
            if error not in SESSION_ERRORS:
                raise ClientError(error, f"Broker {node} refuses to be fetched from: {error.message}", answer=answer)
            self._session_of(node).begin_anew(unknown=error is Error.FETCH_SESSION_ID_NOT_FOUND)
            return {(key.topic, key.partition): Fetched(Error.NETWORK_EXCEPTION) for key in wanted}
        if self._sessions is not None:
            self._session_of(node).answered(answer.session_id)
        names = {key.topic_id: key.topic for key in wanted}
        rows = [
            (topic.topic or names.get(topic.topic_id, ""), row)
            for topic in answer.responses
            for row in topic.partitions
        ]
        return {(name, row.partition_index): self._parse(name, row) for name, row in rows if name}

    def _parse(self, topic: str, row: Any) -> Fetched:
        if row.preferred_read_replica != NOBODY:
            until = time.monotonic() + self._client.config.seconds("metadata.max.age.ms")
            self._preferred[topic, row.partition_index] = (row.preferred_read_replica, until)
        aborted = tuple((one.producer_id, one.first_offset) for one in row.aborted_transactions or ())
        return Fetched(
            error_of(row.error_code),
            NOTHING if row.records is None else row.records,
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
            aborted,
        )

    def _fail(self, node: int, wanted: Mapping[Key, Want], error: ClientError) -> dict[TopicPartition, Fetched]:
        if not error.retriable:
            raise error
        if self._sessions is not None:
            self._session_of(node).begin_anew(unknown=False)
        return {(key.topic, key.partition): Fetched(Error.NETWORK_EXCEPTION) for key in wanted}

    def _session_of(self, node: int) -> FetchSession:
        assert self._sessions is not None
        return self._sessions.setdefault(node, FetchSession())

    def _forget_moved(self, found: Mapping[TopicPartition, Fetched]) -> None:
        for partition, fetched in found.items():
            if fetched.error:
                self._preferred.pop(partition, None)
            if fetched.error in PASSING:
                self._client.forget(Leader(*partition))


def _topics(wanted: Mapping[Key, Want]) -> list[Any]:
    rows: dict[tuple[str, bytes], list[Any]] = {}
    for key, want in wanted.items():
        row = messages.FetchRequest_FetchPartition(
            partition=key.partition,
            current_leader_epoch=want.leader_epoch,
            fetch_offset=want.offset,
            partition_max_bytes=want.most_bytes,
        )
        rows.setdefault((key.topic, key.topic_id), []).append(row)
    return [messages.FetchRequest_FetchTopic(topic, id_, parts) for (topic, id_), parts in rows.items()]
