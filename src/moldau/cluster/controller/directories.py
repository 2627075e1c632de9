"""AssignReplicasToDirs: a broker says in which of its directories replicas lie (KIP-858).

A replica in a directory that has failed is out of sync: others are elected in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.cluster.controller.changes import Election, Wanted, change, is_online, remove, rules_of
from moldau.cluster.controller.policy import Policy
from moldau.cluster.controller.result import Result, broker_error
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.locations import Place
from moldau.machines.metadata.topics import DIRECTORIES_SINCE
from moldau.wire import messages as m
from moldau.wire.errors import Error


def assign_directories(image: Cluster, request: Any, policy: Policy) -> Result:
    """Answer AssignReplicasToDirs."""
    is_known = image.metadata_version >= DIRECTORIES_SINCE
    error = broker_error(image, request.broker_id, request.broker_epoch) if is_known else Error.UNSUPPORTED_VERSION
    if error:
        return Result([], m.AssignReplicasToDirsResponse(error_code=error))
    found = list[tuple[Place, bytes]]()
    answers = [assign_to(image, request.broker_id, named, found) for named in request.directories]
    records = [*assign(image, policy, request.broker_id, found)]
    return Result(records, m.AssignReplicasToDirsResponse(directories=answers))


def assign_to(image: Cluster, broker_id: int, named: Any, found: list[tuple[Place, bytes]]) -> Any:
    """Answer for one directory: adds the partitions that can lie there, and returns its rows."""
    topics: list[Any] = []
    for asked in named.topics:
        rows: list[Any] = []
        for one in asked.partitions:
            place = find(image, broker_id, bytes(asked.topic_id), one.partition_index)
            if not isinstance(place, Error):
                found.append((place, bytes(named.id)))
            error = place if isinstance(place, Error) else Error.NONE
            rows.append(m.AssignReplicasToDirsResponse_PartitionData(one.partition_index, error))
        topics.append(m.AssignReplicasToDirsResponse_TopicData(asked.topic_id, rows))
    return m.AssignReplicasToDirsResponse_DirectoryData(named.id, topics)


def find(image: Cluster, broker_id: int, topic_id: bytes, index: int) -> Place | Error:
    """Return a partition that the broker keeps, or why there is none."""
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        return Error.UNKNOWN_TOPIC_ID
    part = topic.partitions.get(index)
    if part is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return (topic, part) if broker_id in part.replicas else Error.NOT_LEADER_OR_FOLLOWER


def assign(image: Cluster, policy: Policy, broker_id: int, found: list[tuple[Place, bytes]]) -> Iterator[Any]:
    """Yield the records that replicas lie in directories, unless that is known, and those of the failed ones."""
    rules, online = rules_of(image, policy), image.brokers[broker_id].log_dirs
    for place, directory in found:
        record = change(rules, *place, Wanted(directories={broker_id: directory}, election=Election.ONLINE))
        if record is not None:
            yield record
    failed = {(topic.id, part.index): (topic, part) for (topic, part), where in found if not is_online(where, online)}
    yield from remove(rules_of(image, policy, leaving=broker_id), failed.values(), broker_id)
