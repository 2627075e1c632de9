"""Feature levels (KIP-584): what this release can do, and where a new cluster starts. Kafka's own numbers."""

from __future__ import annotations

from typing import NamedTuple


class Feature(NamedTuple):
    """Supported levels of one feature, and the level that a new cluster gets."""

    name: str
    low: int
    high: int
    initial: int


# By this one can tell Moldau's brokers from Kafka's: it is in their registration and in ApiVersions, and has no level.
KIND = Feature("moldau.version", 0, 1, 0)

SUPPORTED = (
    Feature("metadata.version", 7, 30, 30),
    Feature("kraft.version", 0, 1, 0),
    Feature("transaction.version", 0, 2, 2),
    Feature("group.version", 0, 1, 1),
    Feature("eligible.leader.replicas.version", 0, 1, 1),
    Feature("share.version", 0, 1, 1),
    Feature("streams.version", 0, 1, 1),
)
