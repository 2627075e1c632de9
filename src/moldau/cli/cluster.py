"""`moldau cluster`: brokers, health, features and the quorum."""

from __future__ import annotations

from typing import Any

import typer

from moldau.admin import clusters, configs, groups, log_dirs, topics
from moldau.admin.mistakes import NO
from moldau.cli.commands import noun
from moldau.cli.output import Column, pick, size, time_of
from moldau.cli.session import Session
from moldau.wire import schema

cli, verb = noun()


@verb("info", "moldau cluster info", "moldau cluster info -o json")
def info(session: Session) -> None:
    """Show a summary of the cluster."""
    state = clusters.described(session.client)
    listed = topics.listed(session.client)
    session.show(
        {
            "id": state.id,
            "controller": state.controller,
            "brokers": len(state.brokers),
            "topics": len([one for one in listed if not one.internal]),
            "internal_topics": len([one for one in listed if one.internal]),
            "partitions": sum(len(one.partitions) for one in listed),
            "groups": len(groups.listed(session.client)),
        }
    )


@verb("brokers", "moldau cluster brokers")
def brokers(session: Session) -> None:
    """List brokers and the space that their data takes."""
    state = clusters.described(session.client)
    folders = log_dirs.described(session.client, [one.id for one in state.brokers if not one.is_fenced])
    listed = topics.listed(session.client)
    rows = [_broker(one, folders.get(one.id, []), listed) for one in state.brokers]
    session.show(rows, BROKER_COLUMNS)


BROKER_COLUMNS = (
    "id",
    "address",
    "rack",
    "controller",
    "leaders",
    "replicas",
    Column("size", "size", size),
    Column("free", "free", size),
)


def _broker(
    one: clusters.BrokerState, folders: list[log_dirs.LogDir], listed: list[topics.TopicState]
) -> dict[str, Any]:
    parts = [part for topic in listed for part in topic.partitions]
    usable = [folder.usable_bytes for folder in folders if folder.usable_bytes >= 0]
    return {
        "id": one.id,
        "address": f"{one.host}:{one.port}",
        "rack": one.rack,
        "controller": one.is_controller,
        "fenced": one.is_fenced,
        "leaders": sum(part.leader == one.id for part in parts),
        "replicas": sum(one.id in part.replicas for part in parts),
        "size": sum(replica.size for folder in folders for replica in folder.replicas),
        "free": min(usable) if usable else None,
        "log_dirs": [folder.path for folder in folders],
    }


@verb("health", "moldau cluster health", "moldau cluster health -o json || echo unhealthy")
def health(session: Session) -> None:
    """Check whether every partition has a leader and all its replicas; if not, exit with code 3."""
    state = clusters.described(session.client)
    listed = topics.listed(session.client)
    parts = [(topic.name, part) for topic in listed for part in topic.partitions]
    folders = log_dirs.described(session.client, [one.id for one in state.brokers if not one.is_fenced])
    facts = {
        "brokers": len(state.brokers),
        "fenced_brokers": [one.id for one in state.brokers if one.is_fenced],
        "controller": state.controller if state.controller >= 0 else None,
        "leaderless": [f"{name}-{part.index}" for name, part in parts if part.leader < 0],
        "under_replicated": [f"{name}-{part.index}" for name, part in parts if part.is_under_replicated],
        "under_min_isr": _under_min_isr(session, listed),
        "offline_dirs": [f"{broker}:{one.path}" for broker, found in folders.items() for one in found if one.error],
    }
    names = ("fenced_brokers", "leaderless", "under_replicated", "under_min_isr", "offline_dirs")
    healthy = facts["controller"] is not None and not any(facts[name] for name in names)
    session.show(
        {"healthy": healthy, **{name: value or None if name in names else value for name, value in facts.items()}}
    )
    if not healthy:
        raise typer.Exit(NO)


def _under_min_isr(session: Session, listed: list[topics.TopicState]) -> list[str]:
    """List partitions with too few replicas in sync; only topics that lack replicas are looked up."""
    partitions = []
    for topic in listed:
        short = [part for part in topic.partitions if part.is_under_replicated]
        if short:
            resource = configs.Resource(configs.Kind.TOPIC, topic.name)
            entry = configs.described(session.client, resource, ["min.insync.replicas"])[0]
            partitions += [f"{topic.name}-{part.index}" for part in short if len(part.isr) < int(entry.value or 1)]
    return partitions


@verb("features", "moldau cluster features")
def features(session: Session) -> None:
    """List features, their levels, and the levels that the brokers support."""
    state = clusters.described(session.client)
    listed, epoch = clusters.features(session.client, state.brokers[0].id)
    session.show([{**pick(one, "feature=name", "level", "lowest", "highest"), "epoch": epoch} for one in listed])


@verb("quorum", "moldau cluster quorum")
def quorum(session: Session) -> None:
    """Show the replicas of the metadata, and how far each is behind the leader."""
    state = clusters.quorum(session.client)
    end = max((one.log_end_offset for one in state.replicas if one.id == state.leader), default=-1)
    rows = [
        {
            "id": one.id,
            "role": "leader" if one.id == state.leader else "voter" if one.is_voter else "observer",
            "log_end_offset": one.log_end_offset,
            "lag": max(0, end - one.log_end_offset),
            "last_caught_up": time_of(one.last_caught_up_ms),
        }
        for one in state.replicas
    ]
    if session.for_people:
        session.show(pick(state, "leader", "leader_epoch", "high_watermark"))
        print()
        session.show(rows)
    else:
        session.show({**pick(state, "leader", "epoch=leader_epoch", "high_watermark"), "replicas": rows})


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
