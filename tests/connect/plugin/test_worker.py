"""Java plugins through a worker: REST, records in topics, offsets, and tasks that fail alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from moldau.testing import Broker
from tests.connect.plugin.conftest import BACKWARDS, KEEPER, LONG_KEY, NUMBERS, SUFFIX, plugin_settings
from tests.connect.running import Running, eventually, running, settings
from tests.services import unique

pytestmark = pytest.mark.needs("java", "sample-plugin")
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}


@pytest.fixture(scope="module")
def worker(connect_broker: Broker) -> Iterator[Running]:
    with running({**settings(connect_broker.bootstrap_servers), **plugin_settings()}) as started:
        yield started


def create(worker: Running, class_name: str, **config: str) -> str:
    name = unique("java")
    given = {"connector.class": class_name, **{key.replace("__", "."): text for key, text in config.items()}}
    answer = worker.http.post("/connectors", json={"name": name, "config": given})
    assert answer.status_code == 201, answer.text
    return name


def read(broker: Broker, topic: str, count: int) -> list[tuple[str | None, str | None]]:
    """The committed records of a topic, keys and values."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": unique("g"), "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "topic.metadata.refresh.interval.ms": "200"})
    consumer.subscribe([topic])
    found: list[tuple[str | None, str | None]] = []

    def enough() -> bool:
        found.extend(
            (one.key() and one.key().decode(), one.value() and one.value().decode())  # type: ignore[union-attr]
            for one in consumer.consume(count, 0.2)
            if one.error() is None
        )
        return len(found) >= count

    try:
        eventually(enough, True)
    finally:
        consumer.close()
    return found


def test_the_worker_lists_describes_and_validates_them(worker: Running) -> None:
    listed = {one["class"]: one for one in worker.http.get("/connector-plugins?connectorsOnly=false").json()}
    assert listed[NUMBERS] == {"class": NUMBERS, "type": "source", "version": "1.2.3"}
    assert {listed[name]["type"] for name in (SUFFIX, LONG_KEY, BACKWARDS)} == {
        "transformation",
        "predicate",
        "converter",
    }
    settings = {one["name"]: one for one in worker.http.get(f"/connector-plugins/{NUMBERS}/config").json()}
    assert settings["count"]["default_value"] == "3"
    assert settings["tasks.max"]["default_value"] == "1"
    assert [one["name"] for one in worker.http.get(f"/connector-plugins/{SUFFIX}/config").json()] == ["suffix"]
    config = {"connector.class": NUMBERS, "name": "x", "count": "-1", "exactly.once.support": "required", "act": "fail"}
    found = worker.http.put(f"/connector-plugins/{NUMBERS}/config/validate", json=config).json()
    errors = {one["value"]["name"]: one["value"]["errors"] for one in found["configs"] if one["value"]["errors"]}
    assert errors == {
        "count": ["Invalid value -1 for configuration count: Value must be at least 0"],
        "topic": ['Missing required configuration "topic" which has no default value.'],
        "exactly.once.support": [
            "The connector does not support exactly-once semantics with the provided configuration."
        ],
    }


def test_a_source_writes_goes_on_after_a_restart_and_its_offsets_can_be_set(
    worker: Running, connect_broker: Broker, journal: Path
) -> None:
    topic = unique("numbers")
    config = {
        "topic": topic,
        "log": str(journal),
        **JSON,
        "transforms": "s",
        "transforms.s.type": SUFFIX,
        "transforms.s.suffix": "-y",
        "transforms.s.predicate": "p",
        "predicates": "p",
        "predicates.p.type": LONG_KEY,
        "predicates.p.least": "1",
    }
    name = create(worker, NUMBERS, **config)
    assert [key for key, _ in read(connect_broker, f"{topic}-y", 3)] == ["k1", "k2", "k3"]
    offsets = f"/connectors/{name}/offsets"
    at = {"offsets": [{"partition": {"task": "0"}, "offset": {"n": 3}}]}
    eventually(lambda: worker.http.get(offsets).json(), at)
    changed = worker.http.patch(f"/connectors/{name}/config", json={"count": "5"})
    assert changed.status_code == 200, changed.text
    values = [json.loads(value or "") for _, value in read(connect_broker, f"{topic}-y", 5)]
    assert [one["n"] for one in values] == [1, 2, 3, 4, 5]
    assert values[0]["inner"] == {"x": 1}
    assert "start at 4" in journal.read_text()

    worker.http.put(f"/connectors/{name}/stop")
    worker.await_status(name, "STOPPED")
    wrong = {"offsets": [{"partition": {"task": "0"}, "offset": {"n": "text"}}]}
    eventually(lambda: worker.http.patch(offsets, json=wrong).json()["message"], "n is not a Long")
    assert worker.http.patch(offsets, json=at).json() == {
        "message": "The offsets for this connector have been altered successfully"
    }
    worker.http.delete(f"/connectors/{name}")


