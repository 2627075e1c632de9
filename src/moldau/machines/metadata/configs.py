"""Commands on the settings of resources: topics, brokers, client metrics and groups. They return ConfigRecords.

What a setting may be is the business of the settings table; the caller has it worked out the new overrides and hands
them over. Here is decided what has to do with the cluster: whether the resource exists, and which records say it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, Cluster
from moldau.machines.metadata.features import ELIGIBLE_LEADERS, MIN_INSYNC
from moldau.machines.metadata.topics import check_name
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

STORED = (TOPIC, BROKER, CLIENT_METRICS, GROUP)
LISTED = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
Overrides = Mapping[str, str]


def check_resource(kind: int, name: str) -> None:
    """Refuse a resource that cannot be, before anybody looks at its settings."""
    if kind == TOPIC and name:
        check_name(name)
    elif not name and kind != BROKER:
        raise Refused(Error.INVALID_REQUEST, "The name of the resource is empty; only brokers have settings for all.")


def replace(cluster: Cluster, kind: int, name: str, new: Overrides, touched: Collection[str] = ()) -> list[Any]:
    """Records that bring a resource from its overrides to the new ones; raises Refused.

    A broker's setting that was touched is written even if it stays as it was: a broker reads the files that it names
    again (KAFKA-14136).
    """
    if kind == TOPIC and name not in cluster.topics:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
    if kind == BROKER and cluster.features.get(ELIGIBLE_LEADERS):
        check_min_insync(cluster, name, new, touched)
    old = cluster.config(kind, name)
    changed = [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]
    again = [key for key in touched if kind == BROKER and key not in changed]
    return [m.ConfigRecord(kind, name, key, new.get(key)) for key in [*changed, *again]]


def check_min_insync(cluster: Cluster, name: str, new: Overrides, touched: Collection[str]) -> None:
    """Eligible leaders (KIP-966) need one min.insync.replicas for the cluster, always set."""
    if name and (MIN_INSYNC in touched or MIN_INSYNC in new):
        raise Refused(Error.INVALID_CONFIG, f"{MIN_INSYNC} is set for the cluster, not for a broker.")
    removed = MIN_INSYNC in touched or MIN_INSYNC in cluster.config(BROKER, "")
    if not name and removed and MIN_INSYNC not in new:
        raise Refused(Error.INVALID_CONFIG, f"{MIN_INSYNC} of the cluster can be changed, but not removed.")


def broker_layers(cluster: Cluster, broker_id: int) -> tuple[Overrides, Overrides]:
    """Return what was changed while running, for this broker and for all; both go before its own settings."""
    return cluster.config(BROKER, str(broker_id)), cluster.config(BROKER, "")


def list_resources(cluster: Cluster, kinds: Collection[int]) -> Iterator[tuple[int, str]]:
    """Resources that have, or could have, settings of their own; raises Refused for a kind that is none."""
    unknown = [kind for kind in kinds if kind not in LISTED]
    if unknown:
        raise Refused(Error.UNSUPPORTED_VERSION, f"There is no resource type {unknown[0]}.")
    return ((kind, name) for kind in LISTED if kind in kinds for name in names_of(cluster, kind))


def names_of(cluster: Cluster, kind: int) -> list[str]:
    if kind == TOPIC:
        return sorted(cluster.topics)
    if kind in (BROKER, BROKER_LOGGER):
        return [str(broker_id) for broker_id in sorted(cluster.brokers)]
    return sorted(name for stored, name in cluster.configs if stored == kind)


def duplicates(resources: Collection[Any]) -> set[tuple[int, str]]:
    """Resources that a request names more than once: each of them is refused."""
    seen: set[tuple[int, str]] = set()
    twice: set[tuple[int, str]] = set()
    for resource in resources:
        key = resource.resource_type, resource.resource_name
        (twice if key in seen else seen).add(key)
    return twice
