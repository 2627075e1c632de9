"""The metadata log of one node: every change is appended, synced, replayed, and only then seen by anybody.

The log is `__cluster_metadata-0` in Kafka's format, with its control records, so that Kafka's tools read it and a
quorum can take it over. A directory that Apache Kafka wrote is understood: its snapshot first, then its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.broker import logs
from moldau.broker.authorizer import unheeded
from moldau.broker.features import SUPPORTED
from moldau.log.answers import Origin
from moldau.log.checkpoints import Damaged
from moldau.log.config import LogConfig
from moldau.log.log import Log
from moldau.log.retention import retain
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.cluster import BROKER, Cluster, Endpoint
from moldau.machines.metadata.snapshot import image_records
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.records import Batch, ControlType, Record, batches, build, control_record, records

if TYPE_CHECKING:
    from moldau.broker.node import Node

logger = logs.get(__name__)

TOPIC = metadata_records.TOPIC
TOPIC_ID = bytes(15) + b"\x01"
CHUNK = 1 << 20
SNAPSHOT = ".checkpoint"
MIN_INSYNC = "min.insync.replicas"
SNAPSHOT_BATCH = 1000
PRODUCER_ID_BLOCK = 1000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"delete"}), retention_ms=-1, max_message_bytes=2**31 - 1, segment_ms=2**63 - 1
)


@dataclass(slots=True)
class ProducerIds:
    """The block of producer ids that this broker may give out."""

    next: int = 0
    end: int = 0


class Metadata:
    """The image, the log behind it, and the only way to change either."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cluster = Cluster()
        self.cluster_id = ""
        self.epoch = 0
        self.producer_ids = ProducerIds()
        self.snapshot_offset = 0
        self.bytes_since_snapshot = 0
        self.log: Log

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def load(self, log: Log) -> None:
        """Rebuild the image from the newest snapshot and the log after it."""
        self.log = log
        log.advance_high_watermark(log.end_offset)
        offset = self.load_snapshot()
        while offset < log.end_offset:
            offset = self.replay_from(offset)
        for sentence in unheeded(self.cluster, self.node.authorizer):
            logger.warning(sentence)

    def load_snapshot(self) -> int:
        """Replay the newest snapshot, and say from where the log goes on."""
        newest = (self.snapshots() or [""])[-1]
        if not newest:
            return self.log.start_offset
        for batch in batches(memoryview(self.node.disk.read(f"{self.log.path}/{newest}"))):
            self.replay(batch)
        self.snapshot_offset = int(newest.partition("-")[0])
        if self.snapshot_offset < self.log.start_offset:
            raise Damaged(f"{self.log.path} begins at offset {self.log.start_offset}, after its newest snapshot")
        return self.snapshot_offset

    def write_snapshot(self) -> None:
        """Write the image as a snapshot that stands for the log so far, and let go of the log before it."""
        now, end = self.node.clock.wall_ms(), self.log.end_offset
        values = [Record(0, now, None, metadata_records.encode(record)) for record in image_records(self.cluster)]
        header = control_record(ControlType.SNAPSHOT_HEADER, codec.encode(m.SnapshotHeaderRecord(0, now), 0), now)
        footer = control_record(ControlType.SNAPSHOT_FOOTER, codec.encode(m.SnapshotFooterRecord(0), 0), now)
        parts, offset = [build([header], control=True, partition_leader_epoch=self.epoch)], 1
        for first in range(0, len(values), SNAPSHOT_BATCH):
            some = values[first : first + SNAPSHOT_BATCH]
            parts.append(build(some, base_offset=offset, partition_leader_epoch=self.epoch))
            offset += len(some)
        parts.append(build([footer], base_offset=offset, control=True, partition_leader_epoch=self.epoch))
        name = f"{end:020d}-{self.epoch:010d}{SNAPSHOT}"
        self.node.disk.write_atomic(f"{self.log.path}/{name}", b"".join(parts))
        self.snapshot_offset, self.bytes_since_snapshot = end, 0
        self.log.roll(now)
        self.log.delete_records(end)
        retain(self.log, now)
        for old in self.snapshots():
            if old != name:
                self.node.disk.remove(f"{self.log.path}/{old}")

    def snapshots(self) -> list[str]:
        """Names of the snapshots that are there, the newest last."""
        return sorted(name for name in self.node.disk.listdir(self.log.path) if name.endswith(SNAPSHOT))

    def replay_from(self, offset: int) -> int:
        """Replay one chunk of the log; returns where the next begins."""
        span = self.log.read(offset, CHUNK).span
        if span is None:
            raise Damaged(f"{self.log.path} has no records at offset {offset}, and ends at {self.log.end_offset}")
        view, position = memoryview(span.read()), 0
        while len(view) - position > 12:
            batch = Batch(view, position)
            if not batch.is_whole:
                break
            self.replay(batch)
            offset, position = batch.next_offset, position + batch.size
        return offset

    def replay(self, batch: Batch) -> None:
        """WireError when the batch is not what was written: the whole cluster depends on it."""
        batch.verify()
        self.epoch = max(self.epoch, batch.partition_leader_epoch)
        if not batch.is_control:
            for record in records(batch):
                self.cluster.replay(metadata_records.decode(record.value or b""))

    def take_part(self, endpoints: Sequence[Endpoint], log_dirs: Sequence[bytes]) -> None:
        """Begin a new epoch as the only voter, set up a new cluster, and register this broker."""
        self.epoch += 1
        voter = m.LeaderChangeMessage_Voter(self.node.id)
        change = m.LeaderChangeMessage(leader_id=self.node.id, voters=[voter], granting_voters=[voter])
        now = self.node.clock.wall_ms()
        self.write([control_record(ControlType.LEADER_CHANGE, codec.encode(change, 0), now)], control=True)
        if not self.cluster.features:
            # Eligible leader replicas (KIP-966) want min.insync.replicas as a setting of the whole cluster.
            features = [m.FeatureLevelRecord(feature.name, feature.initial) for feature in SUPPORTED if feature.initial]
            self.commit([*features, m.ConfigRecord(BROKER, "", MIN_INSYNC, str(self.node.settings[MIN_INSYNC]))])
        self.commit([self.registration(endpoints, log_dirs)])

    def registration(self, endpoints: Sequence[Endpoint], log_dirs: Sequence[bytes]) -> Any:
        return m.RegisterBrokerRecord(
            broker_id=self.node.id,
            incarnation_id=self.node.random.randbytes(16),
            broker_epoch=self.log.end_offset,
            end_points=[m.RegisterBrokerRecord_BrokerEndpoint(*endpoint) for endpoint in endpoints],
            features=[m.RegisterBrokerRecord_BrokerFeature(f.name, f.low, f.high) for f in SUPPORTED],
            rack=self.node.settings["broker.rack"],
            fenced=False,
            log_dirs=list(log_dirs),
        )

    def commit(self, changes: Iterable[Any]) -> None:
        """Append, sync and replay records. They stand in one batch: all of them survive a crash, or none."""
        changes = list(changes)
        if not changes:
            return
        now = self.node.clock.wall_ms()
        self.write([Record(0, now, None, metadata_records.encode(change)) for change in changes])
        for change in changes:
            self.cluster.replay(change)

    def write(self, items: Sequence[Record], control: bool = False) -> None:
        batch = build(items, control=control, partition_leader_epoch=self.epoch)
        now = self.node.clock.wall_ms()
        self.log.append(memoryview(batch), leader_epoch=self.epoch, now_ms=now, origin=Origin.COORDINATOR)
        self.log.flush(now)
        self.bytes_since_snapshot += len(batch)
        self.log.advance_high_watermark(self.log.end_offset)

    def next_producer_id(self) -> int:
        """A producer id that was never given out; ids are taken from the cluster a block at a time."""
        ids = self.producer_ids
        if ids.next == ids.end:
            first = self.cluster.next_producer_id
            self.commit([m.ProducerIdsRecord(self.node.id, self.broker_epoch, first + PRODUCER_ID_BLOCK)])
            ids.next, ids.end = first, first + PRODUCER_ID_BLOCK
        ids.next += 1
        return ids.next - 1

    @property
    def broker_epoch(self) -> int:
        return self.cluster.brokers[self.node.id].epoch
