"""Brokers, troubles and moves as rows of tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.admin import health
from moldau.admin.brokers import UP, BrokerRow
from moldau.admin.clusters import Quorum
from moldau.admin.health import Trouble
from moldau.admin.moves import UnderWay
from moldau.console import paths
from moldau.console.model import figures
from moldau.console.model.timeline import Event

COLOURS = {UP: "positive", health.FENCED: "negative", health.SILENT: "warning"}
BAD = (health.FENCED, health.OFFLINE, health.NO_QUORUM, health.NO_LEADER, health.UNDER_MIN_ISR)
UNKNOWN = "–"


def broker_rows(found: Iterable[BrokerRow]) -> list[dict[str, Any]]:
    """Return a row for each broker."""
    return [
        {
            "broker": one.id,
            "link": paths.broker(one.id),
            "address": one.address,
            "rack": one.rack or "–",
            "kind": one.kind or "–",
            "state": one.state,
            "state_colour": COLOURS[one.state],
            "leads": figures.count(one.leaders),
            "replicas": figures.count(one.replicas),
            "not in sync": figures.count(one.not_in_sync),
            "behind": figures.size(one.behind_bytes) if one.not_in_sync else "–",
            "size": figures.size(one.bytes),
            "free": figures.size(one.free_bytes),
        }
        for one in found
    ]


def quorum_rows(found: Quorum) -> list[dict[str, Any]]:
    """Return a row for each voter and observer."""
    return [
        {
            "node": one.id,
            "role": "leader" if one.id == found.leader else "voter" if one.is_voter else "observer",
            "log end": figures.count(one.log_end_offset) if one.log_end_offset >= 0 else UNKNOWN,
            "lag": figures.count(found.lag(one)) if one.log_end_offset >= 0 else UNKNOWN,
            "endpoints": ", ".join(found.endpoints.get(one.id, ())) or "–",
        }
        for one in found.replicas
    ]


def trouble_rows(found: Iterable[Trouble]) -> list[dict[str, Any]]:
    """Return a row for each trouble: what matters most first, and internal topics after others."""
    ordered = sorted(found, key=lambda one: (one.reason not in BAD, one.where.startswith("_")))
    return [
        {
            "place": f"{number}",
            "where": one.where,
            "link": _link(one.where),
            "reason": one.reason,
            "reason_colour": "negative" if one.reason in BAD else "warning",
            "details": one.details,
        }
        for number, one in enumerate(ordered)
    ]


def _link(where: str) -> str | None:
    """Return the page of a broker, or of the topic of a partition."""
    kind, _, number = where.partition(" ")
    if number:
        return paths.broker(int(number)) if kind == "broker" else None
    topic, _, _ = where.rpartition("-")
    return paths.topic(topic) if topic else None


def move_rows(found: Iterable[UnderWay]) -> list[dict[str, Any]]:
    """Return a row for each move."""
    return [
        {
            "partition": f"{one.topic}-{one.index}",
            "link": paths.topic(one.topic),
            "to": _ids(one.adding),
            "from": _ids(one.removing),
            "share": round(one.share, 3),
            "copied": f"{figures.size(one.copied)} of {figures.size(one.bytes)}",
        }
        for one in found
    ]


def event_rows(found: Iterable[Event]) -> list[dict[str, Any]]:
    """Return a row for each event."""
    return [
        {
            "place": f"{one.offset} {one.kind} {one.where}",
            "time": figures.moment(one.at_ms),
            "event": one.kind,
            "where": one.where,
            "link": paths.topic(one.topic) if one.topic else None,
            "details": one.details,
        }
        for one in found
    ]


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "–"
