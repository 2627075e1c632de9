"""What failed comes back: tasks that are restarted by themselves, and dead letters that are put once more."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Producer

from moldau.connect import Row, plugins, sink
from moldau.connect.worker import is_due
from moldau.testing import Broker, eventually
from tests.connect.running import Running
from tests.services import unique

JSON = "org.apache.kafka.connect.json.JsonConverter"
GOT: dict[str, list[Any]] = {}
TROUBLE: dict[str, int] = {}  # how often a sink is to fail, or that it refuses odd numbers


class Named:
    mark: str


@sink
def troubled(config: Named, rows: list[Row]) -> None:
    if TROUBLE.get(config.mark, 0) > 0:
        TROUBLE[config.mark] -= 1
        raise OSError("the target is away")
    for row in rows:
        if row.value["n"] % 2 and TROUBLE.get(config.mark, 0) < 0:
            row.refuse("It is odd.")
        else:
            GOT.setdefault(config.mark, []).append(row.value["n"])


def produce(broker: Broker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value, b"k")
    assert producer.flush(60) == 0


def create(connect: Running, name: str, topic: str, **more: Any) -> None:
    plugin = plugins.register(troubled).class_name
    more |= {"value.converter": JSON, "value.converter.schemas.enable": "false"}
    connect.create(name, connector_class=plugin, topics=topic, mark=name, **more)


@pytest.mark.parametrize(
    ("config", "restarts", "failed_s", "due"),
    [
        ({}, 0, 1e9, False),
        ({"errors.restart.max": "2"}, 0, 0.9, False),
        ({"errors.restart.max": "2"}, 0, 1.0, True),
        ({"errors.restart.max": "2"}, 1, 1.9, False),
        ({"errors.restart.max": "2"}, 1, 2.0, True),
        ({"errors.restart.max": "2"}, 2, 1e9, False),
        ({"errors.restart.max": "2", "errors.restart.delay.ms": "10"}, 1, 0.02, True),
    ],
)
def test_restarts_are_counted_and_come_ever_later(
    config: dict[str, str | None], restarts: int, failed_s: float, due: bool
) -> None:
    assert is_due(config, restarts, failed_s) is due


def test_a_task_is_restarted_as_often_as_it_may_be(connect: Running, connect_broker: Broker) -> None:
    topic, name, other = unique("restarts"), unique("restarts"), unique("restarts")
    produce(connect_broker, topic, b'{"n": 1}')
    TROUBLE[name], TROUBLE[other] = 3, 1000
    again = {"errors.restart.max": 3, "errors.restart.delay.ms": 1}
    create(connect, name, topic, **again)
    create(connect, other, topic, **again)
    eventually(lambda: GOT.get(name) == [1])
    connect.await_status(name, "RUNNING", "RUNNING")
    eventually(lambda: TROUBLE[other] == 1000 - 4)  # once, and three times again
    connect.await_status(other, "RUNNING", "FAILED")
    assert "the target is away" in connect.trace(other)
    assert TROUBLE[other] == 1000 - 4
    answer = connect.http.put(f"/connectors/{name}/config", json={"errors.restart.max": "often", **of(connect, name)})
    assert answer.status_code == 400 and "errors.restart.max" in answer.json()["message"]
    for one in (name, other):
        connect.http.delete(f"/connectors/{one}")


def of(connect: Running, name: str) -> dict[str, str]:
    config = connect.http.get(f"/connectors/{name}/config").json()
    return {key: value for key, value in config.items() if key != "errors.restart.max"}


def test_dead_letters_are_shown_and_put_once_more(connect: Running, connect_broker: Broker) -> None:
    topic, letters, name = unique("letters"), unique("dlq"), unique("letters")
    produce(connect_broker, topic, b'{"n": 1}', b"not json", b'{"n": 2}', b'{"n": 3}')
    TROUBLE[name] = -1
    more = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters}
    create(connect, name, topic, **more, **{"errors.deadletterqueue.context.headers.enable": "true"})
    path = f"/connectors/{name}/dead-letters"
    eventually(lambda: len(connect.http.get(path).json()["letters"]) == 3)
    shown = {one["value"]: one for one in connect.http.get(path).json()["letters"]}
    odd = shown['{"n": 1}']
    assert (odd["stage"], odd["message"], odd["topic"], odd["partition"]) == ("TASK_PUT", "It is odd.", topic, "0")
    assert shown["not json"]["stage"] == "VALUE_CONVERTER"
    assert len(connect.http.get(f"{path}?limit=1").json()["letters"]) == 1
    page = connect.http.get("/metrics").text
    of_task, prefix = f'{{connector="{name}",task="0"}}', "kafka_connect_task_error_metrics_"
    for line in (
        f"kafka_connect_sink_task_metrics_sink_record_read_total{of_task} 4.0",
        f"kafka_connect_sink_task_metrics_sink_record_send_total{of_task} 3.0",
        f"{prefix}total_record_errors{of_task} 1.0",
        f"{prefix}total_records_skipped{of_task} 3.0",
        f"{prefix}deadletterqueue_produce_requests{of_task} 3.0",
        f'kafka_connect_connector_task_metrics_status{{connector="{name}",status="running",task="0"}} 1.0',
    ):
        assert line in page.splitlines(), page
    assert f"source_record_poll_total{of_task}" not in page
    TROUBLE[name] = 0
    command = [sys.executable, "-m", "moldau", "connector", "dlq", name, "--retry", "--url", connect.url, "-o", "json"]
    done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert (done["put"], done["failed"]) == (2, 1)
    assert sorted(GOT[name]) == [1, 2, 3]
    [left] = connect.http.get(path).json()["letters"]
    assert left["value"] == "not json" and left["topic"] == topic
    assert connect.http.post(f"{path}/retry").json() == {"put": 0, "failed": 1}
    assert sorted(GOT[name]) == [1, 2, 3]
    connect.http.delete(f"/connectors/{name}")


def test_who_has_no_dead_letters_is_told_so(connect: Running) -> None:
    name = unique("without")
    create(connect, name, unique("none"))
    answer = connect.http.get(f"/connectors/{name}/dead-letters")
    assert answer.status_code == 400 and "errors.deadletterqueue.topic.name" in answer.json()["message"]
    connect.http.delete(f"/connectors/{name}")
