"""The topics of a Kafka cluster, for the server."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from moldau.admin import configs, groups, offsets, topics
from moldau.client import Client, ClientError, Error, Fetched, Fetcher, Record, build, records
from moldau.operators.record import Produced, Raw
from moldau.sql.errors import SqlError
from moldau.sql.server.topics import Positions, place
from moldau.topicstore import TOO_LARGE, append
from moldau.wire.records import Batch

log = logging.getLogger(__name__)
WATCH_S = 1.0  # for a fetch that waits, in addition to its wait
TRUSTED_S = 5.0  # how long the partitions of a topic are taken for known
GONE = frozenset({Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.INCONSISTENT_TOPIC_ID})


class BrokerTopics:
    """Topics as the server needs them; any thread may call."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._fetcher = Fetcher(client, isolation_level="read_committed")
        self._watching = threading.Lock()
        self._watcher = Fetcher(client, isolation_level="read_committed")
        self._known: dict[str, tuple[float, int, int]] = {}  # until when, partitions, replicas
        self._turn = 0

    def partitions(self, topic: str) -> int:
        return self._shape(topic)[0]

    def replicas(self, topic: str) -> int:
        return self._shape(topic)[1]

    def _shape(self, topic: str) -> tuple[int, int]:
        until, partitions, replicas = self._known.get(topic, (0.0, 0, 0))
        if time.monotonic() < until:
            return partitions, replicas
        try:
            found = topics.described(self._client, [topic])[0]
        except ClientError as error:
            if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return 0, 0
        shape = len(found.partitions), found.replication_factor
        self._known[topic] = (time.monotonic() + TRUSTED_S, *shape)
        return shape

    def names(self) -> list[str]:
        return [topic.name for topic in topics.listed(self._client, internal=False)]

    def readers(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for group in groups.listed(self._client, types=["classic", "consumer"], partial=True):
            if group.protocol != groups.CONSUMER:
                continue
            try:
                members = groups.described(self._client, group.id, group.type).members
            except ClientError as error:
                if error.error is not Error.GROUP_ID_NOT_FOUND:
                    raise
                continue  # it has gone since it was listed
            counts = Counter(name for member in members for name in {name for name, _ in member.partitions})
            for name, count in counts.items():
                found.setdefault(name, {})[group.id] = count
        return found

    def create(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        try:
            topics.create(self._client, [topics.NewTopic(topic, partitions, replicas, config)])
        except ClientError as error:
            if error.error is not Error.TOPIC_ALREADY_EXISTS:
                raise SqlError(f"Topic '{topic}' cannot be created: {error}") from None

    def delete(self, topic: str) -> None:
        self._known.pop(topic, None)
        try:
            topics.delete(self._client, [topic])
        except ClientError as error:
            if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise SqlError(f"Topic '{topic}' cannot be deleted: {error}") from None

    def append(self, written: Iterable[Produced]) -> None:
        batches: dict[tuple[str, int], list[Record]] = {}
        for record in written:
            count = self.partitions(record.topic)
            if count == 0:
                raise SqlError(f"Topic '{record.topic}' does not exist.")
            partition = place(record, count)
            if record.key is None and record.partition is None:
                self._turn += 1
                partition = self._turn % count
            row = Record(0, record.timestamp, record.key, record.value, record.headers)
            batches.setdefault((record.topic, partition), []).append(row)
        for (topic, partition), rows in batches.items():
            self._append(topic, partition, rows)

    def _append(self, topic: str, partition: int, rows: list[Record]) -> None:
        try:
            append(self._client, topic, partition, build(rows))
        except ClientError as error:
            if error.error not in TOO_LARGE:
                raise
            if len(rows) == 1:
                size = len(rows[0].key or b"") + len(rows[0].value or b"")
                raise SqlError(
                    f"A record of {size:,} bytes is too large for the topic '{topic}': its max.message.bytes is lower."
                ) from None
            middle = len(rows) // 2
            self._append(topic, partition, rows[:middle])
            self._append(topic, partition, rows[middle:])

    def read(self, topic: str, positions: Positions) -> list[Raw]:
        return self.read_closely(topic, positions)[0]

    def read_closely(self, topic: str, positions: Positions) -> tuple[list[Raw], Positions]:
        for partition in range(self.partitions(topic)):
            if partition not in positions:
                positions[partition] = self.starts(topic)[partition]
        if not positions:
            return [], {}
        asked = {(topic, partition): offset for partition, offset in positions.items()}
        with self._lock:
            fetched = self._fetcher.fetch(asked, max_wait_ms=0, min_bytes=0)
        found: list[Raw] = []
        gaps: Positions = {}
        for (_, partition), part in fetched.items():
            first = positions[partition]
            if part.error is Error.OFFSET_OUT_OF_RANGE:
                positions[partition] = self.starts(topic)[partition]
                continue
            if part.error in GONE:
                self._forget(topic)
                continue
            if (gap := first_gap(part.batches(), first)) is not None:
                gaps[partition] = gap
            rows = [
                Raw(topic, partition, r.offset, r.key, r.value, r.timestamp, r.headers)
                for batch in part.committed()
                for r in records(batch)
                if r.offset >= first
            ]
            if not rows:  # markers of transactions, or records that were aborted
                positions[partition] = part.next_offset(first)
            found += rows
        return found, gaps

    def wait(self, positions: Mapping[str, Positions], timeout_s: float) -> set[str]:
        asked = {(topic, partition): at for topic, parts in positions.items() for partition, at in parts.items()}
        began = time.monotonic()
        with self._watching:
            fetched = self._watched(asked, timeout_s)
            for (topic, _), part in fetched.items():
                if part.error in GONE:
                    self._watcher.topic_ids.pop(topic, None)
        found = {topic for (topic, _), part in fetched.items() if len(part.records) > 0}
        if not found:  # a fetch with a failed partition does not wait
            time.sleep(max(0.0, began + timeout_s - time.monotonic()))
        return found

    def _watched(self, asked: dict[tuple[str, int], int], timeout_s: float) -> dict[tuple[str, int], Fetched]:
        if not asked:
            return {}
        wait_ms = int(timeout_s * 1000)
        try:
            return self._watcher.fetch(
                asked, max_wait_ms=wait_ms, min_bytes=1, max_partition_bytes=1, timeout_s=WATCH_S
            )
        except ClientError as error:
            log.debug("No news: %s", error)  # whoever waits reads his topics again after a while, and fails with it
            return {}

    def uncompacted_ms(self, topic: str) -> int:
        (found,) = configs.described(
            self._client, configs.Resource(configs.Kind.TOPIC, topic), ["min.compaction.lag.ms"]
        )
        return int(found.value or 0)

    def _forget(self, topic: str) -> None:
        self._known.pop(topic, None)
        with self._lock:
            self._fetcher.topic_ids.pop(topic, None)

    def starts(self, topic: str) -> Positions:
        return self._bounds(topic, offsets.EARLIEST)

    def ends(self, topic: str) -> Positions:
        return self._bounds(topic, offsets.LATEST)

    def _bounds(self, topic: str, time_: int) -> Positions:
        wanted = {(topic, partition): time_ for partition in range(self.partitions(topic))}
        found = offsets.list_offsets(self._client, wanted, committed=True)
        return {partition: offset for (_, partition), offset in found.items()}


def first_gap(batches: Iterable[Batch], at: int) -> int | None:
    """Return the first offset from `at` on, or the start of its batch, that has no record any more.

    Markers and aborted transactions have their batches, so what is missing was compacted away.
    """
    for batch in batches:
        if batch.base_offset > at:
            return at
        if batch.count <= batch.last_offset_delta:
            return batch.base_offset
        at = batch.next_offset
    return None


class GroupCheckpoints:
    """How far queries have come, as committed offsets of their consumer groups.

    The metadata of a commit is the offset at which the query began, so that its state can be built again.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def load(self, application: str) -> tuple[dict[str, Positions], dict[str, Positions]]:
        """Return where the query began in each topic, and up to where its results were written."""
        origins: dict[str, Positions] = {}
        done: dict[str, Positions] = {}
        for (topic, partition), found in groups.committed(self._client, application).items():
            done.setdefault(topic, {})[partition] = found.offset
            begun = found.metadata or ""  # a query on Spark notes something else here
            origins.setdefault(topic, {})[partition] = int(begun) if begun.isdigit() else 0
        return origins, done

    def save(self, application: str, origins: Mapping[str, Positions], done: Mapping[str, Positions]) -> None:
        wanted = {(topic, part): offset for topic, parts in done.items() for part, offset in parts.items()}
        begun = {(topic, part): str(origins.get(topic, {}).get(part, 0)) for topic, part in wanted}
        groups.commit(self._client, application, wanted, metadata=begun)
