"""Metrics that clients push (KIP-714): librdkafka and Java's clients, as the metrics page counts them."""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from moldau.broker.call import call
from moldau.testing import eventually
from moldau.wire import messages as m
from tests.conformance.java_tools import Tools

COMMAND = [sys.executable, "-m", "moldau", "broker", "--ephemeral", "--listen", "127.0.0.1:0", "--metrics-port", "0"]
CLIENT_METRICS = 16


@dataclass(frozen=True, slots=True)
class Taking:
    """A broker that takes telemetry, and its page."""

    port: int
    page: int

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def count(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/metrics", timeout=60) as answer:
            found = re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found, name
        return float(found[1])

    def pushes(self) -> float:
        return self.count("moldau_telemetry_pushes_total")


@pytest.fixture(scope="module")
def taking() -> Iterator[Taking]:
    command = [*COMMAND, "--set", "moldau.telemetry=true"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    with process.stdout, process.stderr:
        port = int(process.stdout.readline().rpartition(":")[2])
        told = re.search(r"127\.0\.0\.1:(\d+)/metrics", process.stderr.readline())
        assert told
        wanted = {"metrics": "*", "interval.ms": "200"}
        rows = [m.IncrementalAlterConfigsRequest_AlterableConfig(name, 0, value) for name, value in wanted.items()]
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(CLIENT_METRICS, "all", rows)
        assert not call(("127.0.0.1", port), m.IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code
        yield Taking(port, int(told[1]))
        process.terminate()
        process.wait(60)


def test_librdkafka_pushes_its_metrics(taking: Taking) -> None:
    before = taking.pushes()
    producer = Producer({"bootstrap.servers": taking.bootstrap})
    producer.produce("t", b"v")
    assert producer.flush(20) == 0
    eventually(lambda: taking.pushes() >= before + 2, what="a second push")
    assert taking.count("moldau_telemetry_bytes_total") > 0 and taking.count("moldau_telemetry_clients") >= 1


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_javas_clients_push_at_least_when_they_end(taking: Taking, jvm: subprocess.Popen[str]) -> None:
    before = taking.pushes()
    load = ["--num-records", "1000", "--record-size", "10", "--throughput", "1000"]
    Tools(jvm, taking.bootstrap)("kafka-producer-perf-test", "--topic", "t", *load)
    assert taking.pushes() > before
