"""Deployed applications and workers as rows of tables, and which verbs make sense for one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.console import paths
from moldau.console.model import figures
from moldau.console.model.lineage import Application
from moldau.flows.figures import Figures, LaneFigures
from moldau.flows.overview import Overview, WorkerInfo

NONE = "–"
RUNNING, FAILED = "running", "failed"
# Verbs by what is wanted of a flow; a failed one can also be resumed.
SENSIBLE = {
    "running": ("pause", "restart", "stop"),
    "paused": ("resume", "stop"),
    "stopped": ("resume",),
}


def rows(ran: Iterable[Application], deployed: Iterable[Overview]) -> list[dict[str, Any]]:
    """Return a row for each application. What a worker says of one counts more than an older report."""
    found = {one.name: row_of(one) for one in ran}
    for one in deployed:
        row = found.setdefault(one.name, bare(one.name))
        waits = one.state == RUNNING and row["state"] != NONE and not one.error  # it may wait for input
        state = row["state"] if waits else f"{one.state}: {one.error}" if one.error else one.state
        rate = NONE if one.figures is None else f"{figures.count(one.figures.rows_per_s)}/s"
        row |= {"state": state, "since": moment(one.since_ms), "worker": one.worker or NONE, "rate": rate}
    return [found[name] for name in sorted(found)]


def bare(name: str) -> dict[str, Any]:
    texts = dict.fromkeys(("state", "since", "reads", "writes", "lag", "rate", "worker"), NONE)
    return {"application": name, "link": paths.application(name), **texts}


def row_of(one: Application) -> dict[str, Any]:
    return bare(one.name) | {
        "state": f"{one.state}: {one.detail}" if one.detail else one.state,
        "since": moment(one.since_ms),
        "reads": ", ".join(one.reads) or NONE,
        "writes": ", ".join(one.writes) or NONE,
        "lag": figures.count(one.lag),
    }


def moment(ms: int | None) -> str:
    return NONE if ms is None else figures.moment(ms)[:-4]


def verbs(one: Overview) -> list[str]:
    """Return the verbs that make sense for a flow, in the order of its buttons."""
    found = list(SENSIBLE.get(one.wanted, ()))
    if one.state == FAILED and "resume" not in found:
        found.insert(0, "resume")
    if one.previous is not None and found:
        found.append("rollback")
    return found


def facts(one: Overview, lag: int | None) -> dict[str, str]:
    """Return what there is to say of a deployed application in short."""
    made = {
        "state": one.state,
        "wanted": one.wanted or NONE,
        "since": moment(one.since_ms),
        "worker": one.worker or NONE,
    }
    made |= {"lane": one.lane or NONE, "lag": figures.count(lag), "version": one.version or NONE}
    if one.previous is not None:
        made["version before"] = one.previous
    if one.figures is not None:
        told = one.figures
        made |= {"rate": f"{figures.count(told.rows_per_s)}/s", "records": figures.count(told.rows)}
        made |= {"batch": took(told), "errors": str(told.errors)}
    return made


def took(told: Figures | LaneFigures | None) -> str:
    """Return what the last batch took, if there was one."""
    return f"{told.batch_ms:,} ms" if told is not None and told.batches else NONE


def worker_rows(workers: Iterable[WorkerInfo]) -> list[dict[str, Any]]:
    """Return a row for each lane of each worker, and one for a worker without lanes."""
    return [
        {
            "place": f"{one.name} {lane}",
            "worker": one.name,
            "host": f"{one.host} ({one.pid})",
            "memory": figures.size(one.figures.memory_bytes if one.figures else None),
            "lane": lane or "none",
            "applications": ", ".join(told.flows) if told else NONE,
            "batches": figures.count(told.batches if told else None),
            "batch": took(told),
        }
        for one in workers
        for lane in one.lanes or ("",)
        for told in [one.figures.lanes.get(lane) if one.figures else None]
    ]
