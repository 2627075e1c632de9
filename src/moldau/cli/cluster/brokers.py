"""`moldau cluster info`, `brokers`, `features` and `apis`: what a cluster consists of."""

from __future__ import annotations

from typing import Any

from moldau.admin import brokers as admin
from moldau.admin import clusters, groups, topics
from moldau.cli.cluster.verbs import verb
from moldau.cli.output import Column, pick, size
from moldau.cli.session import Session
from moldau.wire import schema


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
    session.show([_broker(one) for one in admin.rows(admin.look(session.client))], BROKER_COLUMNS)


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


def _broker(one: admin.BrokerRow) -> dict[str, Any]:
    fields = ("id", "address", "rack", "kind", "state", "quorum", "controller=is_controller", "fenced=is_fenced")
    counts = ("leaders", "replicas", "not_in_sync", "behind=behind_bytes", "size=bytes", "free=free_bytes")
    return {**pick(one, *fields, *counts), "log_dirs": list(one.log_dirs)}


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
