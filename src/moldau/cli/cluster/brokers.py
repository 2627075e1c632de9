"""`moldau cluster info`, `brokers`, `features` and `apis`: what a cluster consists of."""

from __future__ import annotations

from typing import Any

from moldau.admin import clusters, groups, health, log_dirs, topics
from moldau.cli.cluster.verbs import verb
from moldau.cli.output import Column, pick, size
from moldau.cli.session import Session
from moldau.wire import schema

FENCED, SILENT, UP = "fenced", "silent", "up"


@verb("info", "moldau cluster info", "moldau cluster info -o json")
def info(session: Session) -> None:
    """Show a summary of the cluster."""
    state = clusters.described(session.client)
    listed = topics.listed(session.client)
    quorum = clusters.known_quorum(session.client)
    session.show(
        {
            "id": state.id,
            "controller": quorum.leader if quorum else state.controller,
            "brokers": len(state.brokers),
            "topics": len([one for one in listed if not one.internal]),
            "internal_topics": len([one for one in listed if one.internal]),
            "partitions": sum(len(one.partitions) for one in listed),
            "groups": len(groups.listed(session.client)),
        }
    )


@verb("brokers", "moldau cluster brokers", "moldau cluster brokers -o json")
def brokers(session: Session) -> None:
    """List brokers: whose they are, their state, what they lead and keep, and the space that it takes.

    A broker is fenced while the controller does not hear from it. Replicas that are not in sync lag behind their
    leaders, or are offline.
    """
    state = clusters.described(session.client, fenced=True)
    alive = [one.id for one in state.brokers if not one.is_fenced]
    kinds = clusters.kinds(session.client, alive, health.ANSWER_S)
    folders = log_dirs.answered(session.client, kinds, health.ANSWER_S)
    listed = topics.listed(session.client)
    quorum = clusters.known_quorum(session.client)
    session.show([_broker(one, kinds, folders, listed, quorum) for one in state.brokers], BROKER_COLUMNS)


BROKER_COLUMNS = (
    "id",
    "address",
    "rack",
    "kind",
    "state",
    "quorum",
    "leaders",
    "replicas",
    "not_in_sync",
    Column("size", "size", size),
    Column("free", "free", size),
)


def _broker(
    one: clusters.BrokerState,
    kinds: dict[int, str],
    folders: dict[int, list[log_dirs.LogDir]],
    listed: list[topics.TopicState],
    quorum: clusters.Quorum | None,
) -> dict[str, Any]:
    parts = [part for topic in listed for part in topic.partitions]
    known = folders.get(one.id)
    usable = [folder.usable_bytes for folder in known or () if folder.usable_bytes >= 0]
    role = _role(one.id, quorum)
    return {
        "id": one.id,
        "address": f"{one.host}:{one.port}",
        "rack": one.rack,
        "kind": kinds.get(one.id),
        "state": FENCED if one.is_fenced else UP if one.id in kinds else SILENT,
        "quorum": role,
        "controller": role == "leader" if quorum else one.is_controller,
        "fenced": one.is_fenced,
        "leaders": sum(part.leader == one.id for part in parts),
        "replicas": sum(one.id in part.replicas for part in parts),
        "not_in_sync": sum(one.id in part.replicas and one.id not in part.isr for part in parts),
        "size": None if known is None else sum(replica.size for folder in known for replica in folder.replicas),
        "free": min(usable) if usable else None,
        "log_dirs": [folder.path for folder in known or ()],
    }


def _role(broker: int, quorum: clusters.Quorum | None) -> str | None:
    """Return the part that a node plays in the quorum; brokers that do not vote have none."""
    if quorum is None or all(one.id != broker or not one.is_voter for one in quorum.replicas):
        return None
    return "leader" if quorum.leader == broker else "voter"


@verb("features", "moldau cluster features")
def features(session: Session) -> None:
    """List features, their levels, and the levels that the brokers support."""
    state = clusters.described(session.client)
    listed, epoch = clusters.features(session.client, state.brokers[0].id)
    session.show([{**pick(one, "feature=name", "level", "lowest", "highest"), "epoch": epoch} for one in listed])


@verb("apis", "moldau cluster apis")
def apis(session: Session) -> None:
    """List the requests that a broker answers, with their versions."""
    names = {key: row.name.removesuffix("Request") for (kind, key), row in schema.by_key().items() if kind == "request"}
    state = clusters.described(session.client)
    versions = clusters.versions(session.client, state.brokers[0].id)
    rows = [
        {"key": row.api_key, "request": names.get(row.api_key, "?"), "from": row.min_version, "to": row.max_version}
        for row in versions.api_keys
    ]
    session.show(sorted(rows, key=lambda row: row["key"]))
