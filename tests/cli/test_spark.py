"""`moldau spark`: what sinks remember, and how to go on or to begin anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moldau.client import Client
from moldau.spark.sink.marker_topic import Ledger
from moldau.spark.sink.markers import TOPIC, Decision
from moldau.testing import Broker
from tests.cli.running import Moldau

OFFSETS = '{"in": {"0": 5}, "@ids": {"in": "x"}}'


@pytest.fixture
def moldau(kafka: Broker, tmp_path: Path) -> Moldau:
    return Moldau(kafka.bootstrap_servers, tmp_path)


def test_an_application_is_listed_resumed_and_reset(moldau: Moldau) -> None:
    assert "No application" in moldau.run("spark", "list").err + moldau.run("spark", "list").out
    with Client({"bootstrap.servers": moldau.servers}) as client:
        ledger = Ledger(client, TOPIC, "orders")
        ledger.decide(Decision("q", 4, (None,), (OFFSETS,), "/here"))
        [row] = moldau.json("spark", "list")
        assert (row["application"], row["batch"], row["checkpoint"], row["handed_on"]) == ("orders", 4, "/here", False)
        assert json.loads(moldau("spark", "resume", "orders")) == {"in": {"0": 5}}
        assert moldau.json("spark", "list")[0]["handed_on"]
        moldau("spark", "reset", "orders", "--yes")
        assert moldau.json("spark", "list") == []


def test_an_application_that_is_not_known_cannot_be_resumed(moldau: Moldau) -> None:
    done = moldau.run("spark", "resume", "nobody")
    assert done.code == 1
    assert "nobody has written nothing" in done.err
