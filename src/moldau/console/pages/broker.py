"""A broker: its settings and its log directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.admin import configs, log_dirs
from moldau.console import frame, paths
from moldau.console.desk import Desk
from moldau.console.model import figures
from moldau.console.settings_table import settings_table

LARGEST = 10  # partitions that are shown


def show(desk: Desk) -> None:
    """The page."""
    number = desk.path["name"]
    frame.heading(f"Broker {number}")
    if not number.isdecimal():
        with frame.panel():
            frame.empty("A broker has a number.", "The page Brokers has them all.", "dns")
        return
    with frame.panel("Log directories"):
        frame.Section(desk, lambda: log_dirs.described(desk.client, [int(number)])[int(number)], _directories)
    with frame.panel("Settings"):
        settings_table(desk, configs.Resource(configs.Kind.BROKER, number))


def _directories(found: list[log_dirs.LogDir]) -> None:
    table = frame.table("directory", "partitions", "used", "free", "state", numbers=("partitions", "used", "free"))
    table.rows = [
        {
            "directory": one.path,
            "partitions": len(one.replicas),
            "used": figures.size(sum(replica.size for replica in one.replicas)),
            "free": figures.size(one.usable_bytes),
            "state": one.error.name.lower() if one.error else "fine",
        }
        for one in found
    ]
    rows = largest(replica for one in found for replica in one.replicas)
    if rows:
        most = frame.table("topic", "partition", "size", numbers=("partition", "size"), key="place")
        frame.link_cell(most, "topic")
        most.rows = rows


def largest(replicas: Iterable[log_dirs.Replica]) -> list[dict[str, Any]]:
    """The partitions that take most room."""
    found = sorted(replicas, key=lambda one: (-one.size, one.place))[:LARGEST]
    return [
        {
            "place": f"{one.place[0]}-{one.place[1]}",
            "topic": one.place[0],
            "link": paths.topic(one.place[0]),
            "partition": one.place[1],
            "size": figures.size(one.size),
        }
        for one in found
    ]
