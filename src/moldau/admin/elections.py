"""Elections of partition leaders."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from moldau.admin import TIMEOUT_MS, TopicPartition, by_topic
from moldau.client import CONTROLLER, Client, Error, check
from moldau.client import messages as m


class ElectionType(IntEnum):
    """The first replica that is in sync, or any that lives."""

    PREFERRED = 0
    UNCLEAN = 1


def elect(
    client: Client, kind: ElectionType, places: Iterable[TopicPartition] | None
) -> dict[TopicPartition, tuple[Error, str | None]]:
    """Elect leaders of these partitions, or of all; what became of each, in the broker's words."""
    topics = None
    if places is not None:
        topics = [m.ElectLeadersRequest_TopicPartitions(topic, parts) for topic, parts in by_topic(places).items()]
    answer = client.send(m.ElectLeadersRequest(kind, topics, TIMEOUT_MS), CONTROLLER)
    if answer.error_code:
        check(answer)
    return {
        (row.topic, part.partition_id): (Error(part.error_code), part.error_message)
        for row in answer.replica_election_results
        for part in row.partition_result
    }
