"""`moldau cluster`: brokers, health, features and the quorum."""

from __future__ import annotations

from typing import Any

import typer

from moldau.admin import clusters, configs, groups, log_dirs, topics
from moldau.admin.mistakes import NO
from moldau.cli.commands import noun, verb
from moldau.cli.output import Column, size, time_of
from moldau.cli.session import Session
from moldau.wire import schema

cli = noun()


@verb(cli, "info", ("moldau cluster info", "moldau cluster info -o json"))
def info(session: Session) -> None:
    """Show the cluster in a few numbers."""
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


@verb(cli, "brokers", ("moldau cluster brokers",))
def brokers(session: Session) -> None:
    """List brokers, with what lies on their disks."""
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


@verb(cli, "health", ("moldau cluster health", "moldau cluster health -o json || echo unwell"))
def health(session: Session) -> None:
    """Tell whether every partition has a leader and all its replicas; the exit code is 3 if not."""
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
    well = facts["controller"] is not None and not any(facts[name] for name in names)
    session.show(
        {"healthy": well, **{name: value or None if name in names else value for name, value in facts.items()}}
    )
    if not well:
        raise typer.Exit(NO)


def _under_min_isr(session: Session, listed: list[topics.TopicState]) -> list[str]:
    """Only topics that lack replicas are asked for what they need."""
    found = []
    for topic in listed:
        short = [part for part in topic.partitions if part.is_under_replicated]
        if short:
            resource = configs.Resource(configs.Kind.TOPIC, topic.name)
            entry = configs.described(session.client, resource, ["min.insync.replicas"])[0]
            found += [f"{topic.name}-{part.index}" for part in short if len(part.isr) < int(entry.value or 1)]
    return found


@verb(cli, "features", ("moldau cluster features",))
def features(session: Session) -> None:
    """List features, their levels, and what the brokers support."""
    state = clusters.described(session.client)
    found, epoch = clusters.features(session.client, state.brokers[0].id)
    rows = [
        {"feature": one.name, "level": one.level, "lowest": one.lowest, "highest": one.highest, "epoch": epoch}
        for one in found
    ]
    session.show(rows)


@verb(cli, "quorum", ("moldau cluster quorum",))
def quorum(session: Session) -> None:
    """Show who keeps the metadata, and how far behind the leader."""
    found = clusters.quorum(session.client)
    end = max((one.log_end_offset for one in found.replicas if one.id == found.leader), default=-1)
    rows = [
        {
            "id": one.id,
            "role": "leader" if one.id == found.leader else "voter" if one.is_voter else "observer",
            "log_end_offset": one.log_end_offset,
            "lag": max(0, end - one.log_end_offset),
            "last_caught_up": time_of(one.last_caught_up_ms),
        }
        for one in found.replicas
    ]
    if session.output.value == "table":
        session.show(
            {"leader": found.leader, "leader_epoch": found.leader_epoch, "high_watermark": found.high_watermark}
        )
        print()
        session.show(rows)
        return
    session.show(
        {"leader": found.leader, "epoch": found.leader_epoch, "high_watermark": found.high_watermark, "replicas": rows}
    )


@verb(cli, "apis", ("moldau cluster apis",))
def apis(session: Session) -> None:
    """List the requests that a broker answers, with their versions."""
    names = {key: row.name.removesuffix("Request") for (kind, key), row in schema.by_key().items() if kind == "request"}
    state = clusters.described(session.client)
    found = clusters.versions(session.client, state.brokers[0].id)
    rows = [
        {"key": row.api_key, "request": names.get(row.api_key, "?"), "from": row.min_version, "to": row.max_version}
        for row in found.api_keys
    ]
    session.show(sorted(rows, key=lambda row: row["key"]))
