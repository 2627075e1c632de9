"""A worker and its tasks: what they move, and what becomes of them when somebody wants something else."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from moldau.client import Client
from moldau.connect import plugins
from moldau.connect.config_topic import CODEC, NOOP
from moldau.connect.connectors.file_stream import FileStreamSink
from moldau.connect.engine import TaskSpec
from moldau.connect.errors import ConnectError
from moldau.connect.source_task import ExactlyOnce
from moldau.connect.threads import Thread
from moldau.testing import Broker
from moldau.topicstore.writer import Writer
from tests.connect.running import SINK, SOURCE, Running, eventually, running, settings
from tests.services import Service, unique

JSON = "org.apache.kafka.connect.json.JsonConverter"
DATAGEN = "DatagenConnector"


def read(broker: Broker, topic: str) -> list[Any]:
    """All committed records of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": unique("reader"),
            "isolation.level": "read_committed",
        }
    )
    try:
        parts = consumer.list_topics(topic).topics[topic].partitions
        found = []
        for number in parts:
            place = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(place)
            consumer.assign([TopicPartition(topic, number, low)])
            while consumer.position([place])[0].offset < high:
                found += [one for one in consumer.consume(500, 0.1) if one.error() is None]
                if low == high:
                    break
        return found
    finally:
        consumer.close()


def values(broker: Broker, topic: str) -> list[str]:
    return [one.value().decode() for one in read(broker, topic)]


def test_lines_go_through_a_topic_into_a_file(connect: Running, connect_broker: Broker, tmp_path: Path) -> None:
    into, out, topic = tmp_path / "in.txt", tmp_path / "out.txt", unique("lines")
    source, sink = unique("source"), unique("sink")
    into.write_text("one\ntwo\nthr")
    connect.create(source, connector_class=SOURCE, file=into, topic=topic)
    connect.create(sink, connector_class=SINK, file=out, topics=topic)
    eventually(lambda: out.exists() and out.read_text(), "one\ntwo\n")
    with into.open("a") as file:
        file.write("ee\r\nfour ä\n")
    eventually(out.read_text, "one\ntwo\nthree\nfour ä\n")
    size = into.stat().st_size
    expected = {"offsets": [{"partition": {"filename": str(into)}, "offset": {"position": size}}]}
    eventually(lambda: connect.http.get(f"/connectors/{source}/offsets").json(), expected)
    place = {"kafka_partition": 0, "kafka_topic": topic}
    eventually(lambda: [one["partition"] for one in offsets(connect, sink)], [place])
    for name in (source, sink):
        assert connect.http.get(f"/connectors/{name}/topics").json() == {name: {"topics": [topic]}}
        connect.http.delete(f"/connectors/{name}")
        eventually(lambda name=name: connect.status(name), ("", []))


def test_a_connector_is_paused_stopped_and_resumed(connect: Running, connect_broker: Broker, tmp_path: Path) -> None:
    into, topic, name = tmp_path / "in.txt", unique("paused"), unique("paused")
    into.write_text("1\n")
    connect.create(name, connector_class=SOURCE, file=into, topic=topic)
    connect.await_status(name, "RUNNING", "RUNNING")
    eventually(lambda: connect.http.get(f"/connectors/{name}/offsets").json()["offsets"] != [], True)
    assert connect.http.put(f"/connectors/{name}/pause").status_code == 202
    connect.await_status(name, "PAUSED", "PAUSED")
    with into.open("a") as file:
        file.write("2\n")
    assert connect.http.put(f"/connectors/{name}/stop").status_code == 204
    connect.await_status(name, "STOPPED")
    assert connect.http.get(f"/connectors/{name}/tasks").json() == []
    assert values(connect_broker, topic) == ["1"]
    changed = {"offsets": [{"partition": {"filename": str(into)}, "offset": {"position": 0}}]}
    assert connect.http.patch(f"/connectors/{name}/offsets", json=changed).status_code == 200
    assert connect.http.put(f"/connectors/{name}/resume").status_code == 202
    connect.await_status(name, "RUNNING", "RUNNING")
    eventually(lambda: values(connect_broker, topic), ["1", "1", "2"])
    connect.http.delete(f"/connectors/{name}")


