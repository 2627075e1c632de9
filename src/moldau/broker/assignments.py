"""Which directory a replica lies in: the controller is told where it believes something else (KIP-858).

If the directory of a leader fails, somebody else has to lead. A replica whose log is damaged lies in no directory: that
takes it out of the ISR, and nobody elects it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.outbox import Lost
from moldau.broker.partition import Partition
from moldau.broker.storage import id_bytes
from moldau.cluster.following import Key, by_topic
from moldau.machines.metadata.cluster import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from moldau.machines.metadata.topics import DIRECTORIES_SINCE
from moldau.wire import messages as m

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)
NO_DIRECTORY = (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)


class Assignments:
    """The replicas of which the controller believes that they lie elsewhere."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.misplaced: dict[Key, Partition] = {}
        self.is_asking = False

    def check(self, partition: Partition) -> None:
        """Note whether the controller has to be told where a replica lies; call it when either may have changed."""
        key = partition.topic_id, partition.index
        if self.is_misplaced(partition):
            self.misplaced[key] = partition
        else:
            self.misplaced.pop(key, None)

    def is_misplaced(self, partition: Partition) -> bool:
        """A node with one directory tells of damage and its end. Else the controller is wrong only if the disk was
        replaced before this process: it would elect nobody in the directory that is gone.
        """
        node, believed = self.node, believed_directory(partition)
        if node.membership is None or node.cluster.metadata_version < DIRECTORIES_SINCE:
            return False
        is_damaged = partition.log.offline is not None or believed == LOST_DIRECTORY
        if len(node.replicas.directories) == 1 and not is_damaged and believed in NO_DIRECTORY:
            return False
        return self.directory_of(partition) not in (None, believed)

    def directory_of(self, partition: Partition) -> bytes | None:
        """Return the id of the directory in which a replica lies, or is about to; None if that is nobody's business.

        The controller has to hear of a replica in a directory that is offline, too, if it has not before: it elects
        others only for those that it believes there. A damaged one that nobody else has stays as it is.
        """
        home, move = self.node.replicas.home_of(partition), self.node.moves.under_way.get(partition)
        if partition.log.offline is None:
            return id_bytes(move.target.id if move is not None and move.is_ready else home.id)
        if home.offline is not None:
            return id_bytes(home.id) if home.id else LOST_DIRECTORY
        return LOST_DIRECTORY if len(partition.placement.replicas) > 1 else None

    def tell(self) -> None:
        """Tell the controller, and again until the metadata says so."""
        known = self.node.replicas.by_id
        wanted: dict[bytes, list[tuple[Key, None]]] = {}
        for key, partition in tuple(self.misplaced.items()):
            if known.get(key[0], {}).get(key[1]) is not partition or not self.is_misplaced(partition):
                del self.misplaced[key]
            elif where := self.directory_of(partition):
                wanted.setdefault(where, []).append((key, None))
        if self.is_asking or not wanted or self.node.membership is None:
            return
        self.is_asking = True
        directories = [
            m.AssignReplicasToDirsRequest_DirectoryData(where, [topic_row(*item) for item in by_topic(some).items()])
            for where, some in wanted.items()
        ]
        request = m.AssignReplicasToDirsRequest(self.node.id, self.node.metadata.broker_epoch, directories)
        self.node.membership.ask_controller(request, self.answered)

    def answered(self, response: Any) -> None:
        self.is_asking = False
        if isinstance(response, Lost) or response.error_code:
            log.debug("the controller was not told where replicas lie")


def believed_directory(partition: Partition) -> bytes | None:
    """Return where the controller believes this node's replica to lie."""
    placement = partition.placement
    pairs = dict(zip(placement.replicas, placement.directories, strict=False))
    return pairs.get(partition.node_id)


def topic_row(topic_id: bytes, parts: list[tuple[int, None]]) -> Any:
    rows = [m.AssignReplicasToDirsRequest_PartitionData(index) for index, _ in parts]
    return m.AssignReplicasToDirsRequest_TopicData(topic_id, rows)
