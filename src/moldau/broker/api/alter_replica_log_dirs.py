"""AlterReplicaLogDirs (key 34), v1-2: move replicas between the log directories of this broker (KIP-113).

The path must be one of log.dirs to the letter, and is looked at before the partition.
v2 is flexible.
Deviates: a replica that lies elsewhere is not moved (KAFKA_STORAGE_ERROR); to ask for where it lies succeeds.
"""

from __future__ import annotations

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error


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
    target = next((one for one in node.replicas.directories if one.path == path), None)
    if target is None:
        return Error.LOG_DIR_NOT_FOUND
    if target.offline:
        return Error.KAFKA_STORAGE_ERROR
    partition = node.replicas.by_name.get(topic, {}).get(index)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    if partition.log.offline or target.logs.get((topic, index)) is not partition.log:
        return Error.KAFKA_STORAGE_ERROR
    return Error.NONE
