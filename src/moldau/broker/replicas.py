"""The partitions that this node keeps: opened, changed and deleted as the metadata says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau import settings as table
from moldau.broker.partition import Partition, Then
from moldau.log.config import LogConfig
from moldau.log.directory import Directory
from moldau.log.flush import Flush
from moldau.log.log import Log
from moldau.machines.metadata.cluster import BROKER, TOPIC, Topic
from moldau.machines.metadata.records import TOPIC as METADATA_TOPIC
from moldau.settings import Settings
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

Table = Mapping[Any, Mapping[int, Partition]]  # by the topic's id or name, and by index


class Replicas:
    """Partitions by topic name and by topic id; both tables hold the same dictionaries."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.directories: list[Directory] = []
        self.by_name: dict[str, dict[int, Partition]] = {}
        self.by_id: dict[bytes, dict[int, Partition]] = {}
        self.flushing: set[Partition] = set()
        self.all_found = False  # the directories have been searched for all partitions of the metadata
        self.missing: set[bytes] = set()  # topics with partitions that could not be made
        self.configs: dict[str, tuple[Settings, Mapping[str, str], dict[str, Any], LogConfig]] = {}
        self.preferred: dict[tuple[str, int], Directory] = {}  # where replicas are to be made that are not here yet

    def __iter__(self) -> Iterator[Partition]:
        return (partition for partitions in self.by_id.values() for partition in partitions.values())

    def table(self, by_id: bool) -> Table:
        """Return the partitions by topic id, or by topic name."""
        return self.by_id if by_id else self.by_name

    def leader(self, topic: str, index: int) -> Partition:
        """Return the partition if this node leads it; raises Refused."""
        partition = self.replica(topic, index)
        error = partition.leader_error(-1)
        if error:
            raise Refused(error, f"This broker does not lead {topic}-{index}.")
        return partition

    def replica(self, topic: str, index: int) -> Partition:
        """Return the partition if this node has it, as its leader or a follower; raises Refused."""
        partitions = self.by_name.get(topic)
        partition = partitions.get(index) if partitions else None
        if partition is None:
            known = self.node.cluster.topics.get(topic)
            if known is not None and index in known.partitions:
                raise Refused(Error.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is not on this broker.")
            raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
        return partition

    # What the metadata asks for.

    def open_all(self) -> None:
        """After the image is rebuilt: open what it gives to this node, set aside what it does not know."""
        for topic in self.node.cluster.topics.values():
            self.open_topic(topic)
        self.all_found = True
        for directory in self.directories:
            for name, index in sorted(directory.found - directory.logs.keys()):
                if name != METADATA_TOPIC:
                    log.warning("a folder belongs to no topic of this cluster; set aside", partition=f"{name}-{index}")
                    directory.set_stray_aside(name, index, self.unique())
            directory.make_certain()

    def open_topic(self, topic: Topic, only: int | None = None) -> None:
        """Open the partitions of a topic, or one of them, that are placed here and are not open yet."""
        partitions = self.by_id.setdefault(topic.id, {})
        self.by_name[topic.name] = partitions
        values, config = self.config_of(topic.name)
        for index, placement in topic.partitions.items() if only is None else [(only, topic.partitions[only])]:
            partition = partitions.get(index)
            if self.node.id not in placement.replicas:
                if partition is not None:
                    self.remove(topic, partition)
                continue
            if partition is None:
                try:
                    opened = self.open_log(topic, index, config)
                except Refused as refused:
                    log.error("cannot make a partition yet", partition=f"{topic.name}-{index}", reason=refused.message)
                    self.missing.add(topic.id)
                    continue
                partition = partitions[index] = Partition(topic.name, topic.id, index, opened, self.node.id)
                partition.min_insync_replicas = values["min.insync.replicas"]
                self.node.replication.place(partition, placement)
                self.node.moves.resume(partition)
                continue
            self.node.replication.place(partition, placement)

    def open_missing(self) -> None:
        """Try again to make the partitions for which there was no room."""
        topics = [self.node.cluster.topics_by_id.get(topic_id) for topic_id in sorted(self.missing)]
        self.missing = set()
        for topic in topics:
            if topic is not None:
                self.open_topic(topic)

    def open_log(self, topic: Topic, index: int, config: LogConfig) -> Log:
        """Open a log where it lies or create it, in the working directory with the fewest logs.

        At a start with a directory that is offline, what is not found elsewhere must be thought to lie there. A folder
        whose topic id a loss of power has taken was never synced. It is used on a node that is alone; in a cluster it
        may be of a topic that was deleted while this node was away, and the other replicas have what is in it.
        """
        now = self.node.clock.wall_ms()
        allowed = (None, topic.id) if self.node.membership is None else (topic.id,)
        key = topic.name, index
        homes = [directory for directory in self.directories if key in directory.found]
        if len(homes) > 1:  # a creation that failed has left a folder without an id
            homes.sort(key=lambda directory: directory.topic_id(*key) != topic.id)
        for directory in homes:
            found = directory.load(topic.name, index, config, now_ms=now)
            if found.offline is not None or found.topic_id in allowed:
                return found
            found.close()
            del directory.logs[key]
            directory.set_stray_aside(topic.name, index, self.unique())
        offline = [directory for directory in self.directories if directory.offline is not None]
        if offline and not self.all_found:
            return offline[0].absent(topic.name, index, config, now_ms=now)
        return self.create_log(topic, index, config, now)

    def create_log(self, topic: Topic, index: int, config: LogConfig, now_ms: int) -> Log:
        for directory in self.directories:
            directory.make_way(topic.name, index)
        working = [directory for directory in self.directories if directory.offline is None]
        wanted = self.preferred.pop((topic.name, index), None)
        problem = Refused(Error.KAFKA_STORAGE_ERROR, "No data directory is usable.")
        for directory in sorted(working, key=lambda one: (one is not wanted, self.is_cordoned(one), len(one.logs))):
            try:
                return directory.create(topic.name, index, config, topic_id=topic.id, now_ms=now_ms)
            except Refused as refused:
                problem = refused
        raise problem

    def is_cordoned(self, directory: Directory) -> bool:
        """Tell whether a directory gets no new replicas (KIP-1066)."""
        cordoned = self.node.settings["cordoned.log.dirs"]
        return "*" in cordoned or directory.path in cordoned

    def remove(self, topic: Topic, partition: Partition) -> None:
        """Close and delete a partition that only other brokers keep from now on, or that is begun anew."""
        log.info("removed", partition=str(partition))
        self.node.moves.cancel(partition)
        partition.follow(topic.partitions[partition.index])
        self.node.replication.unfollow(partition)
        self.node.leadership_changed(partition)
        del self.by_id[topic.id][partition.index]
        self.node.cleaner.forget(partition.log)
        home = self.home_of(partition)
        home.delete(partition.log, self.unique(), now_ms=self.node.clock.wall_ms())
        home.make_certain()
        self.advanced(partition)

    def remove_topic(self, topic: Topic) -> None:
        """Close and delete the partitions of a topic that is gone; who waits for them is told."""
        partitions = self.by_id.pop(topic.id, {})
        self.by_name.pop(topic.name, None)
        self.configs.pop(topic.name, None)
        homes = {id(home): home for home in map(self.home_of, partitions.values())}
        for partition in partitions.values():
            self.node.moves.cancel(partition)
            self.node.cleaner.forget(partition.log)
            self.node.replication.unfollow(partition)
            self.home_of(partition).delete(partition.log, self.unique(), now_ms=self.node.clock.wall_ms())
            partition.abandon(Error.UNKNOWN_TOPIC_OR_PARTITION)
            self.advanced(partition)
        for home in homes.values():
            home.make_certain()

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply changed settings of a topic, or of all."""
        names = self.by_name if topic is None else [topic]
        for name in names:
            values, config = self.config_of(name)
            for partition in self.by_name.get(name, {}).values():
                partition.log.configure(config)
                partition.min_insync_replicas = values["min.insync.replicas"]
                partition.count_members()
                partition.synced()  # flush.messages may promise less than before
                self.advanced(partition)

    def config_of(self, topic: str) -> tuple[dict[str, Any], LogConfig]:
        """Return the settings of a topic; they are made once for all of its partitions, and again when they change."""
        given, settings = self.node.cluster.config(TOPIC, topic), self.node.settings
        known = self.configs.get(topic)
        if known is None or known[0] is not settings or known[1] != given:
            values = table.topic_settings(settings, table.understood(table.TOPIC, given))
            values |= {"producer.id.expiration.ms": settings["producer.id.expiration.ms"]}
            known = self.configs[topic] = settings, dict(given), values, LogConfig.of(values)
        return known[2], known[3]

    def home_of(self, partition: Partition) -> Directory:
        key = partition.topic, partition.index
        return next(d for d in self.directories if d.logs.get(key) is partition.log)

    def unique(self) -> str:
        """Return a random text for the name of a folder that is set aside."""
        return self.node.random.randbytes(16).hex()

    # Commits, and flushes: prepared here, synced in the background, completed here.

    def commit(self, partition: Partition, then: Then) -> None:
        """Call `then` when all that is in the log now is committed; sync it if that was promised."""
        if partition.must_sync():
            self.flush(partition)
        partition.on_commit(partition.log.end_offset, then)
        self.node.signal(partition)

    def advanced(self, partition: Partition) -> None:
        """Tell all who wait that the high watermark has moved, or never will again."""
        partition.settle()
        self.node.signal(partition)
        self.node.signal(partition.log)

    def flush(self, partition: Partition) -> None:
        """Sync a log in the background. Appends that come meanwhile share the next sync."""
        if partition in self.flushing:
            return
        try:
            flush = partition.log.prepare_flush(self.node.clock.wall_ms())
        except Refused as refused:
            log.error("a log cannot be flushed", partition=str(partition), reason=refused.message)
            return
        if flush is not None:
            self.flushing.add(partition)
            self.node.background.submit(flush.sync, partial(self.flushed, partition, flush))

    def flushed(self, partition: Partition, flush: Flush, outcome: Any) -> None:
        self.flushing.discard(partition)
        if isinstance(outcome, BaseException):
            partition.log.fail(f"{partition.log.path} cannot be synced: {outcome}")
        else:
            flush.complete()
            partition.synced()
            if partition is self.node.metadata.home and self.node.quorum is not None:
                self.node.quorum.synced()
        self.node.replication.synced(partition)
        self.advanced(partition)
        if partition.must_sync() or partition.log in self.node.waits.watched:  # some came while this one was under way
            self.flush(partition)

    def checkpoint(self) -> None:
        """Write the offsets from which a restart goes on."""
        for directory in self.directories:
            directory.checkpoint()


# What a committed record means for the partitions of this node. Records without a row only change the image.


def on_partition(node: Node, record: Any) -> None:
    topic = node.cluster.topics_by_id.get(bytes(record.topic_id))
    if topic is not None:  # it may be deleted by a record that came along
        node.replicas.open_topic(topic, record.partition_id)


def on_config(node: Node, record: Any) -> None:
    node.share_partitions.settings.clear()
    if record.resource_type == TOPIC:
        node.replicas.reconfigure(record.resource_name)
    elif record.resource_type == BROKER:
        node.load_dynamic_settings()
        node.replicas.reconfigure()


EFFECTS: dict[str, Callable[[Node, Any], None]] = {
    "PartitionRecord": on_partition,
    "PartitionChangeRecord": on_partition,
    "ConfigRecord": on_config,
    "ClientQuotaRecord": lambda node, _: node.enforce_quotas(),
}
