"""The page Brokers: the brokers, the quorum that keeps the metadata, and features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui import ui

from moldau.admin import clusters
from moldau.console import frame, paths
from moldau.console.model import figures
from moldau.console.page_context import Desk


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Brokers")
    with frame.panel():
        frame.Section(desk, lambda: clusters.described(desk.client), _brokers)
    with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
        with frame.panel("Quorum"):
            frame.Section(desk, lambda: clusters.quorum(desk.client), _quorum)
        with frame.panel("Features"):
            frame.Section(desk, lambda: features(desk), _features)


def features(desk: Desk) -> list[clusters.FeatureState]:
    """Return the features that the first broker reports."""
    brokers = clusters.described(desk.client).brokers
    return clusters.features(desk.client, brokers[0].id)[0] if brokers else []


def _brokers(state: clusters.ClusterState) -> None:
    ui.label(f"Cluster {state.id}").classes("quiet wrap")
    table = frame.table("broker", "address", "rack", "state")
    frame.link_cell(table, "broker")
    table.rows = [broker_cells(one) for one in state.brokers]


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
    table = frame.table("node", "role", "log end", "lag", numbers=("log end", "lag"))
    furthest = max((one.log_end_offset for one in found.replicas), default=0)
    table.rows = [
        {
            "node": one.id,
            "role": "leader" if one.id == found.leader else "voter" if one.is_voter else "observer",
            "log end": figures.count(one.log_end_offset),
            "lag": figures.count(furthest - one.log_end_offset),
        }
        for one in found.replicas
    ]


def _features(found: Sequence[clusters.FeatureState]) -> None:
    if not found:
        frame.empty("The brokers report no features.", icon="tune")
        return
    numbers = ("level", "lowest", "highest")
    table = frame.table("feature", *numbers, numbers=numbers, if_wide=("lowest",))
    table.rows = [
        {"feature": one.name, "level": one.level, "lowest": one.lowest, "highest": one.highest} for one in found
    ]
