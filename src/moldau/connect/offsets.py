"""Offsets that somebody asks for or sets: of sources in the offset topic, of sinks in their consumer group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moldau.admin import groups
from moldau.client import Client, ClientError, Error
from moldau.connect.connector import Connector
from moldau.connect.errors import ConnectError
from moldau.connect.threads import Offsets
from moldau.http import HttpError

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"


def shown_sink(client: Client, name: str) -> list[dict[str, Any]]:
    found = groups.committed(client, f"connect-{name}")
    return [
        {"partition": {PARTITION: partition, TOPIC: topic}, "offset": {OFFSET: one.offset}}
        for (topic, partition), one in sorted(found.items())
    ]


def alter_source(
    store: Offsets,
    timeout_s: float,
    plugin: Connector,
    name: str,
    config: Mapping[str, str],
    rows: Sequence[Any] | None,
) -> bool:
    """Set offsets of a source, or forget all of them; ConnectError where the connector refuses.

    Returns whether the connector has seen to it: a Java connector may keep offsets elsewhere, and not say so.
    """
    store.sync(timeout_s)
    wanted = [(one, None) for one, _ in store.of(name)] if rows is None else [_pair(row) for row in rows]
    for partition, offset in wanted:
        if partition is None:
            raise ConnectError("Partition objects cannot be null")
        plugin.check_offset(config, partition, offset)
    alter = getattr(plugin, "alter_offsets", None)
    is_seen_to = alter(config, wanted) if alter else True
    store.write([store.encode(name, partition, offset) for partition, offset in wanted], timeout_s)
    store.sync(timeout_s)
    return is_seen_to


def _pair(row: Any) -> tuple[Any, Any]:
    if not isinstance(row, dict) or not isinstance(row.get("partition"), dict | None):
        raise HttpError(400, "Each of the offsets must have a partition and an offset.")
    return row.get("partition"), row.get("offset")


def alter_sink(
    client: Client, plugin: Connector, name: str, config: Mapping[str, str], rows: Sequence[Any] | None
) -> bool:
    """Set offsets of a sink's group, or forget all of them; return whether the connector has seen to it."""
    group = f"connect-{name}"
    alter = getattr(plugin, "alter_sink_offsets", None)
    if alter is None:
        is_seen_to = True
    elif rows is None:
        is_seen_to = alter(config, dict.fromkeys(groups.committed(client, group)))
    else:
        is_seen_to = alter(config, dict(_sink_pair(row) for row in rows))
    _alter_group(client, group, name, rows)
    return is_seen_to


def _alter_group(client: Client, group: str, name: str, rows: Sequence[Any] | None) -> None:
    if rows is None:
        errors = set(groups.delete(client, [group]).values()) - {Error.NONE, Error.GROUP_ID_NOT_FOUND}
        if errors:
            raise ConnectError(f"Failed to reset consumer group offsets for connector {name}: {min(errors).message}")
        return
    wanted = dict(_sink_pair(row) for row in rows)
    gone = [place for place, offset in wanted.items() if offset is None]
    kept = {place: offset for place, offset in wanted.items() if offset is not None}
    try:
        if gone:
            groups.delete_offsets(client, group, gone)
        if kept:
            groups.commit(client, group, kept)
    except ClientError as error:
        raise ConnectError(f"Failed to modify offsets for sink connector {name}: {error}") from None


def _sink_pair(row: Any) -> tuple[tuple[str, int], int | None]:
    partition, offset = _pair(row)
    if partition is None:
        raise HttpError(400, "The partition for a sink connector offset cannot be null or missing")
    if not {TOPIC, PARTITION} <= partition.keys():
        keys = f"'{TOPIC}' and '{PARTITION}'"
        raise HttpError(400, f"The partition for a sink connector offset must contain the keys {keys}")
    if partition[TOPIC] is None:
        raise HttpError(400, "Kafka topic names must be valid strings and may not be null")
    if partition[PARTITION] is None:
        raise HttpError(400, "Kafka partitions must be valid numbers and may not be null")
    number = _number(partition[PARTITION], "partition")
    if offset is not None and (not isinstance(offset, dict) or OFFSET not in offset):
        raise HttpError(400, f"The offset for a sink connector should either be null or contain the key '{OFFSET}'")
    end = None if offset is None else _number(offset[OFFSET], "offset")
    for what, given in (("partition", number), ("offset", end)):
        if given is not None and given < 0:
            raise HttpError(400, f"The {what} {given} is negative.")
    return (str(partition[TOPIC]), number), end


def _number(value: Any, what: str) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise HttpError(
            400,
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{value}'. "
            f"{what.capitalize()} values for sink connectors need to be integers.",
        ) from None
