"""The judge: it looks at every process after each of its steps, and at all logs and images now and then."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from moldau.log.answers import Isolation
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.snapshot import image_records
from moldau.wire.records import Batch, starts
from moldau.wire.refusal import Refused
from tests.cluster.simulation.disks import synced_end, synced_vote
from tests.cluster.simulation.ledger import Ledger
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host
    from tests.cluster.simulation.process import Process
    from tests.cluster.simulation.world import World

AUDIT_MS = 120.0
CHUNK = 1 << 20

Key = tuple[bytes, int]  # topic id and index


class Checker:
    """What all nodes were seen to say, and so what nobody may contradict."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ledgers: dict[Key, Ledger] = {}
        self.voted: dict[int, int] = {}  # the leader of each epoch of the quorum
        self.epochs: dict[int, int] = {}  # the sum of the partition epochs that a process leads in
        self.votes: dict[int, tuple[int, int]] = {}  # epoch and vote of each voter
        self.seen: dict[int, tuple[Any, ...]] = {}  # what was last looked at of each voter
        self.committed = 0  # of the metadata
        self.active: dict[int, int] = {}  # the active controller of each epoch
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        self.images: dict[int, bytes] = {}  # by the offset that they are of
        self.commits: dict[int, bytes] = {}  # batches of the metadata log that are committed, by base offset
        self.cursors: dict[tuple[int, Key], int] = {}  # up to where each host's logs were looked at
        self.imaged: dict[int, int] = {}
        self.high: dict[tuple[int, Key], tuple[int, int]] = {}  # leader epoch and high watermark, of leaders

    # After each step of a process.

    def look(self, process: Process) -> None:
        quorum = process.node.quorum
        raft = getattr(quorum, "raft", None)
        if raft is not None:
            self.look_at_votes(process, raft)
        controller = process.node.controller
        if controller is not None:
            self.only(self.active, controller.epoch, process.place, Property.ONE_CONTROLLER, "controls in epoch")
        epochs = 0
        for partitions in process.node.replicas.by_id.values():
            for partition in partitions.values():
                if partition.led is not None:
                    epochs += partition.led.partition_epoch
        if epochs != self.epochs.get(process.place):
            self.epochs[process.place] = epochs
            for partition in process.node.replicas:
                if partition.led is not None:
                    self.audit_members(process, partition, partition.log.high_watermark)

    def look_at_votes(self, process: Process, raft: Any) -> None:
        """A vote is on the disk before anybody hears of it, and so is what a leader calls committed."""
        state = raft.epoch, raft.voted, raft.role, raft.log.high_watermark
        if state == self.seen.get(process.place):
            return
        self.seen[process.place] = state
        if raft.is_leader:
            if raft.epoch not in self.voted and raft.epoch_start < self.committed:
                text = f"{process} leads from {raft.epoch_start} on, and {self.committed} is committed"
                raise Broken(Property.COMPLETE, text)
            self.only(self.voted, raft.epoch, process.place, Property.ONE_CONTROLLER, "leads quorum epoch")
        vote, high = (raft.epoch, -1 if raft.voted is None else raft.voted[0]), raft.log.high_watermark
        if vote != self.votes.get(process.place):
            self.votes[process.place] = vote
            if (found := synced_vote(process.host)) != vote:
                raise Broken(Property.VOTE_STAYS, f"{process} has voted {vote}, and on its disk is {found}")
        if raft.is_leader and high > self.committed:
            self.committed = high
            self.look_at_majority(process, raft, high)

    def look_at_majority(self, process: Process, raft: Any, high: int) -> None:
        """Look whether a majority has what is committed: of those who vote now, or before the last records.

        Who has lost its disk had it if that disk did: the leader may hear so only later.
        """
        ends = {}
        for voters in (raft.voters, raft.history.at(high)):
            hosts = [(one, self.world.hosts[one.id]) for one in voters.members]
            ends = {one.id: host.lost_ends.get(one.directory, synced_end(host)) for one, host in hosts}
            if sum(end >= high for end in ends.values()) >= voters.majority:
                return
        raise Broken(Property.MAJORITY, f"{process} has committed {high}, and the disks have {ends}")

    def only(self, known: dict[Any, int], key: Any, value: int, which: Property, text: str) -> None:
        first = known.setdefault(key, value)
        if first != value:
            raise Broken(which, f"node {value} {text} {key}, and so did node {first}")

    def forget(self, host: Host) -> None:
        """A process is gone: the next one's logs are looked at from their start."""
        self.cursors = {key: at for key, at in self.cursors.items() if key[0] != host.place}
        self.imaged.pop(host.place, None)
        self.votes.pop(host.place, None)
        self.seen.pop(host.place, None)
        self.high = {key: at for key, at in self.high.items() if key[0] != host.place}

    # Now and then.

    def audit_all(self) -> None:
        for host in self.world.hosts.values():
            if host.process is not None and host.process.node.quorum is not None:
                self.audit(host.process)

    def audit(self, process: Process) -> None:
        node = process.node
        self.audit_metadata(process)
        self.audit_image(process)
        for partition in node.replicas:
            if partition.log.offline is not None:
                rotten = self.ledger(partition.topic, partition.topic_id, partition.index).rotten_on
                if rotten == process.place or (self.world.counts["damages"] and not self.world.is_over):
                    continue
                raise Broken(Property.GOES_ON, f"{partition} is offline on {process}: {partition.log.offline}")
            self.audit_log(process, partition)
            if partition.leads:
                self.audit_leader(process, partition)

    def tear(self, topic_id: bytes, index: int) -> None:
        """An unclean election was made."""
        names = {one.topic_id: one.topic for one in self.ledgers.values()}
        for host in self.world.hosts.values():
            topics = host.process.node.cluster.topics_by_id if host.process is not None else {}
            names |= {topic_id: topics[topic_id].name} if topic_id in topics else {}
        ledger = self.ledger(names.get(topic_id, "?"), topic_id, index)
        if not ledger.is_torn:
            self.world.note(f"{ledger} has an unclean leader")
            self.world.counts["unclean elections"] += 1
            ledger.tear()

    def is_torn(self, topic: str) -> bool:
        return any(ledger.is_torn for ledger in self.ledgers.values() if ledger.topic == topic)

    def ledger(self, topic: str, topic_id: bytes, index: int) -> Ledger:
        key = topic_id, index
        if key not in self.ledgers:
            self.ledgers[key] = Ledger(topic, topic_id, index)
        return self.ledgers[key]

    def audit_log(self, process: Process, partition: Any) -> None:
        """Look at what has become visible on a replica since the last look."""
        log, key = partition.log, (partition.topic_id, partition.index)
        ledger = self.ledger(partition.topic, *key)
        at = min(self.cursors.get((process.place, key), 0), log.high_watermark)
        at = max(at, log.start_offset)
        while at < log.high_watermark:
            try:
                span = log.read(at, CHUNK, isolation=Isolation.HIGH_WATERMARK).span
            except Refused:
                if ledger.rotten_on != process.place:
                    raise
                return  # the rot is found by this look
            if span is None:
                raise Broken(Property.ONE_HISTORY, f"{ledger} on {process} has nothing at {at} of {log.high_watermark}")
            after = ledger.read(span.read(), process, log.high_watermark)
            if after <= at:
                break
            at = after
        self.cursors[process.place, key] = at

    def audit_leader(self, process: Process, partition: Any) -> None:
        key, epoch = (partition.topic_id, partition.index), partition.placement.leader_epoch
        self.only(self.leaders, (*key, epoch), process.place, Property.ONE_LEADER, f"leads {partition} in epoch")
        before, high = self.high.get((process.place, key), (epoch, 0)), partition.log.high_watermark
        if before[0] == epoch and high < before[1]:
            text = f"{partition} on {process} has the high watermark {high} after {before[1]} in epoch {epoch}"
            raise Broken(Property.NEVER_BACK, text)
        self.high[process.place, key] = epoch, high
        self.audit_members(process, partition, high)

    def audit_members(self, process: Process, partition: Any, high: int) -> None:
        """Look whether all that are in sync have what is committed, if they are the processes that the leader knows."""
        for member in partition.led.isr if partition.led is not None else ():
            known, other = process.node.cluster.brokers.get(member), self.world.hosts[member].process
            if other is None or other.node.membership is None or known is None:
                continue
            replica = other.node.replicas.by_id.get(partition.topic_id, {}).get(partition.index)
            is_known = other.node.membership.lifecycle.epoch == known.epoch
            if replica is None or member not in replica.placement.isr:  # the leader has not heard that it has left
                continue
            if is_known and replica.log.end_offset < high:
                text = f"{partition} ends at {replica.log.end_offset} on {other}, and {high} is committed by {process}"
                raise Broken(Property.IN_SYNC, text)

    def audit_metadata(self, process: Process) -> None:
        log, key = process.node.metadata.log, (b"metadata", 0)
        at = self.cursors.get((process.place, key), 0)
        if at > log.high_watermark:
            raise Broken(Property.NEVER_BACK, f"the metadata of {process} went back from {at} to {log.high_watermark}")
        at = max(at, log.start_offset)
        while at < log.high_watermark:
            span = log.read(at, CHUNK, isolation=Isolation.HIGH_WATERMARK).span
            assert span is not None, f"{process} has no metadata at {at}"
            view = memoryview(span.read())
            for batch in (Batch(view, position) for position in starts(view)):
                if batch.next_offset > log.high_watermark:
                    raise Broken(Property.ONE_HISTORY, f"a batch of the metadata of {process} is committed in part")
                data, at = bytes(batch.view), batch.next_offset
                if self.commits.setdefault(batch.base_offset, data) != data:
                    text = f"the metadata of {process} has another batch at {batch.base_offset}"
                    raise Broken(Property.ONE_HISTORY, text)
        self.cursors[process.place, key] = at

    def audit_image(self, process: Process) -> None:
        metadata = process.node.metadata
        at = metadata.applied
        if self.imaged.get(process.place) == at or not at:
            return
        self.imaged[process.place] = at
        rows = sorted(metadata_records.encode(record) for record in image_records(metadata.cluster))
        digest = blake2b(b"\n".join(rows), digest_size=8).digest()
        if self.images.setdefault(at, digest) != digest:
            raise Broken(Property.SAME_IMAGE, f"{process} has another image at offset {at}")
        for topic in metadata.cluster.topics.values():
            for part in topic.partitions.values():
                if part.leader >= 0:
                    key = topic.id, part.index, part.leader_epoch
                    self.only(self.leaders, key, part.leader, Property.ONE_LEADER, "leads by the metadata")
