"""The MQTT connectors, against mosquitto."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors.mqtt import Line, MqttSink, MqttSource, place_of_server
from moldau.connect.data import STRING, Record
from moldau.connect.errors import ConfigError, RetriableError
from moldau.connect.shapes import Shape
from moldau.testing import Broker, eventually
from moldau.testing.connectors import connect
from moldau.testing.ports import free_port
from tests.connect.systems import mosquitto
from tests.services import unique

pytest.importorskip("paho.mqtt")
needs_mosquitto = pytest.mark.needs("mosquitto")
PATIENCE_S = 120


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with mosquitto() as found:
        yield found


@pytest.fixture
def client(port: int) -> Iterator[Any]:
    """A client of the test's own."""
    given = {"mqtt.server.uri": f"tcp://127.0.0.1:{port}", "mqtt.qos": "1"}
    line = Line(MqttSink.config.parse(given), unique("test"), is_clean=True)
    line.start()
    assert line.is_up.wait(PATIENCE_S)
    yield line.client
    line.close()


def publish(client: Any, topic: str, *payloads: str, qos: int = 1, retain: bool = False) -> None:
    for payload in payloads:
        client.publish(topic, payload, qos, retain).wait_for_publish(PATIENCE_S)


def listening(port: int, topics: str, **config: str) -> Any:
    given = {"name": unique("mqtt"), "mqtt.server.uri": f"tcp://127.0.0.1:{port}", "kafka.topic": "t", "mqtt.qos": "2"}
    given |= {"mqtt.topics": topics, **{key.replace("_", "."): value for key, value in config.items()}}
    [task, *_] = MqttSource().task_configs(given, 1)
    made = MqttSource().open(SourceContext(task, lambda _: None, threading.Event().wait))
    assert made.is_subscribed.wait(PATIENCE_S)
    return made


def poll(task: Any, count: int, *, commit: bool = False) -> list[Record]:
    found: list[Record] = []

    def enough() -> bool:
        found.extend(task.poll())
        if commit:
            task.committed()
        return len(found) >= count

    eventually(enough, PATIENCE_S, f"{count} messages")
    return found


@needs_mosquitto
@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_what_was_not_committed_comes_again(port: int, client: Any, version: str) -> None:
    base, name = unique("kept"), unique("client")
    config = {"mqtt_version": version, "mqtt_clean_session_enabled": "false", "mqtt_client_id": name}
    first = listening(port, f"{base}/+", **config)
    publish(client, f"{base}/a", "1", "2", qos=2)
    records = poll(first, 2)
    assert [(one.key, one.value) for one in records] == [(f"{base}/a", b"1"), (f"{base}/a", b"2")]
    assert {one.name: one.value for one in records[0].headers}["mqtt.qos"] == 2
    assert first.wants_commit
    first.committed()
    assert not first.wants_commit
    publish(client, f"{base}/b", "3")
    assert [one.value for one in poll(first, 1)] == [b"3"]
    first.close()  # 3 was not committed
    publish(client, f"{base}/b", "4")
    second = listening(port, f"{base}/+", **config)
    again = poll(second, 2)
    assert sorted(one.value for one in again) == [b"3", b"4"]
    second.committed()
    second.close()


@needs_mosquitto
def test_retained_messages_and_shared_subscriptions_work(port: int, client: Any) -> None:
    base = unique("shared")
    publish(client, f"{base}/r", "kept", retain=True)
    one = listening(port, f"{base}/#")
    [found] = poll(one, 1)
    assert {each.name: each.value for each in found.headers}["mqtt.retained"] is True
    one.close()
    tasks = [listening(port, f"$share/g/{base}/work") for _ in range(2)]
    publish(client, f"{base}/work", *map(str, range(20)))
    values: list[Any] = []

    def all_there() -> bool:
        for task in tasks:
            values.extend(each.value for each in task.poll())
            task.committed()
        return len(values) >= 20

    eventually(all_there, PATIENCE_S)
    assert sorted(values) == sorted(str(n).encode() for n in range(20))
    for task in tasks:
        task.close()


