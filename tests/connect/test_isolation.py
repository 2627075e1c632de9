"""One connector's trouble is its own: what a worker does with connectors that print, exit or never return."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.connect import Offsets, Record, Row, plugins, sink, source
from moldau.testing import Broker
from tests.connect.running import SINK, SOURCE, Running, eventually
from tests.services import unique

GO_ON = threading.Event()


class Settings:
    topic: str


@source
def exiting(config: Settings, offsets: Offsets) -> Iterator[Record]:
    print("a connector prints")
    yield Record(topic=config.topic, value="one")
    sys.exit("the connector exits")


@source
def hanging(config: Settings, offsets: Offsets) -> Iterator[Record]:
    yield Record(topic=config.topic, value="one")
    GO_ON.wait()


@sink
def leaving(config: Settings, rows: list[Row]) -> None:
    raise KeyboardInterrupt("the sink leaves")


@pytest.fixture
def stuck() -> Iterator[None]:
    yield
    GO_ON.set()


def test_connectors_that_exit_or_never_return_leave_the_others_alone(
    connect: Running, connect_broker: Broker, tmp_path: Path, stuck: None
) -> None:
    name = unique("trouble")
    lines, copy = tmp_path / "lines", tmp_path / "copy"
    lines.write_text("one\n")
    names = [plugins.register(one).class_name for one in (exiting, hanging, leaving)]
    connect.create(f"{name}-in", connector_class=SOURCE, file=lines, topic=f"{name}-lines")
    connect.create(f"{name}-out", connector_class=SINK, file=copy, topics=f"{name}-lines")
    connect.create(f"{name}-exits", connector_class=names[0], topic=f"{name}-other")
    connect.create(f"{name}-hangs", connector_class=names[1], topic=f"{name}-other")
    connect.create(f"{name}-leaves", connector_class=names[2], topics=f"{name}-lines", topic="-")
    connect.await_status(f"{name}-exits", "RUNNING", "FAILED")
    connect.await_status(f"{name}-leaves", "RUNNING", "FAILED")
    connect.await_status(f"{name}-hangs", "RUNNING", "RUNNING")
    assert "SystemExit: the connector exits" in connect.trace(f"{name}-exits")
    assert "KeyboardInterrupt: the sink leaves" in connect.trace(f"{name}-leaves")
    assert connect.http.delete(f"/connectors/{name}-hangs").status_code == 204
    with lines.open("a") as out:
        out.write("two\n")
    eventually(lambda: copy.exists() and copy.read_text(), "one\ntwo\n")
    assert connect.http.get("/health").status_code == 200
    for one in ("in", "out", "exits", "leaves"):
        assert connect.http.delete(f"/connectors/{name}-{one}").status_code == 204
