"""The overview: how the cluster is, what flows through it, and who lags behind; it moves while one looks."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.console import frame, paths
from moldau.console.charts import Lines
from moldau.console.model import figures
from moldau.console.model.history import Health, History, Sample, health
from moldau.console.page_context import Desk

EVERY_S = 2.0
OF_TOPICS = ("records a second", "records")
BUSIEST = 8
HEIGHT_PX = 260
FIGURES = ("Records a second", "Brokers", "Topics", "Partitions", "Lag of all groups")


def show(desk: Desk) -> None:
    """The page."""
    frame.heading("Overview")
    Overview(desk)


class Overview:
    """The page's parts, updated together from what the sampler saw."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._told = ui.column().classes("w-full gap-0")
        with ui.grid().classes("w-full gap-3 grid-cols-2 md:grid-cols-5 figures"):
            self._figures = [_figure(title) for title in FIGURES]
        with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
            with frame.panel("Throughput"):
                ui.label("records written a second, all topics").classes("quiet text-sm")
                self._throughput = Lines(HEIGHT_PX, "Records written a second over time")
            with frame.panel("Lag"):
                ui.label("records that groups have still to read").classes("quiet text-sm")
                self._lag = Lines(HEIGHT_PX, "Lag of groups over time")
        with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
            with frame.panel("Brokers"):
                self._brokers = frame.table(
                    "id", "address", "rack", "state", "leaders", "replicas",
                    numbers=("leaders", "replicas"), if_wide=("rack", "state"),
                )  # fmt: skip
                frame.link_cell(self._brokers, "id")
            with frame.panel("Busiest topics"):
                self._topics = frame.table("topic", *OF_TOPICS, numbers=OF_TOPICS)
                frame.link_cell(self._topics, "topic")
        self.update()
        ui.timer(EVERY_S, self.update)

    def update(self) -> None:
        sampler = self._desk.console.sampler
        sampler.watch()
        history, error = sampler.history, sampler.error
        self._told.clear()
        with self._told:
            if error is not None:
                with frame.panel():
                    frame.tell(self._desk.problem(error))
            elif history.last is None:
                ui.spinner(size="28px")
            else:
                _health(health(history.last))
        if history.last is not None:
            self._fill(history, history.last)

    def _fill(self, history: History, last: Sample) -> None:
        flow, state = history.throughput(), health(last)
        now = flow[-1][1] if flow else None
        shown = (now, state.brokers, state.topics, state.partitions, sum(last.lags.values()) if last.lags else None)
        for label, number in zip(self._figures, shown, strict=True):
            label.set_text(figures.count(number))
        self._throughput.fill([("records/s", flow)])
        self._lag.fill(list(history.lag_lines().items()))
        self._brokers.rows = broker_rows(last)
        self._topics.rows = busiest(history, last)


def _figure(title: str) -> ui.label:
    with ui.card().classes("panel q-pa-md gap-1"):
        label = ui.label("–").classes("figure")
        ui.label(title).classes("quiet text-sm")
    return label


def _health(state: Health) -> None:
    with ui.row().classes("items-center gap-2").props("role=status"):
        well = state.is_well
        ui.icon("check_circle" if well else "warning", color="positive" if well else "warning", size="22px")
        ui.label(state.sentence)


def broker_rows(last: Sample) -> list[dict[str, Any]]:
    """The table of brokers."""
    parts = [part for topic in last.topics for part in topic.partitions]
    return [
        {
            "id": one.id,
            "link": paths.broker(one.id),
            "address": f"{one.host}:{one.port}",
            "rack": one.rack or "–",
            "state": "fenced" if one.is_fenced else "controller" if one.is_controller else "serves",
            "leaders": figures.count(sum(part.leader == one.id for part in parts)),
            "replicas": figures.count(sum(one.id in part.replicas for part in parts)),
        }
        for one in last.cluster.brokers
    ]


def busiest(history: History, last: Sample) -> list[dict[str, Any]]:
    """The topics that most is written to, without those that Kafka and Moldau keep for themselves."""
    rates = history.rates()
    theirs = {topic.name for topic in last.topics if topic.internal or topic.name.startswith("_")}
    known = [name for name in last.ends if name not in theirs]
    names = sorted(known, key=lambda name: (-rates.get(name, 0.0), -last.ends[name], name))[:BUSIEST]
    return [
        {
            "topic": name,
            "link": paths.topic(name),
            "records a second": figures.count(rates.get(name)),
            "records": figures.count(last.ends[name]),
        }
        for name in names
    ]
