"""What the servers of a service say of themselves: heartbeats and lags, and the status that is made of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.sql.server.errors import BAD_REQUEST, ServerError
from moldau.sql.server.results import now_ms

if TYPE_CHECKING:
    from moldau.sql.server.service import Service

ALIVE_S = 2.0  # a server that was not heard of for longer is taken for dead
MOST_PEERS = 1_000
NO_LAGS: dict[str, Any] = {"stateStoreLags": {}, "updateTimeMs": 0}


@dataclass(slots=True)
class Peer:
    heard: float = float("-inf")
    heard_ms: int = 0
    lags: dict[str, Any] = field(default_factory=lambda: NO_LAGS)


@dataclass(slots=True)
class Peers:
    """The servers that this one has heard of. `address` is its own."""

    address: str
    known: dict[str, Peer] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic

    def _peer(self, host: Any) -> Peer:
        if not isinstance(host, dict) or not isinstance(host.get("host"), str) or not isinstance(host.get("port"), int):
            raise ServerError(BAD_REQUEST, "The request names no host and port.")
        name = f"{host['host']}:{host['port']}"
        if name not in self.known and len(self.known) >= MOST_PEERS:
            raise ServerError(BAD_REQUEST, f"There are {MOST_PEERS} servers already.")
        return self.known.setdefault(name, Peer())

    def heard(self, body: dict[str, Any]) -> None:
        """Take a heartbeat."""
        peer = self._peer(body.get("hostInfo"))
        peer.heard, peer.heard_ms = self.clock(), now_ms()

    def lagged(self, body: dict[str, Any]) -> None:
        """Take a report of how far a server's stores are behind."""
        peer = self._peer(body.get("ksqlHost"))
        lags = body.get("hostStoreLags")
        peer.lags = NO_LAGS | (lags if isinstance(lags, dict) else {})

    def status(self, service: Service) -> dict[str, Any]:
        """Return the answer to GET /clusterStatus: this server first."""
        with service.lock:
            lags = {name: _lags(service, name) for name in sorted(service.pulls.views)}
            running = sorted(service.running)
        own = _status(True, now_ms(), {"stateStoreLags": lags, "updateTimeMs": now_ms()}, running)
        others = {name: self._status(peer) for name, peer in sorted(self.known.items()) if name != self.address}
        return {"clusterStatus": {self.address: own, **others}}

    def _status(self, peer: Peer) -> dict[str, Any]:
        """Return the status of another server. What one that is dead has said of its stores does not hold any more."""
        alive = self.clock() - peer.heard <= ALIVE_S
        return _status(alive, peer.heard_ms, peer.lags if alive else NO_LAGS, [])


def _lags(service: Service, name: str) -> dict[str, Any]:
    view = service.pulls.views[name]
    ends = service.topics.ends(view.source.topic)
    return {
        "lagByPartition": {
            str(partition): {
                "currentOffsetPosition": view.positions.get(partition, 0),
                "endOffsetPosition": end,
                "offsetLag": max(0, end - view.positions.get(partition, 0)),
            }
            for partition, end in sorted(ends.items())
        },
        "size": len(ends),
    }


def _status(alive: bool, at_ms: int, lags: dict[str, Any], running: list[str]) -> dict[str, Any]:
    nothing: dict[str, Any] = {name: [] for name in ("activePartitions", "standByStores", "standByPartitions")}
    return {
        "hostAlive": alive,
        "lastStatusUpdateMs": at_ms,
        "activeStandbyPerQuery": {query_id: {"activeStores": [], **nothing} for query_id in running},
        "hostStoreLags": lags,
    }