def test_a_task_that_fails_fails_alone_until_it_is_restarted(connect: Running, tmp_path: Path) -> None:
    topic, good, bad = unique("failing"), unique("good"), unique("bad")
    into = tmp_path / "in.txt"
    into.write_text("x\n")
    connect.create(good, connector_class=SOURCE, file=into, topic=topic)
    connect.create(bad, connector_class=SINK, file=tmp_path / "none" / "out.txt", topics=topic)
    connect.await_status(bad, "RUNNING", "FAILED")
    assert connect.trace(bad).startswith("org.apache.kafka.connect.errors.ConnectException: Couldn't find or create")
    connect.await_status(good, "RUNNING", "RUNNING")
    (tmp_path / "none").mkdir()
    answer = connect.http.post(f"/connectors/{bad}/restart?includeTasks=true&onlyFailed=true")
    assert answer.status_code == 202
    assert answer.json()["connector"]["state"] == "RUNNING"
    assert answer.json()["tasks"][0]["state"] == "RESTARTING"
    connect.await_status(bad, "RUNNING", "RUNNING")
    eventually(lambda: (tmp_path / "none" / "out.txt").read_text(), "x\n")
    for name in (good, bad):
        connect.http.delete(f"/connectors/{name}")


def test_one_task_is_restarted_by_itself(connect: Running, tmp_path: Path) -> None:
    name = unique("one")
    connect.create(name, connector_class=SINK, file=tmp_path / "none" / "out.txt", topics=unique("t"))
    connect.await_status(name, "RUNNING", "FAILED")
    (tmp_path / "none").mkdir()
    assert connect.http.post(f"/connectors/{name}/tasks/0/restart").status_code == 204
    connect.await_status(name, "RUNNING", "RUNNING")
    connect.http.delete(f"/connectors/{name}")


