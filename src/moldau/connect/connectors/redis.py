"""Redis: a sink of keys, and a source of a stream.

The sink's settings are those of jcustenborder's connector. The offsets of a batch are written with it in one MULTI,
under `__kafka.offset.TOPIC.PARTITION`, and a task begins where they end: each record is there exactly once. The key is
watched meanwhile, so of two tasks that believe to own a partition only one can write.

The source reads a stream from the id that the last transaction has: nothing is lost or doubled.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import (
    SINK,
    SOURCE,
    Config,
    Offsets,
    SinkContext,
    SourceContext,
    TopicPartition,
    check_text_offset,
)
from moldau.connect.connectors.packages import needed
from moldau.connect.connectors.positions import batches, place_of
from moldau.connect.data import STRING, Record, Struct, map_of, struct
from moldau.connect.errors import ConfigError, ConnectError, DataError, RetriableError, invalid
from moldau.connect.offset_topic import SourceOffset, SourcePartition

BATCH = 500
PASSING = ("OOM", "READONLY", "LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN")  # of what Redis answers
CONNECTION = (
    key("redis.hosts", ["localhost:6379"], "The server, as host:port.", Kind.LIST),
    key("redis.client.mode", "Standalone", "The only mode there is.", validator=one_of("Standalone")),
    key("redis.database", 0, "The number of the database.", Kind.INT, validator=between(0)),
    key("redis.username", None, "The user; Redis' default user if none is named."),
    key("redis.password", None, "The user's password.", Kind.PASSWORD),
    key("redis.ssl.enabled", False, "Whether to connect over TLS.", Kind.BOOLEAN),
    key("redis.operation.timeout.ms", 10_000, "How long to wait for an answer.", Kind.LONG, validator=between(100)),
)


def connected(config: Mapping[str, Any]) -> Any:
    redis = needed("redis", "Redis", "redis")
    host, _, port = config["redis.hosts"][0].rpartition(":")
    timeout_s, secret = config["redis.operation.timeout.ms"] / 1000, config["redis.password"]
    return redis.Redis(
        host=host.strip("[]"),
        port=int(port),
        db=config["redis.database"],
        username=config["redis.username"],
        password=secret.value if secret else None,
        ssl=config["redis.ssl.enabled"],
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
    )


def check(config: Mapping[str, Any]) -> None:
    hosts = config["redis.hosts"]
    if len(hosts) != 1:
        raise ConfigError("Name one server in redis.hosts: clusters and sentinels of Redis are not supported.")
    host, colon, port = hosts[0].rpartition(":")
    if not (host and colon and port.isdigit()):
        raise invalid("redis.hosts", hosts[0], "a server is written as host:port")


def asked(ask: Callable[[], Any]) -> Any:
    """Ask Redis; RetriableError for what may pass."""
    redis = needed("redis", "Redis", "redis")
    try:
        return ask()
    except redis.AuthenticationError as error:
        raise ConnectError(f"Redis refuses the user or the password: {error}") from error
    except (redis.ConnectionError, redis.TimeoutError, redis.WatchError) as error:
        raise RetriableError(f"Redis: {error}") from error
    except redis.ResponseError as error:
        passes = str(error).startswith(PASSING)
        raise (RetriableError if passes else ConnectError)(f"Redis: {error}") from error


class RedisSink:
    """The last value of each key, as a string of Redis."""

    kind = SINK
    task_class = "com.github.jcustenborder.kafka.connect.redis.RedisSinkTask"
    exactly_once = True
    config = ConfigDef(CONNECTION)

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        check(self.config.parse(config))
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Setting:
        return Setting(context)


class Setting:
    """The task of the sink."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        config = RedisSink.config.parse(context.config)
        check(config)
        self._redis = connected(config)

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        if not partitions:
            return {}
        found = asked(lambda: self._redis.mget([offset_key(place) for place in partitions]))
        return {place: end_of(text) for place, text in zip(partitions, found, strict=True) if text is not None}

    def put(self, records: Sequence[Record]) -> None:
        for batch in batches(records, BATCH):
            asked(lambda batch=batch: self._write(batch))

    def _write(self, records: Sequence[Record]) -> None:
        places = sorted({place_of(one)[0] for one in records})
        with self._redis.pipeline(transaction=True) as pipe:
            keys = [offset_key(place) for place in places]
            pipe.watch(*keys)
            ends = dict(zip(places, (0 if text is None else end_of(text) for text in pipe.mget(keys)), strict=True))
            pipe.multi()
            done = dict(ends)
            for one in records:
                place, offset = place_of(one)
                if offset < done[place]:
                    continue  # it is there already
                ends[place] = offset + 1
                try:
                    name, value = texts_of(one)
                except DataError as error:
                    self._context.report(one, error)
                    continue
                pipe.delete(name) if value is None else pipe.set(name, value)
            for topic, partition in places:
                last = {"topic": topic, "partition": partition, "offset": ends[topic, partition] - 1}
                pipe.set(offset_key((topic, partition)), json.dumps(last, separators=(",", ":")))
            pipe.execute()

    def flush(self, offsets: Offsets) -> Offsets:
        return offsets

    def close(self) -> None:
        self._redis.close()


