"""The metrics page of a real broker."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from moldau.broker.call import call
from moldau.broker.metrics import TABLE
from moldau.cli.metrics_page import markdown
from moldau.wire import messages as m

DOCS = Path(__file__).resolve().parents[2] / "docs"
COMMAND = [sys.executable, "-m", "moldau", "broker", "--ephemeral", "--listen", "127.0.0.1:0", "--metrics-port", "0"]


@pytest.fixture(scope="module")
def ports() -> Iterator[tuple[int, int]]:
    """The broker's port and that of its page."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        port = int(process.stdout.readline().rpartition(":")[2])
        told = re.search(r"127\.0\.0\.1:(\d+)/metrics", process.stderr.readline())
        assert told is not None
        yield port, int(told[1])
        process.terminate()
        assert process.wait(60) == 0


def ask(port: int, method: str = "GET", path: str = "/metrics") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path)
    response = connection.getresponse()
    return response.status, response.read().decode()


def samples(port: int) -> dict[tuple[str, tuple[str, ...]], float]:
    status, text = ask(port)
    assert status == 200
    families = text_string_to_metric_families(text)
    return {
        (s.name, tuple(value for _, value in sorted(s.labels.items()))): s.value
        for family in families
        for s in family.samples
    }


def test_the_page_tells_what_clients_did(ports: tuple[int, int]) -> None:
    port, page = ports
    topic = m.CreateTopicsRequest_CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    call(("127.0.0.1", port), m.CreateTopicsRequest(topics=[topic]), 7)
    before = samples(page)
    call(("127.0.0.1", port), m.MetadataRequest(topics=None), 9)
    after = samples(page)
    assert after["moldau_requests_total", ("CreateTopics",)] == 1
    assert after["moldau_requests_total", ("Metadata",)] == before.get(("moldau_requests_total", ("Metadata",)), 0) + 1
    assert after["moldau_received_bytes_total", ()] > before["moldau_received_bytes_total", ()]
    assert after["moldau_sent_bytes_total", ()] > before["moldau_sent_bytes_total", ()]
    assert after["moldau_connections_accepted_total", ()] >= 2
    assert after["moldau_partitions", ()] == 2
    assert after["moldau_log_end_offset", ("1", "orders")] == 0
    assert after["moldau_resident_bytes", ()] > 1 << 20
    assert after["moldau_request_seconds_count", ()] >= 2
    assert 0 < after["moldau_request_seconds_sum", ()] < 60


def test_every_row_of_the_table_is_on_the_page(ports: tuple[int, int]) -> None:
    _, text = ask(ports[1])
    for row in TABLE:
        assert f"# HELP {row.name}" in text
        assert row.help in text


def test_a_node_that_is_alone_leads_all_that_it_has(ports: tuple[int, int]) -> None:
    found = samples(ports[1])
    assert found["moldau_active_controller", ()] == found["moldau_active_brokers", ()] == 1
    assert found["moldau_quorum_state", ("leader",)] == 1
    assert found["moldau_leaders", ()] == found["moldau_at_min_isr_partitions", ()] == found["moldau_partitions", ()]
    assert found["moldau_under_replicated_partitions", ()] == found["moldau_offline_partitions", ()] == 0
    assert found["moldau_quorum_high_watermark", ()] == found["moldau_quorum_log_end_offset", ()] > 0


def test_the_page_of_the_docs_is_current() -> None:
    assert (DOCS / "metrics.md").read_text() == markdown(), "run make docs"


@pytest.mark.parametrize(("method", "path", "status"), [("HEAD", "/", 200), ("GET", "/x", 404), ("POST", "/", 405)])
def test_the_page_knows_little_else(ports: tuple[int, int], method: str, path: str, status: int) -> None:
    assert ask(ports[1], method, path)[0] == status
