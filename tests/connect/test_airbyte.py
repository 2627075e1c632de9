"""The Airbyte source: a manifest read by airbyte-cdk, in an interpreter of its own, from a server of this test."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from moldau.connect.connector import SourceContext
from moldau.connect.connectors.airbyte_runner import chosen, stored
from moldau.connect.connectors.airbyte_source import AIRBYTE
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError
from moldau.testing import eventually

PATIENCE_S = 300
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
MANIFEST = """
version: 4.3.0
type: DeclarativeSource
check: {type: CheckStream, stream_names: [orders]}
streams:
  - type: DeclarativeStream
    name: orders
    primary_key: [id]
    schema_loader:
      type: InlineSchemaLoader
      schema: {type: object, properties: {id: {type: integer}, day: {type: string}}}
    retriever:
      type: SimpleRetriever
      requester:
        type: HttpRequester
        url_base: "{{ config['url'] }}"
        path: /orders
        http_method: GET
      record_selector: {type: RecordSelector, extractor: {type: DpathExtractor, field_path: [items]}}
    incremental_sync:
      type: DatetimeBasedCursor
      cursor_field: day
      datetime_format: "%Y-%m-%d"
      start_datetime: {type: MinMaxDatetime, datetime: "2026-01-01", datetime_format: "%Y-%m-%d"}
      start_time_option: {type: RequestOption, inject_into: request_parameter, field_name: since}
spec:
  type: Spec
  connection_specification: {type: object, properties: {url: {type: string}}}
"""


class Shop(BaseHTTPRequestHandler):
    """Answers with the orders since a day; those of the last day come twice, as the cursor includes its start."""

    def do_GET(self) -> None:
        since = parse_qs(urlsplit(self.path).query).get("since", [""])[0]
        items = [{"id": n, "day": day} for n, day in enumerate(DAYS) if day >= since]
        body = json.dumps({"items": items}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(folder: Path, url: str, state: Any = None, **config: str) -> tuple[list[Record], Any]:
    """All records of one run, and the state after it."""
    place = folder / "manifest.yaml"
    place.write_text(MANIFEST)
    given = {"airbyte.manifest": str(place), "airbyte.python": os.environ["AIRBYTE_PYTHON"]}
    given |= {"airbyte.config": json.dumps({"url": url}), "tap.interval.ms": "3600000"}
    [task] = AIRBYTE.task_configs({**given, **{name.replace("_", "."): one for name, one in config.items()}}, 2)
    reading = AIRBYTE.open(SourceContext(task, lambda _: state, lambda _: False))
    found: list[Record] = []

    def ended() -> bool:
        found.extend(reading.poll())
        return reading._child is None

    try:
        eventually(ended, PATIENCE_S, "the end of the run")
    finally:
        reading.close()
    return found, reading._offset


@pytest.mark.needs("airbyte")
def test_a_manifest_is_read_from_its_state(url: str, tmp_path: Path) -> None:
    found, state = run(tmp_path, url)
    assert [(one.topic, one.key.get("id"), one.value.get("day")) for one in found] == [
        ("orders", n, day) for n, day in enumerate(DAYS)
    ]
    assert found[-1].source_offset == state and set(state["state"]) == {"orders"}
    again, _ = run(tmp_path, url, state, topic_name_format="shop-${stream}")
    assert [(one.topic, one.value.get("id")) for one in again] == [("shop-orders", 2)]
    with pytest.raises(ConnectError, match="no stream x; it has orders"):
        run(tmp_path, url, airbyte_streams="x")


def test_streams_are_chosen() -> None:
    streams = [SimpleNamespace(name="a"), SimpleNamespace(name="b")]
    assert chosen(streams, []) == streams and chosen(streams, ["b"]) == streams[1:]
    with pytest.raises(SystemExit, match="no stream c; it has a, b"):
        chosen(streams, ["c"])
    assert stored("a", {"day": 1})["stream"] == {"stream_descriptor": {"name": "a"}, "stream_state": {"day": 1}}


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.connect.connectors.airbyte_source.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"environment of its own, and name its interpreter in airbyte\.python"):
        AIRBYTE.task_configs({"airbyte.manifest": "m.yaml"}, 1)
    with pytest.raises(ConfigError, match="not JSON"):
        AIRBYTE.task_configs({"airbyte.manifest": "m.yaml", "airbyte.config": "{"}, 1)
