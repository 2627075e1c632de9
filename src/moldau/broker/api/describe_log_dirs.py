"""DescribeLogDirs (key 35), v1-5: the log directories, how full they are, and the partitions in each.

Null asks for all partitions; those that are not here are left out. A directory that failed is told with
KAFKA_STORAGE_ERROR. A replica that is being moved is in both directories: in the new one it is a future one, and lags.

v3 a code for the whole request.  v4 total and usable bytes (KIP-827).  v5 cordoned directories (KIP-1066).
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.topics import METADATA_TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(35, versions=(1, 5))
def describe_log_dirs(node: Node, connection: Connection, request: m.DescribeLogDirsRequest, version: int) -> Answer:
    asked = None if request.topics is None else {(t.topic, index) for t in request.topics for index in t.partitions}
    return m.DescribeLogDirsResponse(results=[describe(node, one, asked) for one in node.replicas.directories])


def describe(node: Node, directory: Any, asked: set[tuple[str, int]] | None) -> Any:
    room = space(node, directory)
    if room is None:
        return m.DescribeLogDirsResponse_DescribeLogDirsResult(Error.KAFKA_STORAGE_ERROR, directory.path)
    topics: dict[str, list[Any]] = {}
    for (topic, index), log in sorted(directory.logs.items()):
        if not log.offline and topic != METADATA_TOPIC and (asked is None or (topic, index) in asked):
            row = m.DescribeLogDirsResponse_DescribeLogDirsPartition(index, log.size)
            topics.setdefault(topic, []).append(row)
    for move in node.moves.to(directory):
        home = move.partition
        if asked is None or (home.topic, home.index) in asked:
            row = m.DescribeLogDirsResponse_DescribeLogDirsPartition(home.index, move.copy.log.size, move.lag, True)
            topics.setdefault(home.topic, []).append(row)
    rows = [m.DescribeLogDirsResponse_DescribeLogDirsTopic(*pair) for pair in topics.items()]
    is_cordoned = node.replicas.is_cordoned(directory)
    return m.DescribeLogDirsResponse_DescribeLogDirsResult(Error.NONE, directory.path, rows, *room, is_cordoned)


def space(node: Node, directory: Any) -> tuple[int, int] | None:
    """Return total and usable bytes; None where the directory has failed."""
    if directory.offline is None:
        try:
            return node.disk.space(directory.path)
        except OSError as error:
            directory.fail(f"The data directory {directory.path} cannot be used: {error}")
    return None
