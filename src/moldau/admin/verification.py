"""Verifies that all replicas of partitions hold the same committed records, by reading each replica.

Followers answer clients from version 11 of Fetch on (KIP-392), up to the high watermark that they know, so nothing but
the right to read is needed. Each partition is read in pieces, so memory does not grow with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.admin import configs, offsets
from moldau.admin.comparison import Difference, Piece, compare, piece
from moldau.admin.topics import PartitionState, TopicState
from moldau.client import Client, ClientError, Error, Node
from moldau.client import messages as m
from moldau.client.connection import Connection
from moldau.client.errors import error_of

PIECE_BYTES = 4 << 20  # of one replica at a time
WAIT_MS = 500
PATIENCE_S = 10.0  # how long a replica may not go on before it is left out
PAUSE_S = 0.1
MOST = 100  # differences of a partition that are kept
NAMES_UNTIL = 12  # the last version of Fetch in which topics go by name
DEBUGGING = -2  # a replica id with which followers answer ListOffsets
NO_ID = bytes(16)


@dataclass(slots=True)
class Partition:
    """A partition to verify, from `start` to `end`: where it is, and what came of it."""

    topic: str
    topic_id: bytes
    index: int
    brokers: list[int]
    start: int
    end: int
    compacted: bool = False
    size: int = 0  # bytes of one replica that were compared
    differences: list[Difference] = field(default_factory=list[Difference])
    left_out: dict[int, str] = field(default_factory=dict[int, str])  # brokers that were not compared, and why
    silent: dict[int, str] = field(default_factory=dict[int, str])  # brokers that could not be asked last time, and why
    at: int = -1

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def is_same(self) -> bool:
        return not self.differences and not self.left_out


def plan(client: Client, topics: Sequence[TopicState], since_ms: int | None = None) -> list[Partition]:
    """List the partitions with several replicas, with their committed offsets, from a time on if one is given."""
    several = {
        (topic.name, part.index): (topic, part)
        for topic in topics
        for part in topic.partitions
        if len(part.replicas) > 1
    }
    led = [place for place, (_, part) in several.items() if part.leader >= 0]
    ends = offsets.one_time(client, led, offsets.LATEST)
    firsts = offsets.one_time(client, led, offsets.EARLIEST if since_ms is None else since_ms)
    policies = _compacted(client, {topic.name for topic, _ in several.values()})
    return [
        _partition(*several[place], firsts.get(place, 0), ends.get(place, 0), place[0] in policies)
        for place in sorted(several)
    ]


def _partition(topic: TopicState, part: PartitionState, first: int, end: int, compacted: bool) -> Partition:
    start = end if first < 0 else min(first, end)  # no record is that late
    made = Partition(topic.name, topic.id, part.index, list(part.replicas), start, end, compacted)
    if part.leader < 0:
        made.left_out = dict.fromkeys(part.replicas, "the partition has no leader")
        made.brokers = []
    return made


def _compacted(client: Client, names: Iterable[str]) -> set[str]:
    resources = [configs.Resource(configs.Kind.TOPIC, name) for name in sorted(names)]
    found = configs.describe_all(client, resources, ["cleanup.policy"]) if resources else {}
    return {one.name for one, entries in found.items() if any("compact" in (entry.value or "") for entry in entries)}


def verify(client: Client, one: Partition, gone: dict[int, str]) -> Iterator[int]:
    """Compare the replicas of a partition piece by piece; yields how many offsets were passed each time.

    `gone` are brokers that could not be reached, for all partitions: they are not waited for again.
    """
    one.at = one.start
    for broker in [broker for broker in one.brokers if broker in gone]:
        _leave_out(one, broker, gone[broker])
    patience = time.monotonic() + PATIENCE_S
    while one.at < one.end and len(one.brokers) > 1 and len(one.differences) < MOST:
        pieces = _read(client, one)
        ready = {broker: found for broker, found in pieces.items() if found.reach > one.at}
        if len(ready) < len(one.brokers):
            if time.monotonic() < patience:
                client.brokers.sleep(PAUSE_S)
                continue
            for broker in [broker for broker in one.brokers if broker not in ready]:
                gone |= {broker: one.silent[broker]} if broker in one.silent else {}
                _leave_out(one, broker, one.silent.get(broker, f"its records end at {one.at}, before {one.end}"))
            if len(ready) < 2:
                break
        result = compare(ready, one.at, compacted=one.compacted)
        one.size += result.size
        one.differences += _lasting(client, one, result.differences)
        before, one.at, patience = one.at, result.end, time.monotonic() + PATIENCE_S
        yield one.at - before
    yield one.end - max(one.at, one.start)


def _leave_out(one: Partition, broker: int, why: str) -> None:
    one.brokers.remove(broker)
    one.left_out.setdefault(broker, why)


def _read(client: Client, one: Partition) -> dict[int, Piece]:
    """Read a piece of each replica, all at the same time; those that fail for good are left out."""
    rows = _fetch(client, one)
    found: dict[int, Piece] = {}
    one.silent = {broker: str(row) for broker, row in rows.items() if isinstance(row, ClientError)}
    for broker, row in rows.items():
        if isinstance(row, ClientError):
            if not row.retriable:
                _leave_out(one, broker, str(row))
        elif row.error_code == Error.OFFSET_OUT_OF_RANGE:
            one.at = max(one.at, min(one.end, _starts(client, one).get(broker, one.at)))
            return {}
        elif not row.error_code:
            data = memoryview(b"") if row.records is None else memoryview(row.records)
            found[broker] = piece(data, one.at, one.end, row.high_watermark)
        elif not error_of(row.error_code).retriable:
            _leave_out(one, broker, error_of(row.error_code).message)
    return found


def _fetch(client: Client, one: Partition) -> dict[int, Any]:
    """Ask every replica for the same offset; return its row of the answer, or the error why there is none."""
    row = m.FetchRequest_FetchPartition(one.index, fetch_offset=one.at, partition_max_bytes=PIECE_BYTES)
    topic = m.FetchRequest_FetchTopic(one.topic, one.topic_id, [row])
    request = m.FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=PIECE_BYTES, session_epoch=-1, topics=[topic])
    deadline = client.deadline(PATIENCE_S)
    found: dict[int, Any] = {}
    asked: dict[int, Connection] = {}
    for broker in one.brokers:
        try:
            connection = client.connection(Node(broker), deadline)
        except ClientError as error:
            found[broker] = error
            continue
        asked[broker] = connection
        try:
            connection.send(request, deadline, at_most=NAMES_UNTIL if one.topic_id == NO_ID else None)
        except ClientError as error:
            found[broker] = error
    for broker, connection in asked.items():
        try:
            if broker not in found:
                answer = connection.receive(deadline)
                if answer.error_code:
                    error = error_of(answer.error_code)
                    found[broker] = ClientError(error, f"Broker {broker} refuses to be read from: {error.message}")
                else:
                    found[broker] = answer.responses[0].partitions[0]
        except ClientError as error:
            found[broker] = error
        finally:
            client.brokers.give_back(connection)
    return found


def _lasting(client: Client, one: Partition, differences: list[Difference]) -> list[Difference]:
    """Return the differences at offsets that no replica has deleted by now."""
    if not differences:
        return []
    start = max(_starts(client, one).values(), default=one.start)
    return [found for found in differences if found.last >= start][: MOST - len(one.differences)]


def _starts(client: Client, one: Partition) -> Mapping[int, int]:
    """Return where the log begins on each replica that tells."""
    row = m.ListOffsetsRequest_ListOffsetsPartition(one.index, -1, offsets.EARLIEST)
    topic = m.ListOffsetsRequest_ListOffsetsTopic(one.topic, [row])
    found: dict[int, int] = {}
    for broker in one.brokers:
        try:
            answer = client.send(m.ListOffsetsRequest(DEBUGGING, 0, [topic]), Node(broker), retry=False)
        except ClientError:
            continue
        part = answer.topics[0].partitions[0]
        if not part.error_code:
            found[broker] = part.offset
    return found