def test_what_cannot_be_converted_becomes_a_dead_letter(
    connect: Running, connect_broker: Broker, tmp_path: Path
) -> None:
    topic, letters, name, out = unique("mixed"), unique("letters"), unique("tolerant"), tmp_path / "out.txt"
    producer = Producer({"bootstrap.servers": connect_broker.bootstrap_servers})
    for value in (b'{"a":1}', b"not json", b'{"a":2}'):
        producer.produce(topic, value, b"k", headers=[("own", b"h")])
    producer.flush()
    more = {
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": "true",
        "transforms": "pick",
        "transforms.pick.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.pick.field": "a",
    }
    connect.create(name, connector_class=SINK, file=out, topics=topic, **more)
    eventually(lambda: out.exists() and out.read_text(), "1\n2\n")
    connect.http.delete(f"/connectors/{name}")
    eventually(lambda: connect.status(name), ("", []))
    [letter] = read(connect_broker, letters)
    assert (letter.key(), letter.value()) == (b"k", b"not json")
    told = dict(letter.headers())
    assert told.pop("own") == b"h"
    assert told["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert told["__connect.errors.class.name"] == JSON.encode()
    assert told["__connect.errors.topic"] == topic.encode() and told["__connect.errors.offset"] == b"1"
    assert told["__connect.errors.connector.name"] == name.encode() and told["__connect.errors.task.id"] == b"0"
    assert told["__connect.errors.exception.class.name"].endswith(b"Exception")
    assert len(told) == 10


def test_without_tolerance_the_task_fails_and_says_where(
    connect: Running, connect_broker: Broker, tmp_path: Path
) -> None:
    topic, name = unique("intolerant"), unique("intolerant")
    producer = Producer({"bootstrap.servers": connect_broker.bootstrap_servers})
    producer.produce(topic, b"not json")
    producer.flush()
    connect.create(name, connector_class=SINK, file=tmp_path / "out", topics=topic, value_converter=JSON)
    connect.await_status(name, "RUNNING", "FAILED")
    trace = connect.trace(name)
    assert trace.startswith("org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler")
    assert "Caused by: " in trace
    connect.http.delete(f"/connectors/{name}")


def test_datagen_makes_each_record_once(connect: Running, connect_broker: Broker) -> None:
    topic, name = unique("made"), unique("made")
    config = {
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "topic.creation.default.partitions": 3,
    }
    config |= {"max.interval": 2, "topic.creation.default.replication.factor": 1, "iterations": 120, "tasks.max": 2}
    connect.create(name, connector_class=DATAGEN, kafka_topic=topic, quickstart="orders", **config)
    connect.await_status(name, "RUNNING", "RUNNING", "RUNNING")
    connect.http.post(f"/connectors/{name}/restart?includeTasks=true")
    eventually(lambda: sorted(one["offset"]["current_iteration"] for one in offsets(connect, name)), [120, 120])
    made = Counter(json.loads(one)["orderid"] for one in values(connect_broker, topic))
    assert made == Counter(dict.fromkeys(range(120), 2))
    assert {one.partition() for one in read(connect_broker, topic)} == {0, 1, 2}
    connect.http.delete(f"/connectors/{name}")


def offsets(connect: Running, name: str) -> list[Any]:
    return connect.http.get(f"/connectors/{name}/offsets").json()["offsets"]


def test_secrets_are_resolved_in_the_worker_alone(connect_broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text(f"out={tmp_path / 'out.txt'}\n")
    package = "org.apache.kafka.common.config.provider."
    given = settings(connect_broker.bootstrap_servers)
    given |= {"config.providers": "file", "config.providers.file.class": f"{package}FileConfigProvider"}
    with running(given) as connect:
        reference = f"${{file:{tmp_path / 'secrets'}:out}}"
        connect.create("s", connector_class=SINK, file=reference, topics=unique("t"))
        connect.await_status("s", "RUNNING", "RUNNING")
        assert (tmp_path / "out.txt").exists()
        assert connect.http.get("/connectors/s/config").json()["file"] == reference
        assert connect.http.get("/connectors/s/tasks").json()[0]["config"]["file"] == reference


def test_workers_share_tasks_and_take_over_those_of_a_dead_one(connect_broker: Broker) -> None:
    """One worker of three is killed and one leaves: every record is there, and none twice."""
    given = settings(connect_broker.bootstrap_servers, session_timeout_ms="1500", heartbeat_interval_ms="300")
    topic = unique("shared")
    options = ("--bootstrap-servers", connect_broker.bootstrap_servers, "--listen", "127.0.0.1:0")
    with running(given) as first:
        third = Service("connect", *options, settings=tuple(f"{name}={text}" for name, text in given.items()))
        try:
            with running(given) as second:
                config = {"value.converter": JSON, "value.converter.schemas.enable": "false", "max.interval": 10}
                config |= {"tasks.max": 6, "iterations": 400, "random.seed": 5}
                answer = second.create("made", connector_class=DATAGEN, kafka_topic=topic, quickstart="users", **config)
                assert answer.status_code == 201
                assert answer.headers["location"].endswith("/connectors/made")
                eventually(lambda: len(owners(first)), 3)
                assert second.http.put("/connectors/made/pause").status_code == 202
                first.await_status("made", "PAUSED", *["PAUSED"] * 6)
                assert second.http.put("/connectors/made/resume").status_code == 202
                first.await_status("made", "RUNNING", *["RUNNING"] * 6)
                killed = third.url.removeprefix("http://")
                third.kill()
                eventually(lambda: killed not in owners(first), True)
            eventually(lambda: owners(first), {first.worker.settings.worker_id: 6})
            eventually(lambda: [one["offset"]["current_iteration"] for one in offsets(first, "made")], [400] * 6)
        finally:
            if third.process.poll() is None:
                third.kill()
    assert len(read(connect_broker, topic)) == 6 * 400


def owners(connect: Running) -> dict[str, int]:
    """How many tasks each worker runs."""
    found = connect.http.get("/connectors/made/status").json().get("tasks", [])
    return dict(Counter(task["worker_id"] for task in found if task["state"] == "RUNNING"))


def test_a_worker_refuses_to_be_among_apaches(connect_broker: Broker) -> None:
    from moldau.client import Client, Member
    from moldau.http import ServeError

    given = settings(connect_broker.bootstrap_servers)
    joined = threading.Event()
    with Client({"bootstrap.servers": connect_broker.bootstrap_servers}) as client:
        theirs = Member(
            client,
            given["group.id"],
            "connect",
            [("sessioned", b""), ("compatible", b"")],
            lambda _, peers: {peer.id: b"" for peer in peers},
            on_assigned=lambda _: joined.set(),
        )
        with theirs.start():
            assert joined.wait(60)
            with pytest.raises(ServeError, match="has workers of Apache Connect"), running(given):
                pass


def test_a_file_that_is_replaced_or_truncated_is_read_from_its_start(
    connect: Running, connect_broker: Broker, tmp_path: Path
) -> None:
    into, topic, name = tmp_path / "log", unique("rotated"), unique("rotated")
    into.write_text("first\n")
    connect.create(name, connector_class=SOURCE, file=into, topic=topic)
    connect.await_status(name, "RUNNING", "RUNNING")
    eventually(lambda: offsets(connect, name) != [], True)
    os.rename(into, tmp_path / "log.1")
    into.write_text("second\n")
    eventually(lambda: values(connect_broker, topic), ["first", "second"])
    into.write_text("3\n")
    eventually(lambda: values(connect_broker, topic), ["first", "second", "3"])
    connect.http.delete(f"/connectors/{name}")


def test_a_leader_that_was_fenced_leads_anew_by_itself(
    connect: Running, connect_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks for anything: the worker's own write finds out, and is repeated."""
    name = unique("fenced")
    connect.create(name, connector_class=SINK, file=tmp_path / "out", topics=unique("t"))
    connect.await_status(name, "RUNNING", "RUNNING")
    with Client({"bootstrap.servers": connect_broker.bootstrap_servers}) as client:
        group_id, topic = (connect.given[key] for key in ("group.id", "config.storage.topic"))
        other = Writer(client, topic, f"connect-cluster-{group_id}")
        other.take_over(60)
        other.append([CODEC.encode(NOOP)], 60)
    monkeypatch.setattr(FileStreamSink, "task_configs", lambda self, config, most: [{**config, "more": "1"}])
    connect.worker.restart((name, None))

    def configured() -> list[Any]:
        return [one["config"].get("more") for one in connect.http.get(f"/connectors/{name}/tasks").json()]

    eventually(configured, ["1"])
    connect.http.delete(f"/connectors/{name}")


def test_a_zombie_of_an_exactly_once_source_writes_nothing_more(connect: Running, connect_broker: Broker) -> None:
    """Two tasks of one name at the same time: the later one fences the earlier, whatever that has begun."""
    topic, name = unique("zombie"), unique("zombie")

    def opened() -> ExactlyOnce:
        plugin = plugins.find(DATAGEN)
        assert plugin is not None
        spec = TaskSpec(name, 0, plugin.load(), {}, {}, True, f"{connect.worker.settings.group_id}-{name}-0")
        engine: Any = connect.worker.engine
        return ExactlyOnce(Thread(spec, engine._around, lambda _: None, lambda *_: None, is_paused=False))

    zombie = opened()
    zombie.send(topic, None, None, b"of the zombie")
    zombie.note({"p": 1}, {"n": 1})
    successor = opened()
    successor.send(topic, None, None, b"of its successor")
    successor.note({"p": 1}, {"n": 2})
    assert successor.commit()
    with pytest.raises((ConnectError, KafkaException)):
        zombie.commit()
    for writer in (zombie, successor):
        writer.close()
    assert values(connect_broker, topic) == ["of its successor"]
    store: Any = connect.worker.engine
    eventually(lambda: store._around.offsets.offset(name, {"p": 1}), {"n": 2})


def test_a_connector_whose_topics_make_no_sense_fails_before_it_has_tasks(connect: Running, tmp_path: Path) -> None:
    config = {
        "connector.class": SOURCE,
        "file": tmp_path / "none",
        "topic": "t",
        "topic.creation.default.partitions": 1,
    }
    connect.create("wrong-topics", **config)
    connect.await_status("wrong-topics", "FAILED")
    found = connect.http.get("/connectors/wrong-topics/status").json()["connector"]
    assert found["version"] is None
    assert found["trace"].startswith("org.apache.kafka.common.config.ConfigException: Missing required configuration")
    connect.http.delete("/connectors/wrong-topics")


def test_the_topics_of_a_deleted_connector_are_forgotten(
    connect: Running, connect_broker: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_text("a\n")
    connect_broker.create_topic("forgotten")
    config = {"connector.class": SOURCE, "file": file, "topic": "forgotten"}

    def topics() -> list[str]:
        return connect.http.get("/connectors/used/topics").json()["used"]["topics"]

    connect.create("used", **config)
    eventually(topics, ["forgotten"])
    connect.http.delete("/connectors/used")
    eventually(topics, [])


def test_settings_of_dead_letters_mean_nothing_to_a_source(connect: Running, tmp_path: Path) -> None:
    letters = {"errors.deadletterqueue.topic.replication.factor": "x", "errors.deadletterqueue.topic.name": "letters"}
    connect.create("no-letters", **{"connector.class": SOURCE, "file": tmp_path / "none", "topic": "t", **letters})
    connect.await_status("no-letters", "RUNNING", "RUNNING")
    connect.http.delete("/connectors/no-letters")
