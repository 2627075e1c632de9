"""The topics: a list with search."""

from __future__ import annotations

from nicegui import ui

from moldau.cli.operations import topics
from moldau.console import frame
from moldau.console.desk import Desk


def show(desk: Desk) -> None:
    """The page."""
    frame.heading("Topics")
    with frame.panel():
        frame.Section(desk, lambda: topics.listed(desk.client), _topics)


def _topics(found: list[topics.TopicState]) -> None:
    rows = [{"name": one.name, "partitions": len(one.partitions)} for one in found]
    ui.table(rows=rows, row_key="name", pagination=50).props("flat dense").classes("w-full")
