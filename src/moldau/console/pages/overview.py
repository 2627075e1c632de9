"""The overview: the health of the cluster, its throughput, and the lag of groups, all live."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from moldau.console import frame, paths
from moldau.console.charts import Lines
from moldau.console.model import figures
from moldau.console.model.history import Health, History, Sample, health
from moldau.console.page_context import Desk
from moldau.console.pages.brokers import broker_cells

EVERY_S = 2.0
OF_TOPICS = ("records per second", "records")
BUSIEST = 8
HEIGHT_PX = 260
FIGURES = ("Records per second", "Brokers", "Topics", "Partitions", "Lag of all groups")


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Overview")
    Overview(desk)


class Overview:
    """The parts of the page, updated together from the sampler's history."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._status = ui.column().classes("w-full gap-0")
        with ui.grid().classes("w-full gap-3 grid-cols-2 md:grid-cols-5 figures"):
            self._figures = [_figure(title) for title in FIGURES]
        with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
            with frame.panel("Throughput"):
                ui.label("records written per second, all topics").classes("quiet text-sm")
                self._throughput = Lines(HEIGHT_PX, "Records written per second over time")
            with frame.panel("Lag"):
                ui.label("records that groups have not read yet").classes("quiet text-sm")
                self._lag = Lines(HEIGHT_PX, "Lag of groups over time")
        with ui.grid().classes("w-full gap-4 grid-cols-1 lg:grid-cols-2"):
            with frame.panel("Brokers"):
                self._brokers = frame.table(
                    "broker", "address", "rack", "state", "leaders", "replicas",
                    numbers=("leaders", "replicas"), if_wide=("rack", "state"),
                )  # fmt: skip
                frame.link_cell(self._brokers, "broker")
            with frame.panel("Busiest topics"):
                self._topics = frame.table("topic", *OF_TOPICS, numbers=OF_TOPICS)
                frame.link_cell(self._topics, "topic")
        self.update()
        ui.timer(EVERY_S, self.update)

    def update(self) -> None:
        sampler = self._desk.console.sampler
        sampler.watch()
        history, error = sampler.history, sampler.error
        self._status.clear()
        with self._status:
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
    """Return the rows of the table of brokers."""
    parts = [part for topic in last.topics for part in topic.partitions]
    return [
        {
            **broker_cells(one),
            "leaders": figures.count(sum(part.leader == one.id for part in parts)),
            "replicas": figures.count(sum(one.id in part.replicas for part in parts)),
        }
        for one in last.cluster.brokers
    ]


def busiest(history: History, last: Sample) -> list[dict[str, Any]]:
    """Return the rows of the busiest topics, without the internal ones of Kafka and Moldau."""
    rates = history.rates()
    internal = {topic.name for topic in last.topics if topic.internal or topic.name.startswith("_")}
    known = [name for name in last.ends if name not in internal]
    names = sorted(known, key=lambda name: (-rates.get(name, 0.0), -last.ends[name], name))[:BUSIEST]
    return [
        {
            "topic": name,
            "link": paths.topic(name),
            "records per second": figures.count(rates.get(name)),
            "records": figures.count(last.ends[name]),
        }
        for name in names
    ]
