"""The state of queries as JSON, metrics and one line."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from moldau.spark.runner import Policy
from moldau.spark.runner.status import QueryStatus, State, line, to_json
from moldau.spark.runner.status_page import StatusPage


def progress(batch: int = 3, **more: Any) -> dict[str, Any]:
    return {
        "id": "q",
        "batchId": batch,
        "numInputRows": 10,
        "processedRowsPerSecond": 1234.5,
        "durationMs": {"triggerExecution": 1500, "addBatch": 1000},
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 70}, {"numRowsTotal": 1, "memoryUsedBytes": 1}],
        "sources": [],
        **more,
    }


def test_rows_are_counted_once_for_each_batch() -> None:
    status = QueryStatus("orders")
    assert status.take(progress(3))
    assert not status.take(progress(3))
    assert status.take(progress(4))
    assert (status.batches, status.rows, status.state_rows, status.state_bytes) == (2, 20, 8, 71)


def test_a_rate_that_is_no_number_is_nothing() -> None:
    status = QueryStatus("orders")
    status.take(progress(processedRowsPerSecond=float("nan")))
    assert status.rows_per_s == 0.0


def test_a_line_has_all_queries_and_keeps_to_the_width() -> None:
    one, other = QueryStatus("orders", State.RUNNING), QueryStatus("clicks", State.RESTARTING)
    one.take(progress())
    one.lag = 12345
    assert line([one, other], 200) == "orders batch 3  1,234 rows/s  lag 12,345  1.5 s | clicks restarting"
    assert len(line([one, other], 20)) == 20


def test_the_page_has_metrics_and_status() -> None:
    status = QueryStatus("orders", State.RUNNING)
    status.take(progress())
    page = StatusPage({"orders": status}, 0)
    try:
        text = urllib.request.urlopen(f"{page.url}/metrics", timeout=60).read().decode()
        found = json.loads(urllib.request.urlopen(f"{page.url}/status", timeout=60).read())
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{page.url}/else", timeout=60)
    finally:
        page.close()
    assert 'moldau_spark_query_rows_total{query="orders"} 10.0' in text
    assert 'moldau_spark_query_state{query="orders",state="running"} 1.0' in text
    assert 'moldau_spark_query_duration_seconds{part="addBatch",query="orders"} 1.0' in text
    assert found["queries"][0]["batch"] == 3
    assert found == json.loads(to_json([status]))


def test_pauses_double_up_to_a_limit() -> None:
    policy = Policy(first_pause_s=1, most_pause_s=5)
    assert [policy.pause_s(failures) for failures in (1, 2, 3, 4, 99)] == [1, 2, 4, 5, 5]
