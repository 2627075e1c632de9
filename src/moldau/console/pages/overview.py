"""The overview: brokers, and how the cluster is."""

from __future__ import annotations

from nicegui import ui

from moldau.cli.operations import clusters
from moldau.console import frame
from moldau.console.desk import Desk


def show(desk: Desk) -> None:
    """The page."""
    frame.heading("Overview")
    with frame.panel("Brokers"):
        frame.Section(desk, lambda: clusters.described(desk.client), _brokers)


def _brokers(state: clusters.ClusterState) -> None:
    rows = [
        {"id": one.id, "address": f"{one.host}:{one.port}", "role": "controller" if one.is_controller else ""}
        for one in state.brokers
    ]
    ui.table(rows=rows, row_key="id").props("flat dense").classes("w-full")