def offset_key(place: TopicPartition) -> str:
    return f"__kafka.offset.{place[0]}.{place[1]}"


def end_of(text: bytes) -> int:
    """Return where to go on after the offset that Redis has."""
    try:
        return int(json.loads(text)["offset"]) + 1
    except (ValueError, KeyError, TypeError):
        raise ConnectError(f"Redis has an offset that cannot be read: {text[:80]!r}") from None


def texts_of(record: Record) -> tuple[bytes, bytes | None]:
    """Return key and value as Redis gets them."""
    if record.key is None:
        raise DataError("The key for the record cannot be null.")
    made = []
    for what, value in (("key", record.key), ("value", record.value)):
        if not isinstance(value, bytes | str | None):
            raise DataError(f"The {what} must be a string or bytes: use StringConverter or ByteArrayConverter.")
        made.append(value.encode() if isinstance(value, str) else value)
    return made[0], made[1]


BODY = map_of(STRING, STRING)
ENTRY = struct({"id": STRING, "stream": STRING, "body": BODY}, name="com.redis.kafka.connect.stream.StreamMessage")


class RedisStreamSource:
    """The entries of a stream."""

    kind = SOURCE
    task_class = "com.redis.kafka.connect.source.RedisStreamSourceTask"
    exactly_once = True
    config = ConfigDef(
        [
            Key("redis.stream.name", importance=Importance.HIGH, doc="The stream to read."),
            key("redis.stream.offset", "0-0", "Where to begin: after this id; $ for what comes from now on."),
            key("redis.stream.block", 100, "How long Redis waits for entries, in milliseconds.", Kind.LONG),
            key("topic", "${stream}", "The topic that gets the entries; ${stream} is replaced."),
            key("batch.size", 500, "The most entries of a poll.", Kind.INT, validator=between(1)),
            *CONNECTION,
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        check(self.config.parse(config))
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        check_text_offset(partition, "stream", offset, "id")

    def open(self, context: SourceContext) -> Reading:
        return Reading(context)


class Reading:
    """The task of the source."""

    def __init__(self, context: SourceContext) -> None:
        self._config = config = RedisStreamSource.config.parse(context.config)
        check(config)
        self._context, self._redis = context, connected(config)
        self._stream: str = config["redis.stream.name"]
        self._partition = {"stream": self._stream}
        self._at: str = (context.offset(self._partition) or {}).get("id", config["redis.stream.offset"])
        if self._at == "$":  # the end as it is now, so that nothing is lost between two polls
            last = asked(lambda: self._redis.xrevrange(self._stream, count=1))
            self._at = last[0][0].decode() if last else "0-0"

    def poll(self) -> Sequence[Record]:
        block = max(1, min(1000, self._config["redis.stream.block"]))
        places = {self._stream: self._at}
        try:
            found = asked(lambda: self._redis.xread(places, self._config["batch.size"], block))
        except RetriableError:
            self._context.wait(1.0)
            raise
        records = [self._record(id, fields or {}) for _, rows in _pairs(found) for id, fields in rows]
        if records:
            self._at = records[-1].key
        return records

    def _record(self, id: bytes, fields: Mapping[bytes, bytes]) -> Record:
        name = id.decode()
        body = {each.decode("utf-8", "replace"): text.decode("utf-8", "replace") for each, text in fields.items()}
        value = Struct.of(ENTRY, id=name, stream=self._stream, body=body)
        topic, when = self._config["topic"].replace("${stream}", self._stream), time.time_ns() // 1_000_000
        return Record(topic, None, STRING, name, ENTRY, value, when, (), self._partition, {"id": name})

    def close(self) -> None:
        self._redis.close()


def _pairs(found: Any) -> list[tuple[Any, Any]]:
    """Return what XREAD answers as pairs: RESP2 has a list of them, RESP3 a map of lists."""
    if isinstance(found, dict):
        return [
            (stream, [row for part in rows for row in (part if isinstance(part, list) else [part])])
            for stream, rows in found.items()
        ]
    return [(stream, rows) for stream, rows in found or ()]
