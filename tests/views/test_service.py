"""Views over HTTP: every kind of store, positions, the past, SQL, and what is told of mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from moldau.views.service import serve
from tests.views.conftest import World
from tests.views.test_views import clicks, piped


@pytest.fixture(scope="module")
def http(world: World) -> Iterator[httpx.Client]:
    builder = clicks(world)
    with piped(builder) as driver, world.stores(builder) as stores:
        for name in stores.changelogs:
            world.log(driver, stores.changelogs[name].topic)
        serving = serve(stores, "127.0.0.1:0")
        with httpx.Client(base_url=serving.url, timeout=60) as client:
            yield client
        serving.close()


def asked(http: httpx.Client, path: str, **parameters: Any) -> Any:
    answer = http.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_stores_of_all_kinds_are_asked(http: httpx.Client) -> None:
    told = {row["store"]: row for row in asked(http, "/stores")}
    assert set(told) == {"counts", "per-minute", "visits", "pages"}
    assert told["counts"]["position"] == {"0": 4}
    assert told["counts"]["lag"] == 0
    assert asked(http, "/stores/counts/entries/ann") == {"key": "ann", "value": 2, "timestamp": 2_000}
    assert [row["key"] for row in asked(http, "/stores/counts/entries", prefix="b")] == ["bob"]
    assert [row["key"] for row in asked(http, "/stores/counts/entries", **{"from": "b"})] == ["bob", "cid"]
    assert len(asked(http, "/stores/counts/entries", limit=2)) == 2
    assert asked(http, "/stores/per-minute/entries/cid", start=60_000) == [
        {"key": "cid", "window_start": 60_000, "window_end": 120_000, "value": 1, "timestamp": 61_000}
    ]
    assert asked(http, "/stores/visits/entries/ann") == [
        {"key": "ann", "window_start": 0, "window_end": 2_000, "value": 2}
    ]
    assert asked(http, "/stores/pages/entries/%2Fhome", as_of=150) == [
        {"key": "/home", "value": "v1", "timestamp": 100, "valid_to": 200}
    ]
    assert len(asked(http, "/stores/per-minute/entries")) == 3


def test_positions_and_the_past(http: httpx.Client) -> None:
    assert asked(http, "/stores/counts/entries/ann", at="0:1")["value"] == 1
    assert asked(http, "/stores/counts/entries/ann", at_least="latest")["value"] == 2
    late = http.get("/stores/counts/entries/ann", params={"at_least": "0:9", "timeout_ms": 50})
    assert late.status_code == 503
    assert "has not reached 0:9" in late.json()["message"]
    waited = http.get("/stores/counts/entries/zoe", params={"wait": "true", "timeout_ms": 50})
    assert waited.status_code == 503


def test_sql_is_answered(http: httpx.Client) -> None:
    answer = http.post("/sql", json={"sql": 'select key, value from counts where "value" > 1'})
    assert answer.json() == [{"key": "ann", "value": 2}]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/stores/none/entries/k", 404, "has no store none"),
        ("/stores/counts/entries/nobody", 404, "has nothing of nobody"),
        ("/stores/counts/entries/ann?at=x", 422, "is not a position"),
        ("/stores/counts/entries?limit=x", 422, "limit must be a whole number"),
        ("/stores/pages/entries", 422, "is versioned"),
        ("/elsewhere", 404, ""),
    ],
)
def test_mistakes_are_told(http: httpx.Client, path: str, status: int, words: str) -> None:
    answer = http.get(path)
    assert answer.status_code == status
    assert words in answer.json()["message"]


def test_a_wrong_query_is_told(http: httpx.Client) -> None:
    assert http.post("/sql", content=b"{").status_code == 400
    assert http.post("/sql", json=["x"]).status_code == 422
    assert "one SELECT" in http.post("/sql", json={"sql": "drop table counts"}).json()["message"]
