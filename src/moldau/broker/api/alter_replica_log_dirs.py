"""AlterReplicaLogDirs (key 34), v1-2: move replicas between the log directories of this broker (KIP-113).

The path must be one of log.dirs to the letter, and is looked at before the partition. The move goes on after the answer
(moves.py). A replica that is not here yet is going to be made in that directory; the answer is an error all the same.
v2 is flexible.
Deviates: nothing known.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(34, versions=(1, 2))
def alter_replica_log_dirs(
    node: Node, connection: Connection, request: m.AlterReplicaLogDirsRequest, version: int
) -> Answer:
    wanted: dict[str, dict[int, str]] = {}  # of a partition that is named twice the last path counts
    for row in request.dirs:
        for topic in row.topics:
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, row.path))
    results = [
        m.AlterReplicaLogDirsResponse_AlterReplicaLogDirTopicResult(
            name,
            [
                m.AlterReplicaLogDirsResponse_AlterReplicaLogDirPartitionResult(index, move(node, name, index, path))
                for index, path in paths.items()
            ],
        )
        for name, paths in wanted.items()
        if paths
    ]
    return m.AlterReplicaLogDirsResponse(results=results)


def move(node: Node, topic: str, index: int, path: str) -> Error:
    """Begin a move, or call one off by a move to where the replica lies; returns the error."""
    replicas = node.replicas
    target = next((one for one in replicas.directories if one.path == path), None)
    if target is None:
        return Error.LOG_DIR_NOT_FOUND
    if replicas.is_cordoned(target):
        return Error.INVALID_REPLICA_ASSIGNMENT
    if target.offline:
        return Error.KAFKA_STORAGE_ERROR
    try:
        partition = replicas.replica(topic, index)
        if partition.log.offline is not None:
            return Error.KAFKA_STORAGE_ERROR
        node.moves.begin(partition, target)
    except Refused as refused:
        if refused.error is Error.NOT_LEADER_OR_FOLLOWER:  # it may be made here soon
            replicas.preferred[topic, index] = target
        return refused.error
    return Error.NONE
