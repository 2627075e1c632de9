"""`moldau perf` and `moldau doctor` on a real broker, and the meter's arithmetic."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from moldau.cli import ports
from moldau.cli.meter import Meter, histogram, percentile, spark
from tests.cli.running import QUICK, Moldau


def test_what_is_measured_is_what_was_done(moldau: Moldau) -> None:
    topic = moldau.topic(2)
    made = moldau.json("perf", "produce", topic, "-n", "5000", "--size", "50", "--compression", "lz4")
    assert made["records"] == 5000 and made["bytes"] == 250_000 and made["latency_ms"]["max"] > 0
    assert moldau.json("perf", "consume", topic)["records"] == 5000
    assert "records (250.0 KB)" in moldau("perf", "consume", topic)
    slow = moldau.json("perf", "produce", topic, "-n", "50", "--rate", "500", "--acks", "1")
    assert slow["records"] == 50 and slow["seconds"] >= 0.09


def test_latency_counts_every_record_and_leaves_no_topic(moldau: Moldau) -> None:
    done = moldau("perf", "latency", "-n", "50", "--rate", "1000")
    assert done.startswith("50 records") and " ms " in done
    assert moldau.json("topic", "list", "moldau-perf") == []
    empty = moldau.run("perf", "consume", moldau.topic())
    assert empty.code == 1 and "perf produce" in empty.err


@QUICK
@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.floats(0, 100))
def test_percentiles_are_among_the_values_and_rise(values: list[float], percent: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, percent)
    assert found in ordered and ordered[0] <= found <= percentile(ordered, 100) == ordered[-1]


@QUICK
@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_a_histogram_has_every_value(values: list[float]) -> None:
    lines = list(histogram(values))
    shares = [float(line.split("%")[0].split()[-1]) for line in lines]
    assert not values or 98 <= sum(shares) <= 102
    assert len(spark(values)) == len(values)


def test_a_meter_without_latencies_has_none() -> None:
    meter = Meter("nothing")
    assert "latency_ms" not in meter.facts()


def test_the_doctor_knows_what_is_there_and_what_is_not(moldau: Moldau, tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path), "--registry", "http://127.0.0.1:1", "--rest", "http://127.0.0.1:1")
    done = moldau.run("doctor", *options, "-o", "json")
    found = {row["what"]: row for row in json.loads(done.out)}
    assert found["cluster"]["state"] == "ok" and "1 brokers" in found["cluster"]["found"]
    assert found["registry"]["state"] == "warning" and "moldau registry" in found["registry"]["advice"]
    assert found["python"]["state"] == "ok" and found["disk"]["found"].endswith(str(tmp_path))
    away = moldau.run("doctor", *options, "-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=200")
    assert "127.0.0.1:1 does not answer" in away.out and "→" in away.out


def test_the_owner_of_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not ports.is_free("127.0.0.1", port)
        owner = ports.owner(port)
        assert owner is not None and owner.pid == os.getpid() and "python" in owner.command
    assert ports.is_free("127.0.0.1", port) and ports.owner(port) is None
