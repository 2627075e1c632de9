"""The metadata log of a cluster, read as an observer of its quorum does: from the active controller.

Brokers do not hand it out, neither Moldau's nor Kafka's, so the listener of the controllers must be reachable from
here, with the client's own security settings. With ACLs the caller needs ClusterAction on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.admin import clusters
from moldau.admin.mistakes import Mistake
from moldau.admin.voters import endpoint_of
from moldau.client import Batch, Client, ClientError, Error, records
from moldau.client import messages as m
from moldau.client.config import Address
from moldau.client.deadline import Deadline
from moldau.wire import codec
from moldau.wire.errors import WireError
from moldau.wire.metadata_records import TOPIC, TOPIC_ID, decode
from moldau.wire.records import ControlType, starts

ANSWER_S = 5.0
FETCH_BYTES = 1 << 20
NO_REPLICA = -1
NO_SESSION = -1


@dataclass(frozen=True, slots=True)
class Entry:
    """A committed record: a metadata record, or the LeaderChangeMessage with which an epoch of the quorum begins."""

    offset: int
    at_ms: int
    epoch: int
    record: Any


class MetadataLog:
    """A reader that remembers where it is. `most` is how many offsets before the end it begins."""

    def __init__(self, client: Client, most: int) -> None:
        self._client, self._most = client, most
        self._position: int | None = None
        self._cluster_id = ""

    def read(self) -> list[Entry]:
        """Read what was committed since the last time; Mistake with a sentence where the log cannot be had."""
        quorum = clusters.quorum(self._client)
        address = _address(quorum)
        end = quorum.high_watermark
        if self._position is None or self._position > end:
            self._position = max(0, end - self._most)
        found: list[Entry] = []
        while self._position < end:
            before = self._position
            found += self._fetch(address, quorum.leader_epoch, end)
            if self._position == before:
                break
        return found

    def _fetch(self, address: Address, epoch: int, end: int) -> list[Entry]:
        assert self._position is not None
        row = self._ask(address, epoch, self._position)
        if row.snapshot_id is not None and row.snapshot_id.end_offset > self._position:
            self._position = row.snapshot_id.end_offset  # the log begins after what a snapshot stands for
            return []
        if row.diverging_epoch is not None and row.diverging_epoch.end_offset >= 0:
            self._position = row.diverging_epoch.end_offset  # another cluster's log, or one that lost its end
            return []
        found: list[Entry] = []
        for batch in _batches(row.records or b""):
            if batch.next_offset > end:
                break
            if batch.base_offset >= self._position:
                found += _entries(batch)
            self._position = max(self._position, batch.next_offset)
        return found

    def _ask(self, address: Address, epoch: int, offset: int) -> Any:
        part = m.FetchRequest_FetchPartition(
            partition=0,
            current_leader_epoch=epoch,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            log_start_offset=-1,
            partition_max_bytes=FETCH_BYTES,
        )
        request = m.FetchRequest(
            cluster_id=self._known_cluster_id(),
            replica_state=m.FetchRequest_ReplicaState(NO_REPLICA, -1),
            max_bytes=FETCH_BYTES,
            session_epoch=NO_SESSION,
            topics=[m.FetchRequest_FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[part])],
        )
        deadline = Deadline(ANSWER_S)
        try:
            with self._client.brokers.connection(address, deadline) as connection:
                answer = connection.call(request, deadline)
        except ClientError as error:
            raise Mistake(f"The active controller at {address} cannot be reached from here: {error}") from None
        row = answer.responses[0].partitions[0] if not answer.error_code and answer.responses else None
        error = Error(answer.error_code or (row.error_code if row is not None else 0))
        if error or row is None:
            raise Mistake(f"The active controller at {address} does not hand out the metadata log: {error.message}")
        return row

    def _known_cluster_id(self) -> str:
        if not self._cluster_id:
            self._cluster_id = self._client.refresh().id or ""
        return self._cluster_id


def _address(quorum: clusters.Quorum) -> Address:
    known = quorum.endpoints.get(quorum.leader, ())
    if not known:
        raise Mistake("The brokers do not say where the active controller listens, so the metadata log cannot be read.")
    endpoint = endpoint_of(known[0])
    return Address(endpoint.host, endpoint.port)


def _batches(data: Any) -> Iterator[Batch]:
    view = memoryview(data)
    for at in starts(view):
        yield Batch(view, at)


def _entries(batch: Batch) -> Iterator[Entry]:
    """Yield the records of a batch; those of a newer release that are not known here are left out."""
    for one in records(batch):
        record = _control(one) if batch.is_control else _known(bytes(one.value or b""))
        if record is not None:
            yield Entry(one.offset, one.timestamp, batch.partition_leader_epoch, record)


def _known(value: bytes) -> Any:
    try:
        return decode(value)
    except WireError:
        return None


def _control(one: Any) -> Any:
    is_leader_change = int.from_bytes(bytes(one.key or b"")[2:4], "big") == ControlType.LEADER_CHANGE
    return codec.decode(m.LeaderChangeMessage, 0, bytes(one.value or b"")) if is_leader_change else None
