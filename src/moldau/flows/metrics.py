"""Metrics of a worker for Prometheus, as rows: of its flows, its lanes and itself. All is read when it is asked for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from moldau.flows.figures import Figures, LaneFigures, memory_bytes
from moldau.http import Call, Endpoint, Host, Threaded, routes
from moldau.http.media import ANY
from moldau.http.metrics import Row, Values, page

HOST = "127.0.0.1"
Now = tuple[Mapping[str, LaneFigures], Mapping[str, Figures]]


def of_flows(read: Callable[[Figures], float | None]) -> Callable[[Now], Values]:
    return lambda now: (((name,), read(one)) for name, one in now[1].items())


def of_lanes(read: Callable[[LaneFigures], float]) -> Callable[[Now], Values]:
    return lambda now: (((name,), read(one)) for name, one in now[0].items())


FLOW, LANE = ("flow",), ("lane",)
TABLE: tuple[Row[Now], ...] = (
    Row("moldau_flow_records", "Records that a flow has read.", FLOW, of_flows(lambda one: one.rows), True),
    Row("moldau_flow_batches", "Batches that a flow has done.", FLOW, of_flows(lambda one: one.batches), True),
    Row("moldau_flow_errors", "Failures of a flow, also those after which it was started again.", FLOW,
        of_flows(lambda one: one.errors), True),
    Row("moldau_flow_seconds", "Time that the batches of a flow have taken.", FLOW,
        of_flows(lambda one: one.seconds), True),
    Row("moldau_flow_lag_records", "Records that a flow has not read yet, as of its last batch.", FLOW,
        of_flows(lambda one: one.lag)),
    Row("moldau_lane_batches", "Batches of a lane.", LANE, of_lanes(lambda one: one.batches), True),
    Row("moldau_lane_batch_seconds", "What the last batch of a lane took.", LANE,
        of_lanes(lambda one: one.batch_ms / 1000)),
    Row("moldau_lane_flows", "Flows in a lane.", LANE, of_lanes(lambda one: len(one.flows))),
    Row("moldau_worker_lanes", "Lanes of the worker.", (), lambda now: [((), len(now[0]))]),
    Row("moldau_worker_memory_bytes", "Resident memory of the worker with its Java and Python processes.", (),
        lambda now: [((), memory_bytes(os.getpid()))]),
)  # fmt: skip


def serve(now: Callable[[], Now], port: int) -> Threaded:
    """Serve /metrics on a port of this machine, in a thread, until `close`. `now` returns the current figures; counts
    begin when the worker gets a flow.
    """

    def answer(_: Call) -> Response:
        return Response(page(TABLE, now()), media_type=CONTENT_TYPE_LATEST)

    async def open_call(endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
        return Call(request, media_type, accepted)

    async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.to_thread(function, *arguments)

    rows = [Endpoint("GET", "/metrics", answer, "All metrics.", produces=ANY)]
    return Threaded(routes(rows, Host(open_call, in_thread)), f"{HOST}:{port}")
