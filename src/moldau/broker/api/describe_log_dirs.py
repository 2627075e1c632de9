"""DescribeLogDirs (key 35), v1-5: the log directories, how full they are, and the partitions in each.

Null asks for all partitions; those that are not here are left out. A directory that failed is told with
KAFKA_STORAGE_ERROR. The lag of a replica that is not being moved is 0.

v3 a code for the whole request.  v4 total and usable bytes (KIP-827).  v5 cordoned directories: there are none.
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import api
from moldau.wire import messages as m
from moldau.wire.errors import Error


@api(35, versions=(1, 5))
def describe_log_dirs(node, connection, request, version):
    asked = None if request.topics is None else {(t.topic, index) for t in request.topics for index in t.partitions}
    sizes: dict[str, dict[str, list[Any]]] = {}
    for partition in node.replicas:
        if partition.log.offline or (asked is not None and (partition.topic, partition.index) not in asked):
            continue
        topics = sizes.setdefault(node.replicas.directory_of(partition).path, {})
        row = m.DescribeLogDirsResponse_DescribeLogDirsPartition(partition.index, partition.log.size)
        topics.setdefault(partition.topic, []).append(row)
    results = [describe(node, directory, sizes) for directory in node.replicas.directories]
    return m.DescribeLogDirsResponse(results=results)


def describe(node: Any, directory: Any, sizes: dict[str, dict[str, list[Any]]]) -> Any:
    path = directory.path
    if directory.offline:
        return m.DescribeLogDirsResponse_DescribeLogDirsResult(Error.KAFKA_STORAGE_ERROR, path)
    topics = [m.DescribeLogDirsResponse_DescribeLogDirsTopic(*pair) for pair in sizes.get(path, {}).items()]
    total, usable = node.disk.space(path)
    return m.DescribeLogDirsResponse_DescribeLogDirsResult(Error.NONE, path, topics, total, usable)
