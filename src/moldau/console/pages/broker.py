"""The page of a broker: its settings and its log directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.admin import clusters, configs, log_dirs
from moldau.client import Client
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.model.problems import Refused
from moldau.console.page_context import Desk
from moldau.console.settings_table import settings_table

LARGEST = 10  # partitions that are shown


def show(desk: Desk) -> None:
    """Show the page."""
    number = desk.path["name"]
    frame.heading(f"Broker {number}")
    if not number.isdecimal():
        with frame.panel():
            frame.empty("Brokers are identified by numbers.", "The page Brokers lists them.", "dns")
        return
    client, id = desk.client, int(number)
    frame.Section(desk, lambda: check_known(client, id), lambda _: _parts(desk, id))


def check_known(client: Client, id: int) -> None:
    """Raise Refused if there is no such broker: requests would wait for it."""
    if all(one.id != id for one in clusters.described(client).brokers):
        raise Refused(f"There is no broker {id} now. The page Brokers lists those that exist.")


def _parts(desk: Desk, id: int) -> None:
    with frame.panel("Log directories"):
        frame.Section(desk, lambda: log_dirs.described(desk.client, [id])[id], _directories)
    with frame.panel("Settings"):
        settings_table(desk, configs.Resource(configs.Kind.BROKER, str(id)))


def _directories(found: list[log_dirs.LogDir]) -> None:
    numbers = ("partitions", "used", "free")
    table = frame.table("directory", *numbers, "state", numbers=numbers, if_wide=("partitions",)).props("wrap-cells")
    table.rows = [
        {
            "directory": one.path,
            "partitions": len(one.replicas),
            "used": figures.size(sum(replica.size for replica in one.replicas)),
            "free": figures.size(one.usable_bytes),
            "state": one.error.name.lower() if one.error else "ok",
        }
        for one in found
    ]
    if rows := largest(replica for one in found for replica in one.replicas):
        most = frame.table("topic", "partition", "size", numbers=("partition", "size"), key="place").props("wrap-cells")
        frame.link_cell(most, "topic")
        most.rows = rows


def largest(replicas: Iterable[log_dirs.Replica]) -> list[dict[str, Any]]:
    """Return the rows of the partitions that take the most space."""
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
