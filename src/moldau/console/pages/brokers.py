"""The page Brokers: the brokers and what they carry, the quorum that keeps the metadata, and features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui

from moldau.admin import brokers, clusters
from moldau.console import charts, frame, paths
from moldau.console.model.cluster import broker_rows, quorum_rows
from moldau.console.page_context import Desk

EVERY_S = 5.0
MB = 1e6
NUMBERS = ("leads", "replicas", "not in sync", "behind", "size", "free")
ON_SCREENS = ("address", "rack", "kind", "replicas", "behind", "free")


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Brokers")
    frame.Section(desk, lambda: brokers.look(desk.client), _brokers, EVERY_S)
    with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
        with frame.panel("Quorum"):
            frame.Section(desk, lambda: clusters.quorum(desk.client), _quorum, EVERY_S)
        with frame.panel("Features"):
            frame.Section(desk, lambda: features(desk), _features)


def features(desk: Desk) -> list[clusters.FeatureState]:
    """Return the features that the first broker reports."""
    known = clusters.described(desk.client).brokers
    return clusters.features(desk.client, known[0].id)[0] if known else []


def _brokers(sight: brokers.Sight) -> None:
    found = brokers.rows(sight)
    with ui.column().classes("w-full gap-4"):
        with frame.panel():
            ui.label(f"Cluster {sight.cluster.id}").classes("quiet wrap")
            columns = ("broker", "address", "rack", "kind", "state", *NUMBERS)
            table = frame.table(*columns, numbers=NUMBERS, if_wide=ON_SCREENS)
            frame.link_cell(table, "broker")
            frame.badge_cell(table, "state")
            table.rows = broker_rows(found)
        if len(found) > 1:
            _shares(found)


def _shares(found: Sequence[brokers.BrokerRow]) -> None:
    """Draw what the brokers carry, so that one sees whether it is spread evenly."""
    names = [f"broker {one.id}" for one in found]
    with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
        with frame.panel("Replicas"):
            leads, follows = [one.leaders for one in found], [one.replicas - one.leaders for one in found]
            charts.bars(names, {"leads": leads, "follows": follows}, "Replicas of each broker")
        with frame.panel("Size"):
            sizes = [round((one.bytes or 0) / MB, 1) for one in found]
            charts.bars(names, {"size": sizes}, "Bytes of each broker", " MB")


def broker_cells(one: clusters.BrokerState) -> dict[str, Any]:
    """Return a broker as a row of a table."""
    return {
        "broker": one.id,
        "link": paths.broker(one.id),
        "address": f"{one.host}:{one.port}",
        "rack": one.rack or "–",
        "state": "fenced" if one.is_fenced else "controller" if one.is_controller else "serves",
    }


def _quorum(found: clusters.Quorum) -> None:
    words = f"Leader {found.leader}, epoch {found.leader_epoch}, high watermark {found.high_watermark:,}"
    ui.label(words).classes("quiet")
    table = frame.table(
        "node", "role", "log end", "lag", "endpoints", numbers=("log end", "lag"), if_wide=("endpoints",)
    ).props("wrap-cells")
    table.rows = quorum_rows(found)


def _features(found: Sequence[clusters.FeatureState]) -> None:
    if not found:
        frame.empty("The brokers report no features.", icon="tune")
        return
    numbers = ("level", "lowest", "highest")
    table = frame.table("feature", *numbers, numbers=numbers, if_wide=("lowest",))
    table.rows = [
        {"feature": one.name, "level": one.level, "lowest": one.lowest, "highest": one.highest} for one in found
    ]
