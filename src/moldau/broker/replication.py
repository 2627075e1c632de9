"""Partitions that several brokers keep: this node leads some of them and follows others, as the metadata says.

`cluster/leading.py` and `cluster/following.py` decide; here their requests are sent, and what comes of it reaches the
partitions. A node that is alone has nothing to do here.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.outbox import QUICK_FENCING, Lost, Peer
from moldau.broker.partition import Partition
from moldau.cluster.following import Fetcher, Followed, Key, Limits, by_topic
from moldau.cluster.leading import UNKNOWN
from moldau.cluster.throttling import Throttle, is_listed
from moldau.log.lookup import EARLIEST, LATEST
from moldau.machines.metadata.cluster import NO_LEADER, TOPIC
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

# The controller has decided otherwise, or will: what holds comes with the metadata. After others it is asked again.
REFUSED = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.INVALID_REQUEST,
        Error.NEW_LEADER_ELECTED,
        Error.FENCED_LEADER_EPOCH,
        Error.INVALID_UPDATE_VERSION,
        Error.INELIGIBLE_REPLICA,
        Error.OPERATION_NOT_ATTEMPTED,
    }
)
RETRY_MS = 50.0  # before the controller is asked again
VANISHED_MS = 300.0  # how long to believe that the controller is about to fence a leader whose connection broke


class Replication:
    """The fetchers of this node, and what it asks the controller for the partitions that it leads."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.fetchers: dict[int, Fetcher] = {}
        self.vanished: dict[int, float] = {}  # leaders whose connection broke, and until when others may be elected
        self.reassigning: set[Key] = set()  # partitions that this node leads while they are moved
        self.proposed: dict[Key, Partition] = {}  # partitions whose ISR the controller is to change
        self.is_asking = False
        self.ask_ms = self.sync_ms = inf
        self.receiving, self.sending = self.throttle("follower"), self.throttle("leader")

    # What the metadata says.

    def place(self, partition: Partition, placement: Placement) -> None:
        """Lead or follow a partition, as it is placed now."""
        node, led = self.node, partition.leads
        was, isr = (partition.placement.leader, partition.placement.leader_epoch), partition.placement.isr
        now = (placement.leader, placement.leader_epoch)
        if placement.leader == node.id:
            if now != was:
                self.unfollow(partition)
            committed = partition.log.high_watermark
            partition.lead(placement, node.clock.monotonic_ms())
            with suppress(Refused):  # a log that cannot be opened has said why
                if partition.must_sync():
                    node.replicas.flush(partition)
            self.advance_from(partition, committed)
            node.cluster_counters.note_isr(isr, partition.placement.isr, placement.replicas)
            if placement.adding or placement.removing:
                self.reassigning.add((partition.topic_id, partition.index))
            else:
                self.reassigning.discard((partition.topic_id, partition.index))
        else:
            partition.follow(placement)
            if now != was:
                self.follow(partition, placement)
        node.assignments.check(partition)
        if now != was:
            node.signal(partition)
            node.signal(partition.log)
            if partition.leads or led:
                node.leadership_changed(partition)

    def follow(self, partition: Partition, placement: Placement) -> None:
        """Fetch from the leader; while there is none, from nobody."""
        node = self.node
        self.unfollow(partition)
        if placement.leader == NO_LEADER or partition.log.offline is not None:
            return
        fetcher = self.fetchers.get(placement.leader)
        if fetcher is None:
            fetcher = self.fetchers[placement.leader] = self.fetcher()
        where = node.assignments.directory_of(partition) or bytes(16)
        fetcher.add(Followed(partition.topic_id, partition.index, partition.log, placement.leader_epoch, where))
        self.sync_first(fetcher, partition)

    def sync_first(self, fetcher: Fetcher, partition: Partition) -> None:
        """Sync what `flush.messages` promises to be synced before the leader hears that it is here.

        The whole fetcher waits, as Kafka's does: a fetch that left without the partition could wait for long.
        """
        key, must_sync = (partition.topic_id, partition.index), False
        with suppress(Refused):  # a log that cannot be opened fails with the next request
            must_sync = partition.must_sync()
        if not must_sync:
            fetcher.unsynced.discard(key)
        elif key in fetcher.followed:
            fetcher.unsynced.add(key)
            self.node.replicas.flush(partition)
            if partition not in self.node.replicas.flushing:  # there was no room: try again
                self.sync_ms = self.node.clock.monotonic_ms() + RETRY_MS

    def synced(self, partition: Partition) -> None:
        """Go on after a sync, as a leader or as a follower."""
        for fetcher in self.fetchers.values():
            if (partition.topic_id, partition.index) in fetcher.unsynced:
                self.sync_first(fetcher, partition)
        self.advance(partition)

    def sync_again(self) -> None:
        """Try the syncs again that could not begin."""
        self.sync_ms = inf
        for fetcher in self.fetchers.values():
            for topic_id, index in tuple(fetcher.unsynced):
                if (partition := self.node.replicas.by_id.get(topic_id, {}).get(index)) is not None:
                    self.sync_first(fetcher, partition)

    def unfollow(self, partition: Partition) -> None:
        key = partition.topic_id, partition.index
        self.reassigning.discard(key)
        for fetcher in self.fetchers.values():
            fetcher.remove(key)

    def touch(self, partition: Partition) -> None:
        """Let the leader hear of a log that this follower has changed by itself."""
        key = partition.topic_id, partition.index
        for fetcher in self.fetchers.values():
            if key in fetcher.followed:
                fetcher.touch(key)

    def fetcher(self) -> Fetcher:
        settings = self.node.settings
        limits = Limits(
            settings["replica.fetch.wait.max.ms"],
            settings["replica.fetch.min.bytes"],
            settings["replica.fetch.response.max.bytes"],
            settings["replica.fetch.max.bytes"],
            settings["replica.fetch.backoff.ms"],
        )
        return Fetcher(self.node.id, self.broker_epoch, limits, self.receiving)

    def throttle(self, side: str) -> Throttle:
        """Return how fast replicas may be copied, by the settings of this broker and of their topics."""
        node, rate, replicas = self.node, f"{side}.replication.throttled.rate", f"{side}.replication.throttled.replicas"

        def covers(key: tuple[bytes | str, int]) -> bool:
            topic, index = key
            if not isinstance(topic, str):
                known = node.cluster.topics_by_id.get(topic)
                topic = "" if known is None else known.name
            return is_listed(node.cluster.config(TOPIC, topic).get(replicas, ""), index, node.id)

        return Throttle(lambda: node.settings[rate], covers)

    def broker_epoch(self) -> int:
        return self.node.metadata.broker_epoch

    # Following.

    def tick(self, now_ms: float) -> None:
        for leader, fetcher in self.fetchers.items():
            if fetcher.next_ms() <= now_ms:
                self.fetch(leader, fetcher, now_ms)
        if self.ask_ms <= now_ms:
            self.ask_controller()
        if self.sync_ms <= now_ms:
            self.sync_again()

    def next_ms(self) -> float:
        return min([self.ask_ms, self.sync_ms, *(fetcher.next_ms() for fetcher in self.fetchers.values())])

    def fetch(self, leader: int, fetcher: Fetcher, now_ms: float) -> None:
        address = self.address_of(leader, "fetch")
        if address is None:
            fetcher.pause(now_ms)
            return
        request = fetcher.request(now_ms)
        if request is not None:
            timeout = float(self.node.settings["replica.socket.timeout.ms"])
            self.node.ask(address, request, partial(self.fetched, leader, fetcher), timeout)
        self.look_after(leader, fetcher)

    def look_after(self, leader: int, fetcher: Fetcher) -> None:
        """Give up partitions that have failed, and help those that are lost."""
        troubled = fetcher.take_troubled()
        for one in troubled:
            if one.failed is not None:
                log.error("a partition cannot be followed", partition=f"{one.log.path}", reason=one.failed)
                fetcher.remove(one.key)
        if lost := [one for one in troubled if one.lost]:
            self.find_bounds(leader, fetcher, lost)

    def address_of(self, broker: int | None, purpose: str = "") -> Peer | None:
        """Return where a broker is reached by others."""
        known = None if broker is None else self.node.cluster.brokers.get(broker)
        listener = self.node.inter_broker_listener
        found = [one for one in known.endpoints if one.listener == listener] if known else []
        return Peer(found[0].host, found[0].port, purpose) if found else None

    def fetched(self, leader: int, fetcher: Fetcher, response: Any) -> None:
        """Take over what a leader has answered, and ask on."""
        node = self.node
        now = node.clock.monotonic_ms()
        if isinstance(response, Lost):
            log.debug("a leader does not answer", broker=leader, reason=response.reason)
            if fetcher.session.id and node.settings[QUICK_FENCING]:
                self.vanished[leader] = now + VANISHED_MS
            fetcher.fail(now)
            return
        if self.vanished.pop(leader, None) is not None:
            node.signal(node.metadata)
        for one in fetcher.heard(response, now, node.clock.wall_ms()):
            partition = node.replicas.by_id.get(one.topic_id, {}).get(one.index)
            if partition is not None:
                node.replicas.advanced(partition)
                self.sync_first(fetcher, partition)
                if node.id in partition.placement.adding:
                    node.cluster_counters.reassignment_bytes_in += one.received
        self.fetch(leader, fetcher, now)

    def knows_leaders(self) -> bool:
        """Tell whether no leader that others know has just vanished, without being fenced yet."""
        now, brokers = self.node.clock.monotonic_ms(), self.node.cluster.brokers
        for leader, until in list(self.vanished.items()):
            known = brokers.get(leader)
            if known is None or known.fenced or until <= now:
                del self.vanished[leader]
        return not self.vanished

    def find_bounds(self, leader: int, fetcher: Fetcher, lost: list[Followed]) -> None:
        """Ask a leader where the logs begin and end of which it does not have the place that was asked for."""
        address = self.address_of(leader)
        names = {
            one.topic_id: topic.name for one in lost if (topic := self.node.cluster.topics_by_id.get(one.topic_id))
        }
        bounds: dict[tuple[str, int], list[int]] = {}

        def request(timestamp: int) -> Any:
            row = m.ListOffsetsRequest_ListOffsetsPartition
            topics = by_topic((one.key, row(one.index, one.leader_epoch, timestamp)) for one in lost)
            rows = [(names[topic], [part for _, part in parts]) for topic, parts in topics.items() if topic in names]
            return m.ListOffsetsRequest(
                replica_id=self.node.id, topics=[m.ListOffsetsRequest_ListOffsetsTopic(*row) for row in rows]
            )

        def heard(is_last: bool, response: Any) -> None:
            for topic in () if isinstance(response, Lost) else response.topics:
                for part in topic.partitions:
                    if not part.error_code:
                        bounds.setdefault((topic.name, part.partition_index), []).append(part.offset)
            if is_last:
                self.resume(fetcher, lost, names, bounds)

        if address is None:
            self.resume(fetcher, lost, names, bounds)
            return
        self.node.ask(address, request(EARLIEST), partial(heard, False))
        self.node.ask(address, request(LATEST), partial(heard, True))

    def resume(
        self,
        fetcher: Fetcher,
        lost: Iterable[Followed],
        names: dict[bytes, str],
        bounds: dict[tuple[str, int], list[int]],
    ) -> None:
        now = self.node.clock.monotonic_ms()
        for one in lost:
            found = bounds.get((names.get(one.topic_id, ""), one.index), [])
            if len(found) == 2:
                earliest, latest = found
                try:
                    fetcher.resume(one, earliest, latest, self.node.clock.wall_ms())
                except Refused as refused:
                    log.error("a partition cannot be followed", partition=one.log.path, reason=refused.message)
            else:
                one.lost = False
                fetcher.delay(one, now)

    # Leading.

    def heard_of(self, partition: Partition, follower: int, broker_epoch: int, offset: int, start_offset: int) -> bool:
        """Note a follower's fetch; false if it is no replica of the partition."""
        led, end = partition.led, partition.log.end_offset
        now = self.node.clock.monotonic_ms()
        before = None if led is None else led.followers.get(follower)
        started = UNKNOWN if before is None else before.start_offset
        if led is None or not led.fetched(follower, broker_epoch, offset, end, now, start_offset):
            return False
        if start_offset > started:
            self.node.signal(partition.log)
        if led.followers[follower].is_stuck():
            partition.log.check(offset)
        self.advance(partition)
        if follower not in led.isr:
            self.propose(partition)
        return True

    def advance(self, partition: Partition) -> None:
        """Move the high watermark as far as the followers are."""
        led, own = partition.led, partition.log
        if led is None or own.offline is not None:
            return
        now, lag = self.node.clock.monotonic_ms(), self.node.settings["replica.lag.time.max.ms"]
        end = led.high_watermark(partition.counted_end(), partition.min_insync_replicas, lag, self.epoch_of, now)
        if end is not None and end > own.high_watermark:
            own.advance_high_watermark(end)
            self.node.replicas.advanced(partition)

    def advance_from(self, partition: Partition, committed: int) -> None:
        """Move the high watermark on, and tell all who wait if it was moved before: nobody is waited for any more."""
        if partition.log.high_watermark > committed:
            self.node.replicas.advanced(partition)
        self.advance(partition)

    def low_watermark(self, partition: Partition) -> int:
        """Return where the logs of all live replicas of a partition that is led here begin, at least."""
        brokers, led, start = self.node.cluster.brokers, partition.led, partition.log.start_offset
        live = [broker.id for broker in brokers.values() if not broker.fenced]
        return start if led is None else led.low_watermark(start, live)

    def epoch_of(self, broker: int) -> int | None:
        """Return the epoch of a broker that may be in sync."""
        known = self.node.cluster.brokers.get(broker)
        return None if known is None or known.fenced or known.in_controlled_shutdown else known.epoch

    def check_all(self) -> None:
        """Look for followers that lag: they leave the ISR."""
        if self.node.membership is None:
            return
        for partition in self.node.replicas:
            led, own = partition.led, partition.log
            if led is None or own.offline is not None or led.is_settled(own.end_offset, own.high_watermark):
                continue
            self.propose(partition)
            self.advance(partition)

    def propose(self, partition: Partition) -> None:
        """Ask for another ISR, if it is to change; to a log that is offline, and has no end, nobody has caught up."""
        led, own, now = partition.led, partition.log, self.node.clock.monotonic_ms()
        if self.node.membership is None or own.offline is not None:
            return
        lag = self.node.settings["replica.lag.time.max.ms"]
        if led is not None and led.propose(own.high_watermark, own.end_offset, lag, self.epoch_of, now):
            partition.count_members()
            self.proposed[partition.topic_id, partition.index] = partition
            self.ask_controller()

    def ask_controller(self) -> None:
        """Ask for all ISRs that are to change; one request at a time."""
        if self.is_asking or not self.proposed:
            return
        rows = [
            (key, self.row(partition))
            for key, partition in self.proposed.items()
            if partition.led is not None and partition.led.proposal is not None
        ]
        self.proposed, self.ask_ms = {}, inf
        if not rows:
            return
        self.is_asking = True
        topics = [
            m.AlterPartitionRequest_TopicData(topic, [row for _, row in parts])
            for topic, parts in by_topic(rows).items()
        ]
        request = m.AlterPartitionRequest(self.node.id, self.broker_epoch(), topics)
        assert self.node.membership is not None
        self.node.membership.ask_controller(request, partial(self.altered, [key for key, _ in rows]))

    def row(self, partition: Partition) -> Any:
        led = partition.led
        assert led is not None and led.proposal is not None
        state = m.AlterPartitionRequest_BrokerState
        epochs = {other: follower.broker_epoch for other, follower in led.followers.items()}
        epochs[self.node.id] = self.broker_epoch()
        return m.AlterPartitionRequest_PartitionData(
            partition_index=partition.index,
            leader_epoch=led.epoch,
            new_isr_with_epochs=[state(other, epochs[other]) for other in led.proposal.isr],
            leader_recovery_state=0,
            partition_epoch=led.proposal.partition_epoch,
        )

    def altered(self, keys: list[Key], response: Any) -> None:
        """Take over what the controller has decided; what it did not look at is asked again."""
        self.is_asking = False
        rows: dict[Key, Any] = {}
        if not isinstance(response, Lost) and not response.error_code:
            rows = {
                (bytes(topic.topic_id), row.partition_index): row
                for topic in response.topics
                for row in topic.partitions
            }
        for topic_id, index in keys:
            partition = self.node.replicas.by_id.get(topic_id, {}).get(index)
            if partition is not None and partition.led is not None:
                self.settle(partition, rows.get((topic_id, index)))
        if self.proposed:
            self.ask_ms = self.node.clock.monotonic_ms() + RETRY_MS

    def settle(self, partition: Partition, row: Any) -> None:
        led, committed = partition.led, partition.log.high_watermark
        assert led is not None
        if row is None or (row.error_code and Error(row.error_code) not in REFUSED):
            if led.proposal is not None:
                self.proposed[partition.topic_id, partition.index] = partition
            return
        if row.error_code:
            led.withdraw()
        elif row.leader_epoch == led.epoch and row.partition_epoch > led.partition_epoch:
            self.node.forget_heads()  # whoever asks for all replicas is told when they are too few
            self.node.cluster_counters.note_isr(partition.placement.isr, row.isr, led.replicas)
            partition.placement.isr = tuple(row.isr)
            partition.placement.partition_epoch = row.partition_epoch
            led.place(led.replicas, row.isr, row.partition_epoch, self.node.clock.monotonic_ms())
            log.info("in sync", partition=str(partition), isr=",".join(map(str, row.isr)))
        else:
            led.withdraw()
        partition.count_members()
        partition.synced()
        self.advance_from(partition, committed)
