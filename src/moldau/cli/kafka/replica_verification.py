"""kafka-replica-verification: compares the checksums that replicas have stored, over and over until it is stopped.

`moldau cluster verify` compares the bytes themselves, once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.admin import TopicPartition, by_topic, offsets, topics
from moldau.admin.topics import TopicState
from moldau.cli.kafka.exceptions import words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, require
from moldau.cli.kafka.java_text import log
from moldau.cli.kafka.running import FAILED, Terse
from moldau.cli.kafka.topic_filter import TopicFilter
from moldau.client import Batch, Client, ClientError, Node
from moldau.client import messages as m
from moldau.client.connection import Connection
from moldau.wire.records import starts

LOGGER = "org.apache.kafka.tools.ReplicaVerificationTool"
DEBUGGING = -2  # the replica id of who reads without being a replica
MOST_BYTES = 50 << 20  # of one answer
PAUSE_S = 1.0  # after a round in which a broker did not answer
Row = Any


def run(options: Options) -> int:
    log("WARN", "This tool is deprecated and may be removed in a future major release.", LOGGER)
    require(options, "broker-list")
    wanted = TopicFilter(options["topics-include"])
    try:
        with Client({"bootstrap.servers": options["broker-list"], "client.id": "ReplicaVerification"}) as client:
            listed = [topic for topic in topics.listed(client) if wanted.allows(topic.name)]
            if not listed:
                why = "[topics-include] if specified, is either filtering out all topics or there is no topic."
                log("ERROR", f"No topics found. {why}", LOGGER)
                return FAILED
            watch = Watch(client, options, listed)
            print(f"{now()}: verification process is started", flush=True)
            while watch.round():
                pass
    except ClientError as error:
        raise Terse(words_of(error)) from None
    return FAILED


def now() -> str:
    moment = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    return f"{stamp},{int(moment * 1000) % 1000:03d}"


@dataclass(slots=True)
class Watch:
    """The replicas under watch: whom to ask for what, and up to where they agree."""

    client: Client
    options: Options
    listed: list[TopicState]
    replicas: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict[TopicPartition, tuple[int, ...]])
    positions: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    reported: float = field(default_factory=time.monotonic)
    went_on: bool = True  # whether the last round compared anything: then the next one need not wait for more

    def __post_init__(self) -> None:
        self.replicas = {(topic.name, part.index): part.replicas for topic in self.listed for part in topic.partitions}
        self.positions = offsets.one_time(self.client, self.replicas, self.options["time"])
        late = [place for place, offset in self.positions.items() if offset < 0]  # no record is that late
        self.positions |= offsets.one_time(self.client, late, offsets.LATEST) if late else {}

    def round(self) -> bool:
        """Ask all brokers once and compare; false if replicas have other offsets."""
        found, before = self.fetch(), dict(self.positions)
        lags: list[tuple[int, TopicPartition]] = []
        for place, brokers in self.replicas.items():
            rows = {broker: found[broker][place] for broker in brokers if place in found.get(broker, {})}
            if len(rows) == len(brokers) and not self.compare(place, rows):
                return False
            highest = max((row.high_watermark for row in rows.values()), default=-1)
            lags.append((highest - self.positions[place], place))
        self.went_on = before != self.positions
        if any(broker not in found for brokers in self.replicas.values() for broker in brokers):
            time.sleep(PAUSE_S)
        self.report(lags)
        return True

    def compare(self, place: TopicPartition, rows: Mapping[int, Row]) -> bool:
        """Compare batches one after the other, as long as all replicas have one below their high watermark."""
        name = f"{place[0]}-{place[1]}"
        columns = {broker: iter(committed(row)) for broker, row in rows.items()}
        while True:
            batches = {broker: next(column, None) for broker, column in columns.items()}
            (first, one), *others = batches.items()
            if one is None or any(batch is None for _, batch in others):
                return True
            for broker, batch in others:
                assert batch is not None
                if batch.last_offset != one.last_offset:
                    both = f"replica {first}'s offset {one.last_offset} doesn't match replica {broker}'s offset"
                    print(f"{now()}: partition {name}: {both} {batch.last_offset}", flush=True)
                    return False
                if batch.crc != one.crc:
                    sums = f"replica {first}'s checksum {one.crc}; replica {broker}'s checksum {batch.crc}"
                    where = f"partition {name} has unmatched checksum at offset {batch.last_offset}"
                    print(f"{now()}: {where}; {sums}", flush=True)
            self.positions[place] = one.next_offset

    def report(self, lags: list[tuple[int, TopicPartition]]) -> None:
        if (time.monotonic() - self.reported) * 1000 <= self.options["report-interval-ms"]:
            return
        lag, place = max(lags, key=lambda one: one[0])
        where = f"for partition {place[0]}-{place[1]} at offset {self.positions[place]}"
        print(f"{now()}: max lag is {lag} {where} among {len(lags)} partitions", flush=True)
        self.reported = time.monotonic()

    def fetch(self) -> dict[int, dict[TopicPartition, Row]]:
        """Ask each broker for all its replicas, all brokers at the same time; those that do not answer are missing."""
        asked: dict[int, Connection] = {}
        found: dict[int, dict[TopicPartition, Row]] = {}
        wait_ms = 0 if self.went_on else self.options["max-wait-ms"]
        deadline = self.client.deadline(None, wait_ms / 1000)
        for broker in sorted({broker for brokers in self.replicas.values() for broker in brokers}):
            mine = [place for place, brokers in self.replicas.items() if broker in brokers]
            try:
                asked[broker] = self.client.connection(Node(broker), deadline)
                asked[broker].send(self.request(mine, wait_ms), deadline)
            except ClientError:
                continue
        names = {topic.id: topic.name for topic in self.listed}
        for broker, connection in asked.items():
            try:
                if connection.in_flight:
                    answer = connection.receive(deadline)
                    rows = ((names.get(one.topic_id, one.topic or ""), one.partitions) for one in answer.responses)
                    found[broker] = {(name, row.partition_index): row for name, parts in rows for row in parts}
            except ClientError:
                continue
            finally:
                self.client.brokers.give_back(connection)
        return found

    def request(self, places: Iterable[TopicPartition], wait_ms: int) -> m.FetchRequest:
        ids = {topic.name: topic.id for topic in self.listed}
        rows = [
            m.FetchRequest_FetchTopic(
                name,
                ids[name],
                [
                    m.FetchRequest_FetchPartition(
                        number,
                        fetch_offset=self.positions[name, number],
                        partition_max_bytes=self.options["fetch-size"],
                    )
                    for number in numbers
                ],
            )
            for name, numbers in by_topic(places).items()
        ]
        state = m.FetchRequest_ReplicaState(DEBUGGING)
        return m.FetchRequest(
            replica_state=state, max_wait_ms=wait_ms, min_bytes=1, max_bytes=MOST_BYTES, session_epoch=-1, topics=rows
        )


def committed(row: Row) -> Iterable[Batch]:
    """Yield the complete batches below the high watermark."""
    data = memoryview(row.records or b"")
    for at in starts(data):
        batch = Batch(data, at)
        if batch.last_offset >= row.high_watermark:
            return
        yield batch


TOOL = Tool(
    "kafka-replica-verification",
    "Validate that all replicas for a set of topics have the same data.",
    (
        Flag("broker-list", "hostname:port,...,hostname:port", "Connect to these brokers."),
        Flag("fetch-size", "bytes", "Fetch at most this of a partition at a time.", int, 1 << 20),
        Flag("max-wait-ms", "ms", "Let a fetch wait this long.", int, 1000),
        Flag("topics-include", "Java regex (String)", "Choose topics by a regular expression.", default=".*"),
        Flag("time", "timestamp/-1(latest)/-2(earliest)", "Begin at this time.", int, -1),
        Flag("report-interval-ms", "ms", "Report this often.", int, 30_000),
    ),
    run,
)
