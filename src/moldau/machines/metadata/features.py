"""Commands on feature levels (KIP-584): raise and lower them within what every registered node supports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from moldau.machines.metadata.cluster import BROKER, Cluster
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
METADATA_VERSION, KRAFT_VERSION, ELIGIBLE_LEADERS = (
    "metadata.version",
    "kraft.version",
    "eligible.leader.replicas.version",
)
ONE_WAY = (METADATA_VERSION, KRAFT_VERSION)
MIN_INSYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Wish:
    """A level that a client wants for a feature, and which direction it expects."""

    feature: str
    level: int
    kind: int = UPGRADE


def update_features(cluster: Cluster, wishes: Iterable[Wish], min_insync_replicas: int) -> list[Any]:
    """Records of all the wishes, or a refusal of all of them. Of a feature that is named twice the last counts."""
    final = {wish.feature: wish for wish in wishes}
    for wish in final.values():
        check(cluster, wish)
    records: list[Any] = []
    for wish in final.values():
        if wish.level != cluster.features.get(wish.feature, 0):
            records.append(m.FeatureLevelRecord(wish.feature, wish.level))
            if wish.feature == ELIGIBLE_LEADERS and wish.level:
                records += pin_min_insync(cluster, min_insync_replicas)
    return records


def check(cluster: Cluster, wish: Wish) -> None:
    """The checks in Kafka's order; each has the same code."""
    problem = objection(cluster, wish)
    if problem:
        raise Refused(Error.INVALID_UPDATE_VERSION, f"{wish.feature} cannot be set to level {wish.level}: {problem}.")


def objection(cluster: Cluster, wish: Wish) -> str | None:
    if wish.kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return f"there is no upgrade type {wish.kind}"
    if wish.level < 0:
        return "a level is never below 0"
    unsupported = next(missing_support(cluster, wish), None)
    if unsupported:
        return unsupported
    level = cluster.features.get(wish.feature, 0)
    if wish.level < level and wish.kind == UPGRADE:
        return f"that is lower than {level}, and the request does not ask for a downgrade"
    if wish.level > level and wish.kind != UPGRADE:
        return f"that is higher than {level}, and the request asks for a downgrade"
    if wish.level < level and wish.feature in ONE_WAY:
        return f"the cluster is at {level}, and what it has stored since could not be read at a lower level"
    return None


def missing_support(cluster: Cluster, wish: Wish) -> Iterator[str]:
    """Say which registered nodes cannot take a level."""
    nodes = [("broker", one.id, one.features) for _, one in sorted(cluster.brokers.items())]
    nodes += [("controller", one.id, one.features) for _, one in sorted(cluster.controllers.items())]
    for kind, node, features in nodes:
        levels = features.get(wish.feature)
        if levels is None:
            yield f"{kind} {node} does not know this feature"
        elif not levels[0] <= wish.level <= levels[1]:
            yield f"{kind} {node} supports levels {levels[0]} to {levels[1]}"


def pin_min_insync(cluster: Cluster, min_insync_replicas: int) -> list[Any]:
    """Eligible leaders (KIP-966) need one min.insync.replicas for the cluster: single brokers lose theirs."""
    records = [
        m.ConfigRecord(BROKER, name, MIN_INSYNC, None)
        for (kind, name), entries in cluster.configs.items()
        if kind == BROKER and name and MIN_INSYNC in entries
    ]
    if MIN_INSYNC not in cluster.config(BROKER, ""):
        records.append(m.ConfigRecord(BROKER, "", MIN_INSYNC, str(min_insync_replicas)))
    return records