def test_a_sink_puts_again_reports_and_commits(worker: Running, connect_broker: Broker, journal: Path) -> None:
    topic, letters = unique("kept"), unique("letters")
    producer = Producer({"bootstrap.servers": connect_broker.bootstrap_servers})
    for value in ("a", "again", "bad", "back", "z"):
        producer.produce(topic, value[::-1].encode(), "k")
    producer.flush()
    name = create(
        worker,
        KEEPER,
        topics=topic,
        log=str(journal),
        value__converter=BACKWARDS,
        errors__tolerance="all",
        errors__deadletterqueue__topic__name=letters,
        errors__deadletterqueue__topic__replication__factor="1",
    )

    def kept() -> list[str]:
        rows = journal.read_text().split("\n") if journal.exists() else []
        return [line.partition("=")[2] for line in rows if line.startswith(f"{topic}-0@")]

    # `again` fails each first time, and is put once more with what came before it; `back` begins anew, once
    eventually(lambda: (kept().count("back"), kept()[-1:]), (2, ["z"]))
    assert kept()[:3] == ["a", "a", "again"]
    eventually(lambda: worker.http.get(f"/connectors/{name}/offsets").json()["offsets"][-1:], [kept_offset(topic, 5)])
    assert read(connect_broker, letters, 1) == [("k", "dab")]
    worker.http.delete(f"/connectors/{name}")
    eventually(lambda: journal.read_text().split("\n")[-2:], ["stop", ""])


def kept_offset(topic: str, offset: int) -> dict[str, dict[str, object]]:
    return {"partition": {"kafka_partition": 0, "kafka_topic": topic}, "offset": {"kafka_offset": offset}}


def test_a_connector_asks_for_more_tasks(worker: Running, tmp_path: Path) -> None:
    grow = tmp_path / "grow"
    name = create(worker, NUMBERS, topic=unique("grown"), grow=str(grow), tasks__max="2", **JSON)
    worker.await_status(name, "RUNNING", "RUNNING")
    grow.touch()
    worker.await_status(name, "RUNNING", "RUNNING", "RUNNING")
    worker.http.delete(f"/connectors/{name}")


def test_what_a_plugin_does_badly_fails_it_alone(worker: Running, connect_broker: Broker) -> None:
    topic = unique("bad")
    good = create(worker, NUMBERS, topic=topic, act="print", **JSON)
    exits = create(worker, NUMBERS, topic=topic, act="exit", count="0", **JSON)
    refuses = create(worker, NUMBERS, topic=topic, act="refuse", **JSON)
    worker.await_status(exits, "RUNNING", "FAILED")
    assert "at sample.Sample$NumbersTask" in worker.trace(exits)
    worker.await_status(refuses, "FAILED")
    assert "not with me" in worker.http.get(f"/connectors/{refuses}/status").json()["connector"]["trace"]
    assert len(read(connect_broker, topic, 3)) == 3
    worker.await_status(good, "RUNNING", "RUNNING")
    for name in (good, exits, refuses):
        worker.http.delete(f"/connectors/{name}")


def test_a_source_throws_its_own_transactions_away(worker: Running, connect_broker: Broker) -> None:
    topic = unique("bounded")
    name = create(worker, NUMBERS, topic=topic, count="6", transaction__boundary="connector", **JSON)
    # 1, 2 and 3 are thrown away; 4, 5 and 6 are committed with the batch of 5
    assert [key for key, _ in read(connect_broker, topic, 3)] == ["k4", "k5", "k6"]
    at = [{"partition": {"task": "0"}, "offset": {"n": 6}}]
    eventually(lambda: worker.http.get(f"/connectors/{name}/offsets").json()["offsets"], at)
    worker.http.delete(f"/connectors/{name}")


def test_tasks_of_a_jvm_that_was_halted_fail_and_run_again(worker: Running, connect_broker: Broker) -> None:
    topic = unique("halted")
    good = create(worker, NUMBERS, topic=topic, **JSON)
    assert len(read(connect_broker, topic, 3)) == 3
    halts = create(worker, NUMBERS, topic=topic, act="halt", count="0", **JSON)
    for name in (good, halts):
        eventually(lambda name=name: worker.status(name)[1], ["FAILED"])
        assert "The JVM of Java plugins has ended with code 4." in worker.trace(name)
    worker.http.delete(f"/connectors/{halts}")
    eventually(lambda: worker.status(halts)[0], "")
    worker.http.patch(f"/connectors/{good}/config", json={"count": "5"})
    assert [key for key, _ in read(connect_broker, topic, 5)] == ["k1", "k2", "k3", "k4", "k5"]
    worker.await_status(good, "RUNNING", "RUNNING")
    worker.http.delete(f"/connectors/{good}")
