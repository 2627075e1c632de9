"""The Redis connectors, against Redis itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors.redis import BATCH, ENTRY, RedisSink, RedisStreamSource, connected, end_of, offset_key
from moldau.connect.data import BYTES, STRING, Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.testing import Broker, eventually
from moldau.testing.connectors import connect
from moldau.testing.ports import free_port
from tests.connect.systems import redis_server
from tests.services import unique

pytest.importorskip("redis")
ID = re.compile(rb"\d+-\d+")  # of an entry of a stream
needs_redis = pytest.mark.needs("redis")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with redis_server() as found:
        yield found


@pytest.fixture
def server(port: int) -> Iterator[Any]:
    with connected(RedisSink.config.parse({"redis.hosts": f"127.0.0.1:{port}"})) as client:
        client.flushall()
        yield client


class Setting:
    """A task of the sink, and what it refused."""

    def __init__(self, port: int) -> None:
        self.refused: list[int | None] = []
        [config] = RedisSink().task_configs({"redis.hosts": f"127.0.0.1:{port}"}, 1)
        context = SinkContext(config, lambda record, _: self.refused.append(record.offset), lambda _: False)
        self.task = RedisSink().open(context)

    def put(self, *rows: tuple[int, Any, Any], topic: str = "t") -> None:
        self.task.put([Record(topic, 0, STRING, key, BYTES, value, 0, offset=at) for at, key, value in rows])


@needs_redis
def test_values_and_offsets_are_written_together(port: int, server: Any) -> None:
    one = Setting(port)
    assert one.task.open([("t", 0), ("t", 1)]) == {}
    one.put((0, "a", b"1"), (1, "b", b"2"), (2, "a", None), (3, None, b"no key"), (5, "c", b"\xff"))
    assert (server.get("a"), server.get("b"), server.get("c")) == (None, b"2", b"\xff")
    assert one.refused == [3]
    assert json.loads(server.get("__kafka.offset.t.0")) == {"topic": "t", "partition": 0, "offset": 5}
    assert one.task.open([("t", 0), ("t", 1)]) == {("t", 0): 6}
    one.put((1, "b", b"old"), (6, "d", b"new"))  # the first is repeated
    assert (server.get("b"), server.get("d")) == (b"2", b"new")
    one.task.close()


@needs_redis
def test_all_that_a_transform_made_of_one_record_is_written(port: int, server: Any) -> None:
    one = Setting(port)
    many = [(1, f"k{n}", b"v") for n in range(BATCH + 1)]
    one.put((0, "first", b"v"), *many, (2, "last", b"v"))
    assert server.dbsize() == len(many) + 2 + 1 and one.refused == []
    one.put((1, "again", b"v"), (3, "a", b"v"), (3, "b", b"v"))
    assert server.mget("again", "a", "b") == [None, b"v", b"v"]


@needs_redis
def test_only_one_of_two_tasks_writes_a_partition(port: int, server: Any) -> None:
    """The one that comes second finds the other's offset while it writes, and nothing of its batch is left."""
    one, other = Setting(port), Setting(port)
    pipeline = one.task._redis.pipeline

    def slow(**given: Any) -> Any:
        made = pipeline(**given)
        multi = made.multi

        def late() -> None:
            other.put((0, "k", b"theirs"), (1, "l", b"theirs"))
            multi()

        made.multi = late
        return made

    one.task._redis.pipeline = slow
    with pytest.raises(RetriableError):
        one.put((0, "k", b"ours"))
    assert server.get("k") == b"theirs" and end_of(server.get(offset_key(("t", 0)))) == 2
    one.task._redis.pipeline = pipeline
    one.put((0, "k", b"ours"), (2, "m", b"ours"))
    assert (server.get("k"), server.get("m")) == (b"theirs", b"ours")
    for task in (one, other):
        task.task.close()


def reading(port: int, stored: Any = None, **config: str) -> Any:
    given = {"redis.hosts": f"127.0.0.1:{port}", "redis.stream.name": "s", "redis.stream.block": "20"}
    [task] = RedisStreamSource().task_configs({**given, **config}, 3)
    return RedisStreamSource().open(SourceContext(task, lambda _: stored, lambda _: False))


@needs_redis
def test_a_stream_is_read_from_where_the_last_commit_was(port: int, server: Any) -> None:
    ids = [server.xadd("s", {"n": n, "t": "ä"}, id=f"{n + 1}-0").decode() for n in range(5)]
    task = reading(port, **{"batch.size": "2"})
    records = [one for _ in range(4) for one in task.poll()]
    assert [one.key for one in records] == ids
    assert records[4].value_schema == ENTRY and records[4].value["body"] == {"n": "4", "t": "ä"}
    assert records[4].source_offset == {"id": ids[4]} and records[4].topic == "s"
    again = reading(port, {"id": ids[2]}, topic="x-${stream}")
    assert [(one.key, one.topic) for one in again.poll()] == [(ids[3], "x-s"), (ids[4], "x-s")]
    late = reading(port, **{"redis.stream.offset": "$"})
    assert list(late.poll()) == []
    server.xadd("s", {"n": 9}, id="9-0")
    assert [one.key for one in late.poll()] == ["9-0"]
    for each in (task, again, late):
        each.close()


def test_what_redis_does_not_have_is_refused() -> None:
    for hosts in ("a:1,b:2", "nowhere", "x:y"):
        with pytest.raises(ConfigError):
            RedisSink().task_configs({"redis.hosts": hosts}, 1)
    gone = Setting(free_port())
    with pytest.raises(RetriableError):
        gone.put((0, "a", b"1"))
    with pytest.raises(ConnectError, match="cannot be read"):
        end_of(b"[]")


@needs_redis
def test_a_stream_goes_through_a_topic_into_keys(port: int, server: Any, kafka_shared: Broker) -> None:
    topic, stream = unique("redis"), unique("stream")
    place = {"redis.hosts": f"127.0.0.1:{port}"}
    for n in range(20):
        server.xadd(stream, {"n": n})
    text = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    with connect(kafka_shared.bootstrap_servers) as worker:
        worker.run("RedisStreamSource", {**place, "redis.stream.name": stream, "topic": topic})
        worker.run("RedisSink", {**place, **text, "topics": topic})
        keys = eventually(
            lambda: len(found := [key for key in server.scan_iter() if ID.fullmatch(key)]) == 20 and found
        )
        assert sorted(json.loads(server.get(key))["body"]["n"] for key in keys) == sorted(map(str, range(20)))
