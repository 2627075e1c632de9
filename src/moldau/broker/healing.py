"""Damaged replicas: taken out of service, and fetched again from the leader when nothing can be lost by it.

`cluster/healing.py` says when. Logs report damage to their directory, whoever finds it: the recovery at a start, a read
for a client or a follower, retention, the cleaner. Once a second it is looked at here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau import logs
from moldau.broker.partition import Partition
from moldau.cluster.healing import can_be_spared, may_begin_anew
from moldau.log.directory import Directory

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)

AGAIN_MS = 600_000.0  # a disk that damages a log again and again is not filled again and again


class Healing:
    """The damaged replicas of this node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.damaged: dict[Partition, str] = {}
        self.begun_ms: dict[tuple[bytes, int], float] = {}  # when a log was last thrown away

    def look(self) -> None:
        """Take damaged replicas out of service, and begin those anew that may."""
        if self.node.membership is None:
            return
        for directory in self.node.replicas.directories:
            if directory.damaged:
                self.take_out(directory)
        for partition, reason in tuple(self.damaged.items()):
            if self.node.replicas.by_id.get(partition.topic_id, {}).get(partition.index) is not partition:
                del self.damaged[partition]
            elif may_begin_anew(partition.placement, self.node.id) and self.is_time(partition):
                self.begin_anew(partition, reason)

    def take_out(self, directory: Directory) -> None:
        """Stop using the logs that are damaged, as far as others have what is committed."""
        found = dict(directory.damaged)
        directory.damaged.clear()
        for one, reason in () if directory.offline is not None else found.items():
            partition = self.node.replicas.by_name.get(one.topic, {}).get(one.partition)
            if partition is None or partition.log is not one or len(partition.placement.replicas) == 1:
                continue
            if one.offline is None:
                if not can_be_spared(partition.placement, self.node.id):
                    log.error("a damaged log is still used: nobody else is in sync", reason=reason)
                    continue
                one.fail(reason)
                directory.damaged.pop(one, None)
            self.damaged[partition] = reason
            self.node.replication.unfollow(partition)
            self.node.replicas.advanced(partition)
            self.node.assignments.check(partition)

    def is_time(self, partition: Partition) -> bool:
        now, key = self.node.clock.monotonic_ms(), (partition.topic_id, partition.index)
        if now < self.begun_ms.get(key, -AGAIN_MS) + AGAIN_MS:
            return False
        self.begun_ms[key] = now
        return True

    def begin_anew(self, partition: Partition, reason: str) -> None:
        """Throw the log away, and follow the leader with an empty one."""
        del self.damaged[partition]
        topic = self.node.cluster.topics_by_id[partition.topic_id]
        log.warning("a damaged log is fetched again", partition=str(partition), reason=reason)
        self.node.replicas.remove(topic, partition)
        self.node.replicas.open_topic(topic, partition.index)
