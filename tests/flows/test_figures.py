"""Figures count records, not blobs; a worker without news writes nothing; records come back as they were."""

from __future__ import annotations

import json
import os
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from moldau.client import Client, Record
from moldau.flows import figures, metrics, states
from moldau.flows.figures import Figures, LaneFigures, Meter, Teller, WorkerFigures, decode, encode, memory_bytes
from moldau.flows.topics import make
from moldau.spark.runner.status import QueryStatus
from moldau.spark.source.planning import Position
from moldau.testing import broker


def progress(batch: int, begin: int, end: int, latest: int) -> dict[str, Any]:
    places = {"startOffset": begin, "endOffset": end, "latestOffset": latest}
    source = {name: json.dumps(Position({("lines", 0): offset}).to_json()) for name, offset in places.items()}
    return {
        "id": "x",
        "batchId": batch,
        "numInputRows": 1,
        "durationMs": {"triggerExecution": 500},
        "sources": [source],
    }


def query(row: dict[str, Any]) -> Any:
    status = QueryStatus("a")
    status.take(row)
    return SimpleNamespace(status=status, progress=row)


def test_records_are_counted_by_positions_also_when_a_progress_was_not_seen() -> None:
    meter = Meter()
    meter.look(None)
    meter.look(query(progress(7, 100, 130, 140)))
    meter.look(query(progress(7, 100, 130, 140)))
    assert meter.done == Figures(rows=30, batches=1, lag=10, seconds=0.5, batch_ms=500)
    meter.look(query(progress(9, 135, 150, 150)))
    assert (meter.done.rows, meter.done.lag) == (50, 0)
    meter.begin_anew()  # it was stopped, and begins where it was
    meter.look(query(progress(10, 150, 155, 155)))
    meter.fail()
    assert (meter.done.rows, meter.done.errors) == (55, 1)


def test_only_news_are_told_and_not_too_often() -> None:
    now = [0.0]
    teller = Teller("desk", Path("/logs"), lambda: now[0])
    lanes = {"lane": LaneFigures(("a",), 1, 500, seconds=0.5)}
    assert teller.news({}, {}) is not None  # once, so that everybody knows where its logs are
    now[0] = 1.0
    assert teller.news(lanes, {"a": Figures(rows=10)}) is None
    now[0] = 5.0
    told = teller.news(lanes, {"a": Figures(rows=10)})
    assert told is not None and told.flows["a"].rows_per_s == 0.0 and told.memory_bytes > 1 << 20
    now[0] = 10.0
    lanes = {"lane": LaneFigures(("a",), 9, 500, seconds=4.5)}
    told = teller.news(lanes, {"a": Figures(rows=60)})
    assert told is not None and (told.flows["a"].rows_per_s, told.lanes["lane"].load) == (10.0, 0.8)
    now[0] = 15.0
    told = teller.news(lanes, {"a": Figures(rows=60)})
    assert told is not None and (told.flows["a"].rows_per_s, told.lanes["lane"].load) == (0.0, 0.0)
    for second in range(20, 100):
        now[0] = second
        assert teller.news(lanes, {"a": Figures(rows=60)}) is None


def test_memory_counts_children_too() -> None:
    assert memory_bytes(os.getpid()) >= memory_bytes(2**30) == 0


def test_figures_and_states_share_a_topic(tmp_path: Path) -> None:
    logs = {"a": Figures(1, 2, 3, None, 0.5, 6, 7.5)}
    here = Teller("me", tmp_path).news({"l": LaneFigures(("a", "b"), 1, 2)}, logs)
    assert here is not None
    gone = WorkerFigures("gone", here.host, 2**22 + 1, here.logs)
    far = WorkerFigures("far", "elsewhere", 1, here.logs)
    key, value = encode(here)
    assert decode(Record(0, 0, key, value)) == here
    said = states.FlowState("a", 1, 1, "running", "me", "l", 5)
    with broker() as started, Client({"bootstrap.servers": started.bootstrap_servers}) as client:
        assert figures.read_all(client) == ({}, {})
        make(client, states.TOPIC)
        for one in (here, gone, far):
            figures.write(client, one)
        states.write(client, said, "a")
        figures.forget_predecessors(client, "me", tmp_path)
        assert figures.read_all(client) == ({"a": said}, {"me": here, "far": far})


def test_metrics_are_served_as_they_are_now() -> None:
    lanes, flows = {"lane": LaneFigures(("a",), 3, 1500)}, {"a": Figures(10, 3, 1, None, 4.5, 1500)}
    service = metrics.serve(lambda: (lanes, flows), 0)
    try:
        with urllib.request.urlopen(f"{service.url}/metrics", timeout=60) as answer:
            lines = set(answer.read().decode().splitlines())
        assert {'moldau_flow_records_total{flow="a"} 10.0', 'moldau_lane_batch_seconds{lane="lane"} 1.5'} <= lines
        assert {'moldau_flow_errors_total{flow="a"} 1.0', "moldau_worker_lanes 1.0"} <= lines
        assert not any(line.startswith("moldau_flow_lag_records{") for line in lines)  # it is not known
        flows["a"] = Figures(11, 4, 1, 7)
        with urllib.request.urlopen(f"{service.url}/metrics", timeout=60) as answer:
            assert 'moldau_flow_lag_records{flow="a"} 7.0' in answer.read().decode()
    finally:
        service.close()
