"""Membership of a streams group (KIP-1071): the tasks of one subtopology, one for each partition of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from tests.simulation.groups.classic import Partitions
from tests.simulation.groups.consumer import JOIN, LEAVE, ConsumerMember, Slot
from tests.simulation.groups.roster import Roster
from tests.simulation.ledger import Ledger
from tests.simulation.plan import CHANGELOG

if TYPE_CHECKING:
    from tests.simulation.world import World

SUBTOPOLOGY = "0"


class Streams:
    """Says which tasks it runs, and is told which ones to run."""

    version = 0

    def request(self, member: ConsumerMember, owned: list[Ledger]) -> Any:
        known = m.StreamsGroupHeartbeatRequest(
            group_id=member.roster.name, member_id=member.id, member_epoch=member.epoch
        )
        if member.unsure or member.epoch == JOIN:
            known.rebalance_timeout_ms = member.world.plan.rebalance_ms
            known.process_id = f"p-{member.id}"
            known.client_tags = []
        if member.epoch == JOIN:
            known.topology = topology(member)
        if member.unsure or member.epoch == JOIN or member.said != owned:
            indexes = [ledger.index for ledger in owned]
            known.active_tasks = [m.StreamsGroupHeartbeatRequest_TaskIds(SUBTOPOLOGY, indexes)] if indexes else []
            known.standby_tasks, known.warmup_tasks = [], []
        return known

    def assigned(self, member: ConsumerMember, answer: Any) -> list[Slot] | None:
        if answer.active_tasks is None:
            return None
        (topic,) = member.roster.topics
        return [(topic.id, index) for row in answer.active_tasks for index in row.partitions]

    def farewell(self, member: ConsumerMember) -> Any:
        return m.StreamsGroupHeartbeatRequest(group_id=member.roster.name, member_id=member.id, member_epoch=LEAVE)


def topology(member: ConsumerMember) -> Any:
    """What reads the input; with state, which needs a topic that the coordinator makes."""
    part = m.StreamsGroupHeartbeatRequest_Subtopology(
        subtopology_id=SUBTOPOLOGY, source_topics=[topic.name for topic in member.roster.topics]
    )
    if member.world.plan.stateful:
        name = f"{member.roster.name}{CHANGELOG}"
        part.state_changelog_topics = [m.StreamsGroupHeartbeatRequest_TopicInfo(name, 0, 1)]
    return m.StreamsGroupHeartbeatRequest_Topology(0, [part])


def streams_member(world: World, roster: Roster, name: str, instance: str | None, client: Partitions) -> ConsumerMember:
    """Static members are not supported yet, by Kafka either."""
    return ConsumerMember(world, roster, name, None, client, Streams())
