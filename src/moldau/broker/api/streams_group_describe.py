"""StreamsGroupDescribe (key 89), v0: topology, members, epochs and tasks of streams groups (KIP-1071).

Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.groups import describe_groups
from moldau.broker.node import Node
from moldau.broker.streams_groups import is_enabled
from moldau.machines.streams.configuring import Configured, InternalTopic
from moldau.machines.streams.group import StreamsGroup
from moldau.machines.streams.members import Member
from moldau.machines.streams.tasks import NO_TASKS, Kind, task_rows
from moldau.wire import messages as m


@api(89, versions=(0, 0), reads="groups")
def streams_group_describe(
    node: Node, connection: Connection, request: m.StreamsGroupDescribeRequest, version: int
) -> Answer:
    def describe(group: StreamsGroup) -> Any:
        return row(
            group_id=group.id,
            group_state=group.state_name(),
            group_epoch=group.epoch,
            assignment_epoch=group.target_epoch,
            topology=topology_row(group),
            members=[member_row(group, member) for member in group.members.values()],
        )

    row = m.StreamsGroupDescribeResponse_DescribedGroup
    rows = describe_groups(node, request, "streams", row, describe, is_enabled(node))
    return m.StreamsGroupDescribeResponse(groups=rows)


def topology_row(group: StreamsGroup) -> Any:
    """Describe the topology: with the decided partitions once it is ready to run, as it was given until then."""
    if group.configured is not None and group.configured.is_ready:
        return configured_row(group.configured)
    if group.topology is None:
        return None
    parts = [
        m.StreamsGroupDescribeResponse_Subtopology(
            part.subtopology_id,
            sorted(part.source_topics),
            sorted(part.repartition_sink_topics),
            sorted(map(given_topic, part.state_changelog_topics), key=by_name),
            sorted(map(given_topic, part.repartition_source_topics), key=by_name),
        )
        for part in sorted(group.topology.subtopologies, key=lambda part: part.subtopology_id)
    ]
    return m.StreamsGroupDescribeResponse_Topology(group.topology.epoch, parts)


def configured_row(configured: Configured) -> Any:
    parts = [
        m.StreamsGroupDescribeResponse_Subtopology(
            name,
            sorted(part.sources),
            sorted(part.sinks),
            decided_topics(part.changelogs.values()),
            decided_topics(part.repartitions.values()),
        )
        for name, part in configured.subtopologies.items()
    ]
    return m.StreamsGroupDescribeResponse_Topology(configured.epoch, parts)


def decided_topics(topics: Iterable[InternalTopic]) -> list[Any]:
    rows = [topic_row(topic.name, topic.partitions, topic.replication, topic.configs.items()) for topic in topics]
    return sorted(rows, key=by_name)


def given_topic(topic: Any) -> Any:
    configs = [(pair.key, pair.value) for pair in topic.topic_configs]
    return topic_row(topic.name, topic.partitions, topic.replication_factor, configs)


def topic_row(name: str, partitions: int, replication: int, configs: Iterable[tuple[str, str]]) -> Any:
    pairs = [m.StreamsGroupDescribeResponse_KeyValue(*pair) for pair in configs]
    return m.StreamsGroupDescribeResponse_TopicInfo(name, partitions, replication, pairs)


def by_name(row: Any) -> str:
    return row.name


def member_row(group: StreamsGroup, member: Member) -> Any:
    return m.StreamsGroupDescribeResponse_Member(
        member_id=member.id,
        member_epoch=member.epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.endpoint and m.StreamsGroupDescribeResponse_Endpoint(*member.endpoint),
        client_tags=[m.StreamsGroupDescribeResponse_KeyValue(*tag) for tag in member.tags],
        assignment=assignment(member.assigned),
        target_assignment=assignment(group.target.get(member.id, NO_TASKS)),
    )


def assignment(tasks: Mapping[Kind, Collection[int]]) -> Any:
    return m.StreamsGroupDescribeResponse_Assignment(**task_rows(tasks, m.StreamsGroupDescribeResponse_TaskIds))
