"""The settings that elections depend on, and what a change of them does to the partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from moldau.machines.metadata.cluster import BROKER, TOPIC, Cluster
from moldau.machines.metadata.features import ELIGIBLE_LEADERS, MIN_INSYNC
from moldau.wire import messages as m

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class Policy(NamedTuple):
    """What a topic's settings say, by its name."""

    min_insync: Callable[[str], int]
    unclean: Callable[[str], bool]


def policy_of(image: Cluster, min_insync: int = 1, unclean: bool = False) -> Policy:
    """Read the settings of topics from the image; the arguments are the controller's own, which come last."""

    def setting(topic: str, name: str) -> str | None:
        return image.config(TOPIC, topic).get(name) or image.config(BROKER, "").get(name)

    def topic_min_insync(topic: str) -> int:
        value = setting(topic, MIN_INSYNC)
        return min_insync if value is None else int(value)

    def topic_unclean(topic: str) -> bool:
        value = setting(topic, UNCLEAN_ELECTION)
        return unclean if value is None else value.strip().lower() == "true"

    return Policy(topic_min_insync, topic_unclean)


def uses_eligible_leaders(image: Cluster) -> bool:
    """Whether the cluster keeps eligible leader replicas (KIP-966)."""
    return image.features.get(ELIGIBLE_LEADERS, 0) > 0


def clear_eligible_leaders(image: Cluster, changes: Iterable[Any]) -> list[Any]:
    """Return what must follow ConfigRecords: who is eligible rests on min.insync.replicas, so it is forgotten."""
    if not uses_eligible_leaders(image):
        return []
    changed = [one for one in changes if one.SCHEMA.name == "ConfigRecord" and one.name == MIN_INSYNC]
    return [m.ClearElrRecord(one.resource_name if one.resource_type == TOPIC else "") for one in changed]