def test_topics_are_shared_out() -> None:
    given = {"name": "n", "mqtt.server.uri": "tcp://h", "kafka.topic": "t", "mqtt.topics": "a,b,c"}
    tasks = MqttSource().task_configs(given, 2)
    assert [(one["mqtt.topics"], one["mqtt.client.id"]) for one in tasks] == [("a,c", "n-0"), ("b", "n-1")]
    shared = MqttSource().task_configs({**given, "mqtt.topics": "$share/g/x,a"}, 3)
    assert [one["mqtt.topics"] for one in shared] == ["$share/g/x,a", "$share/g/x", "$share/g/x"]
    assert place_of_server("ssl://h") == ("h", 8883, True) and place_of_server("tcp://h:1") == ("h", 1, False)
    for wrong in ("h:1883", "http://h", "tcp://", "tcp://h:x"):
        with pytest.raises(ConfigError):
            place_of_server(wrong)


def publishing(port: int, refused: list[Any], **config: str) -> Any:
    given = {"mqtt.server.uri": f"tcp://127.0.0.1:{port}", "mqtt.qos": "1", "name": unique("sink")}
    [task] = MqttSink().task_configs({**given, **{key.replace("_", "."): value for key, value in config.items()}}, 1)
    return MqttSink().open(SinkContext(task, lambda record, _: refused.append(record.key), lambda _: False))


def record(topic: str, key: str, value: Any, at: int = 0) -> Record:
    schema, made = Shape().take(value)
    return Record(topic, 0, STRING, key, schema, made, 0, offset=at)


@needs_mosquitto
def test_records_become_messages(port: int) -> None:
    base, refused = unique("out"), list[Any]()
    one = listening(port, f"{base}/#")
    sink = publishing(port, refused, mqtt_topic_format="${topic}/${key}")
    rows = [
        record(base, "a", "text"),
        record(base, "b", {"n": 1}),
        record(base, "+", "wrong"),
        record(base, "c", b"\0"),
    ]

    def put() -> bool:
        try:
            sink.put(rows)
        except RetriableError:
            return False
        return True

    eventually(put, PATIENCE_S)
    assert [(each.key, each.value) for each in poll(one, 3)][:3] == [
        (f"{base}/a", b"text"),
        (f"{base}/b", b'{"n":1}'),
        (f"{base}/c", b"\0"),
    ]
    assert refused == ["+"]
    one.close()
    sink.close()
    gone = publishing(free_port(), refused)
    with pytest.raises(RetriableError, match="cannot be reached"):
        gone.put([record(base, "a", "x")])
    gone.close()


@needs_mosquitto
def test_messages_go_through_a_topic_into_messages(port: int, client: Any, kafka_shared: Broker) -> None:
    base, topic = unique("through"), unique("mqtt")
    heard = listening(port, f"{topic}/out")
    raw = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
    place = {"mqtt.server.uri": f"tcp://127.0.0.1:{port}", "mqtt.qos": "1", **raw}
    with connect(kafka_shared.bootstrap_servers) as worker:
        source = {"mqtt.topics": f"{base}/#", "kafka.topic": topic, "mqtt.clean.session.enabled": "false"}
        name = worker.run("MqttSource", {**place, **source, "mqtt.client.id": unique("source")})
        worker.run("MqttSink", {**place, "topics": topic, "mqtt.topic.format": "${topic}/out"})
        payloads = [str(n) for n in range(60)]  # more than mosquitto leaves unacknowledged at a time
        eventually(lambda: worker.states(name) == ["RUNNING"], PATIENCE_S)
        publish(client, f"{base}/x", "ready")
        assert [each.value for each in poll(heard, 1, commit=True)] == [b"ready"]
        publish(client, f"{base}/x", *payloads)
        assert [each.value.decode() for each in poll(heard, 60, commit=True)] == payloads
    heard.close()
