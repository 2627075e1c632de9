"""The metadata of the cluster: its log, and two images of it.

A command is decided on the image that runs ahead (`planned`), which has everything that was proposed. Its records are
appended in one batch and synced in the background; when they are committed they are replayed into the image that
everybody else sees (`cluster`), and only then is the client told. If a commit fails, `planned` is dropped and made
again from what is committed.

The log is `__cluster_metadata-0` in Kafka's format, with its control records, so that Kafka's tools read it and a
quorum can take it over. A directory that Apache Kafka wrote is understood: its snapshot first, then its log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.authorizer import list_unheeded
from moldau.broker.features import SUPPORTED
from moldau.broker.outbox import Lost
from moldau.broker.partition import Partition
from moldau.broker.steps import start
from moldau.cluster.controller.elections import elect_missing_leaders
from moldau.cluster.controller.policy import UNCLEAN_ELECTION, Policy, policy_of
from moldau.log.answers import Isolation, Origin
from moldau.log.checkpoints import Damaged
from moldau.log.config import LogConfig
from moldau.log.log import Log
from moldau.log.retention import retain
from moldau.machines.effects import Promise, error_promise
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.cluster import BROKER, Cluster, Endpoint
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.machines.metadata.features import ELIGIBLE_LEADERS
from moldau.machines.metadata.snapshot import image_records
from moldau.machines.metadata.topics import DIRECTORIES_SINCE
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from moldau.wire.records import Batch, ControlType, Record, batches, build, control_record, records, starts
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

logger = logs.get(__name__)

TOPIC, TOPIC_ID = metadata_records.TOPIC, metadata_records.TOPIC_ID
CHUNK = 1 << 20
SNAPSHOT = ".checkpoint"
BOOTSTRAP = "bootstrap.checkpoint"
MIN_INSYNC = "min.insync.replicas"
PRODUCER_ID_BLOCK = 1000
FEW_IDS = PRODUCER_ID_BLOCK // 10  # with fewer the next block is asked for
CONFIG = LogConfig(
    cleanup_policy=frozenset({"delete"}),
    retention_ms=-1,
    max_message_bytes=2**31 - 1,
    segment_ms=2**63 - 1,
    flush_messages=1,
)


@dataclass(slots=True)
class ProducerIds:
    """The producer ids that this broker may give out: a block at a time, and the next one before the last is used."""

    ids: deque[int] = field(default_factory=deque[int])
    is_requested: bool = False
    error: Error = Error.NONE  # why there is no further block


@dataclass(slots=True)
class Proposal:
    """The changes of one request: each is decided on those before it, and all are written as one batch."""

    metadata: Metadata
    records: list[Any] = field(default_factory=list[Any])

    @property
    def image(self) -> Cluster:
        return self.metadata.planned

    @property
    def policy(self) -> Policy:
        return self.metadata.policy(self.image)

    def add(self, records: Iterable[Any]) -> None:
        for record in records:
            self.image.replay(record)
            self.records.append(record)

    @property
    def next_offset(self) -> int:
        """The offset of the next record that is added."""
        return self.metadata.end_offset + len(self.records)

    def commit(self) -> Promise:
        """Write the changes. The promise is an Error: NONE when they are committed and can be seen by everybody."""
        return self.metadata.write(self.records)

    async def answer(self, response: Any, rows: Iterable[Any]) -> Any:
        """Write the changes and return the response; if they cannot be committed, each row says so.

        Those that were refused too: what was proposed before, and is not committed either, may have been the reason.
        """
        if error := await self.commit():
            for row in rows:
                row.error_code, row.error_message = error, error.message
        return response


class Metadata:
    """Both images, the log below them, and the only way to change any of these."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.cluster = Cluster()
        self.cluster_id = ""
        self.directory_id = bytes(16)  # of the directory that the log lies in
        self.epoch = 0
        self.producer_ids = ProducerIds()
        self.snapshot_offset = 0
        self.bytes_since_snapshot = 0
        self.snapshot_ms = node.clock.monotonic_ms()  # when the last one was written, or this node was started
        self.is_writing_snapshot = False
        self.home: Partition
        self.applied = 0  # what stands before this offset of the log is in `cluster`
        self.transaction: list[Any] | None = None  # records of one that several batches make up, until it ends
        self.in_flight: deque[list[Any]] = deque()  # batches that are written and not committed yet
        self.draft: Proposal | None = None
        self._planned: Cluster | None = None

    @property
    def log(self) -> Log:
        return self.home.log

    @property
    def planned(self) -> Cluster:
        """The image with everything that was proposed. It is made when the first command needs it."""
        if self._planned is None:
            self._planned = Cluster()
            for record in image_records(self.cluster):
                self._planned.replay(record)
            for records in self.in_flight:
                for record in records:
                    self._planned.replay(record)
        return self._planned

    def policy(self, image: Cluster) -> Policy:
        """Return the settings of topics that elections depend on."""
        return policy_of(image, self.node.settings[MIN_INSYNC], self.node.settings[UNCLEAN_ELECTION])

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def load(self, log: Log) -> None:
        """Rebuild the image from the newest snapshot and the log after it."""
        placement = Placement(0, (self.node.id,), (self.node.id,), self.node.id, leader_epoch=0, partition_epoch=0)
        self.home = Partition(TOPIC, TOPIC_ID, 0, log, self.node.id, placement, is_alone=True)
        log.advance_high_watermark(log.end_offset)
        offset = self.load_snapshot()
        while offset < log.end_offset:
            offset = self.replay_from(offset)
        self.applied = offset
        for sentence in list_unheeded(self.cluster, self.node.authorizer):
            logger.warning(sentence)

    # A log that others write.

    def load_followed(self, log: Log) -> None:
        """Rebuild the image as far as this node knows what is committed; the rest comes from the quorum."""
        self.home = Partition(TOPIC, TOPIC_ID, 0, log, self.node.id)
        self.applied = self.load_snapshot()
        log.advance_high_watermark(self.applied)
        for record in self.read_committed():
            self.cluster.replay(record)

    def catch_up(self) -> None:
        """Make true what has been committed since."""
        if records := list(self.read_committed()):
            self.node.apply(records)

    def read_committed(self) -> Iterator[Any]:
        """Yield the records up to the high watermark. Those of a transaction count when it ends (KIP-868)."""
        while self.applied < self.log.high_watermark:
            span = self.log.read(self.applied, CHUNK, isolation=Isolation.HIGH_WATERMARK).span
            if span is None:
                raise Damaged(f"{self.log.path} has no records at offset {self.applied}")
            view, before = memoryview(span.read()), self.applied
            for at in starts(view):
                batch = Batch(view, at)
                if batch.next_offset > self.log.high_watermark:
                    return
                self.epoch = max(self.epoch, batch.partition_leader_epoch)
                self.applied = batch.next_offset
                self.bytes_since_snapshot += batch.size
                for record in decoded(batch):
                    yield from self.count(record)
            if self.applied == before:
                raise Damaged(f"{self.log.path} has no whole batch at offset {before}")

    def count(self, record: Any) -> Iterable[Any]:
        """Return the records that count with this one."""
        kind = record.SCHEMA.name
        if kind == "BeginTransactionRecord":
            self.transaction = []
        elif kind == "AbortTransactionRecord":
            self.transaction = None
        elif kind == "EndTransactionRecord":
            ended, self.transaction = self.transaction or [], None
            return ended
        elif self.transaction is not None:
            self.transaction.append(record)
        elif kind != "NoOpRecord":  # the quorum writes one whenever there is nothing to write
            return (record,)
        return ()

    def install(self, end_offset: int, epoch: int, data: bytes) -> None:
        """Begin anew with a snapshot that the quorum has sent."""
        image, name = Cluster(), snapshot_name(end_offset, epoch)
        try:
            for batch in batches(memoryview(data)):
                for record in decoded(batch):
                    image.replay(record)
            self.node.disk.write_atomic(f"{self.log.path}/{name}", data)
        except (OSError, WireError) as error:  # it is damaged, or there is no room for it
            logger.error("a snapshot of the quorum is of no use; it is fetched again", snapshot=name, reason=str(error))
            return
        self.log.truncate_fully(end_offset, self.node.clock.wall_ms())
        self.log.leader_epochs.assign(epoch, end_offset)
        self.applied = self.snapshot_offset = end_offset
        self.transaction = None
        if self.node.quorum is not None:
            self.node.quorum.has_snapshot(name)
        self.node.replace_image(image)

    def load_snapshot(self) -> int:
        """Replay the newest snapshot, and say from where the log goes on."""
        newest = (self.snapshots() or [""])[-1]
        if not newest:
            return self.log.start_offset
        for batch in batches(memoryview(self.node.disk.read(f"{self.log.path}/{newest}"))):
            self.replay(batch)
        self.snapshot_offset = snapshot_id(newest)[0]
        if self.snapshot_offset < self.log.start_offset:
            raise Damaged(f"{self.log.path} begins at offset {self.log.start_offset}, after its newest snapshot")
        return self.snapshot_offset

    def write_snapshot(self) -> None:
        """Write the image in the background as a snapshot that stands for the log so far."""
        from moldau.machines.metadata.checkpoints import checkpoint  # late: most starts need none

        if self.is_writing_snapshot or self.transaction is not None:  # the image lacks what is not ended yet
            return
        now, covered, quorum = self.node.clock.wall_ms(), self.bytes_since_snapshot, self.node.quorum
        end = self.log.high_watermark if quorum is None else self.applied
        voters = [] if quorum is None else quorum.voter_records(end, now)
        data = checkpoint(voters, self.encode(image_records(self.cluster)), now, self.epoch)
        name = snapshot_name(end, self.epoch)
        self.is_writing_snapshot = True
        write = partial(self.node.disk.write_atomic, f"{self.log.path}/{name}", data)
        self.node.background.submit(write, partial(self.snapshot_written, name, end, covered))

    def snapshot_written(self, name: str, end: int, covered: int, outcome: Any) -> None:
        """Let go of the log before a new snapshot, and of older snapshots. If it could not be written the log grows."""
        self.is_writing_snapshot = False
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            now = self.node.clock.wall_ms()
            self.snapshot_offset = end
            self.bytes_since_snapshot -= covered
            self.snapshot_ms = self.node.clock.monotonic_ms()
            if self.node.quorum is not None:
                self.node.quorum.has_snapshot(name)
            self.log.roll(now)
            self.log.delete_records(end)
            retain(self.log, now)
            for old in self.snapshots():
                if old < name:
                    self.node.disk.remove(f"{self.log.path}/{old}")
        except (OSError, Refused) as error:
            logger.error("the metadata has no new snapshot; its log grows until the next try", reason=str(error))

    @property
    def newest_snapshot(self) -> tuple[int, int] | None:
        """Return end offset and epoch of the newest snapshot."""
        names = self.snapshots()
        return snapshot_id(names[-1]) if names else None

    def snapshot_header(self) -> bytes | None:
        """Return the beginning of the newest snapshot, in which the voters stand."""
        names = self.snapshots()
        if not names:
            return None
        with closing(self.node.disk.open(f"{self.log.path}/{names[-1]}")) as file:
            return file.pread(CHUNK, 0)

    def snapshots(self) -> list[str]:
        """Return the names of the snapshots, the newest last."""
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
        if not position:  # the first batch comes whole, unless its length is damaged
            raise Damaged(f"{self.log.path} has no whole batch at offset {offset}")
        return offset

    def replay(self, batch: Batch) -> None:
        """Replay a batch; raises WireError when it is not what was written: the whole cluster depends on it."""
        self.epoch = max(self.epoch, batch.partition_leader_epoch)
        for record in decoded(batch):
            self.cluster.replay(record)

    def take_part(self, endpoints: Sequence[Endpoint], log_dirs: Sequence[bytes]) -> None:
        """Begin a new epoch as the only voter, set up a new cluster, register this broker, elect missing leaders."""
        self.epoch += 1
        self.home.placement.leader_epoch = self.epoch
        voter = m.LeaderChangeMessage_Voter(self.node.id)
        change = m.LeaderChangeMessage(leader_id=self.node.id, voters=[voter], granting_voters=[voter])
        now = self.node.clock.wall_ms()
        self.append([control_record(ControlType.LEADER_CHANGE, codec.encode(change, 0), now)], control=True)
        if not self.cluster.features:
            self.establish(self.first_records())
        self.establish([self.registration(endpoints, log_dirs)])
        if elected := list(elect_missing_leaders(self.cluster, self.policy(self.cluster))):
            self.establish(elected)

    def first_records(self) -> list[Any]:
        """Return what a new cluster begins with: what `kafka-storage format` has written, or the newest levels."""
        path = f"{self.log.path.rpartition('/')[0]}/{BOOTSTRAP}"
        found: list[Any] = []
        if self.node.disk.exists(path):
            from moldau.machines.metadata.checkpoints import read_checkpoint

            found = read_checkpoint(self.node.disk.read(path)).records
        found = found or [m.FeatureLevelRecord(one.name, one.initial) for one in SUPPORTED if one.initial]
        levels = {one.name: one.feature_level for one in found if one.SCHEMA.name == "FeatureLevelRecord"}
        if levels.get(ELIGIBLE_LEADERS):  # they want min.insync.replicas as a setting of the whole cluster (KIP-966)
            found.append(m.ConfigRecord(BROKER, "", MIN_INSYNC, str(self.node.settings[MIN_INSYNC])))
        return found

    def registration(self, endpoints: Sequence[Endpoint], log_dirs: Sequence[bytes]) -> Any:
        return m.RegisterBrokerRecord(
            broker_id=self.node.id,
            incarnation_id=self.node.random.randbytes(16),
            broker_epoch=self.log.end_offset,
            end_points=[m.RegisterBrokerRecord_BrokerEndpoint(*endpoint) for endpoint in endpoints],
            features=[m.RegisterBrokerRecord_BrokerFeature(f.name, f.low, f.high) for f in SUPPORTED],
            rack=self.node.settings["broker.rack"],
            fenced=False,
            log_dirs=list(log_dirs) if self.cluster.metadata_version >= DIRECTORIES_SINCE else [],
        )

    def establish(self, changes: Sequence[Any]) -> None:
        """Commit records at a start, before anybody is served; raises Refused."""
        self.append(self.encode(changes))
        self.log.flush(self.node.clock.wall_ms())
        self.home.synced()
        for change in changes:
            self.cluster.replay(change)

    def propose(self) -> Proposal:
        """Begin the changes of one request."""
        if self.draft is not None and self.draft.records:
            self._planned = None  # a handler failed between proposing and writing
        self.draft = Proposal(self)
        return self.draft

    def forget_plans(self) -> None:
        """Drop the image that runs ahead: from now on another controller decides, and this one is not told what."""
        self._planned = self.draft = None

    def write(self, records: list[Any]) -> Promise:
        """Append records that were proposed, as one batch: all of them survive a crash, or none.

        Without records the promise is kept when everything that was proposed before is committed.
        """
        promise = error_promise()
        self.draft = None
        try:
            if records:
                self.append(self.encode(records))
                self.in_flight.append(records)
        except Refused as refused:
            if refused.error is not Error.NOT_CONTROLLER:
                logger.error("a change of the metadata cannot be written", reason=refused.message)
            self._planned = None
            promise.resolve(refused.error)
            return promise
        self.node.replicas.commit(self.home, partial(self.committed, records, promise, self.node.clock.monotonic_ms()))
        if self.node.quorum is not None:
            self.node.quorum.settle()
        return promise

    def committed(self, records: list[Any], promise: Promise, written_ms: float, error: Error) -> None:
        """Make committed records true for everybody."""
        if records:
            self.in_flight.popleft()
            if not error:
                self.node.cluster_counters.commits += 1
                self.node.cluster_counters.commit_ms += self.node.clock.monotonic_ms() - written_ms
        if error:
            self._planned = None
        elif records and self.node.quorum is None:  # where others vote, it is read from the log: see `catch_up`
            self.node.apply(records)
        promise.resolve(error)

    def encode(self, changes: Iterable[Any]) -> list[Record]:
        now = self.node.clock.wall_ms()
        level = (self.cluster if self._planned is None else self._planned).metadata_version
        return [Record(0, now, None, metadata_records.encode(change, level)) for change in changes]

    def append(self, items: Sequence[Record], control: bool = False) -> None:
        quorum, now = self.node.quorum, self.node.clock.wall_ms()
        if quorum is not None:
            quorum.append(items, now)
            return
        batch = build(items, control=control, partition_leader_epoch=self.epoch)
        self.home.append(memoryview(batch), now, Origin.COORDINATOR)
        self.bytes_since_snapshot += len(batch)

    # Producer ids.

    def next_producer_id(self) -> int:
        """Take a producer id that was never given out; raises Refused while the next block is not there yet."""
        mine = self.producer_ids
        if len(mine.ids) <= FEW_IDS:
            self.request_producer_ids()
        if not mine.ids:
            raise Refused(Error.COORDINATOR_LOAD_IN_PROGRESS, "The next block of producer ids is being allocated.")
        return mine.ids.popleft()

    async def producer_ids_ready(self) -> Error:
        """Wait until there is a producer id to take; returns why there will be none, if so."""
        if self.producer_ids.ids:
            return Error.NONE
        self.request_producer_ids()
        if self.node.membership is None:
            return await self.write([]) or self.producer_ids.error
        await self.node.until(lambda: not self.producer_ids.is_requested)
        return self.producer_ids.error

    def request_producer_ids(self) -> None:
        if not self.producer_ids.is_requested:
            self.producer_ids.is_requested = True
            start(self.node, self.allocate_producer_ids())

    async def allocate_producer_ids(self) -> None:
        """Take a block of producer ids from the cluster."""
        mine = self.producer_ids
        if self.node.membership is None:
            proposal, count = self.propose(), PRODUCER_ID_BLOCK
            first = proposal.image.next_producer_id
            proposal.add([m.ProducerIdsRecord(self.node.id, self.broker_epoch, first + count)])
            mine.error = await proposal.commit()
        else:
            answer = await self.node.membership.call(m.AllocateProducerIdsRequest(self.node.id, self.broker_epoch))
            lost = isinstance(answer, Lost)
            mine.error = Error.COORDINATOR_NOT_AVAILABLE if lost or answer.error_code else Error.NONE
            first, count = (0, 0) if mine.error else (answer.producer_id_start, answer.producer_id_len)
        mine.is_requested = False
        if not mine.error:
            mine.ids.extend(range(first, first + count))
        self.node.signal(self)

    @property
    def broker_epoch(self) -> int:
        mine = self.cluster.brokers.get(self.node.id)
        return -1 if mine is None else mine.epoch


def snapshot_name(end_offset: int, epoch: int) -> str:
    return f"{end_offset:020d}-{epoch:010d}{SNAPSHOT}"


def snapshot_id(name: str) -> tuple[int, int]:
    """Return end offset and epoch of a snapshot."""
    end_offset, _, epoch = name.removesuffix(SNAPSHOT).partition("-")
    return int(end_offset), int(epoch)


def decoded(batch: Batch) -> Iterator[Any]:
    """Yield the metadata records of a batch; WireError when it is not what was written. Control records say nothing."""
    batch.verify()
    if not batch.is_control:
        for record in records(batch):
            yield metadata_records.decode(record.value or b"")
