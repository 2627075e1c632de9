"""MQTT 3.1.1 and 5: a source of topics, and a sink.

The settings are those of Confluent's connectors. With `mqtt.clean.session.enabled=false` a message of QoS 1 or 2 is
acknowledged when it is in Kafka, and the broker keeps it until then: the source delivers at least once. QoS 0 and clean
sessions lose what comes while nobody listens. The sink waits for the acknowledgement of each message before offsets
are committed, so it delivers at least once from QoS 1 on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SINK, SOURCE, Config, Offsets, SinkContext, SourceContext, TopicPartition
from moldau.connect.connectors.live import Closed, Feed
from moldau.connect.connectors.packages import needed
from moldau.connect.converters import make_converter
from moldau.connect.data import BOOLEAN, BYTES, INT32, STRING, Header, Record
from moldau.connect.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.values import to_string

JSON = "org.apache.kafka.connect.json.JsonConverter"
SCHEMES = {"tcp": 1883, "mqtt": 1883, "ssl": 8883, "mqtts": 8883}
SHARED = "$share/"
PASSING = {"Server unavailable", "Server busy", "Server shutting down", "Use another server"}  # of what a broker says
CONNECTION = (
    Key("mqtt.server.uri", importance=Importance.HIGH, doc="The broker, such as tcp://localhost:1883 or ssl://host."),
    key("mqtt.version", "3.1.1", "The version of the protocol.", validator=one_of("3.1.1", "5")),
    key("mqtt.client.id", "", "The client's name; by default that of the task."),
    key("mqtt.username", None, "The user."),
    key("mqtt.password", None, "The user's password.", Kind.PASSWORD),
    key("mqtt.qos", 0, "The quality of service: 0, 1 or 2.", Kind.INT, validator=between(0, 2)),
    key("mqtt.connect.timeout.seconds", 30, "How long to wait for a connection.", Kind.INT, validator=between(1)),
    key("mqtt.keepalive.interval.seconds", 60, "How often to say that we are here.", Kind.INT, validator=between(1)),
    key("mqtt.ssl.ca.file", "", "Certificates to trust, for ssl://; those of the system by default."),
)


def place_of_server(uri: str) -> tuple[str, int, bool]:
    """Read the address of a broker; ConfigError if it is none."""
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port or SCHEMES.get(parts.scheme, 0)
    except ValueError:
        host, port, parts = None, 0, urlsplit("")
    if parts.scheme not in SCHEMES or not host:
        raise ConfigError(f"Invalid value {uri} for configuration mqtt.server.uri: write tcp://host:port or ssl://host")
    return host, port, parts.scheme in ("ssl", "mqtts")


class Line:
    """A connection to a broker, which paho's thread keeps up."""

    def __init__(self, config: Mapping[str, Any], name: str, *, is_clean: bool, manual_ack: bool = False) -> None:
        self._mqtt = mqtt = needed("paho.mqtt.client", "MQTT", "mqtt")
        self.is_5 = config["mqtt.version"] == "5"
        host, port, is_safe = place_of_server(config["mqtt.server.uri"])
        more: dict[str, Any] = {} if self.is_5 else {"clean_session": is_clean}
        self.client = client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            config["mqtt.client.id"] or name,
            protocol=mqtt.MQTTv5 if self.is_5 else mqtt.MQTTv311,
            manual_ack=manual_ack,
            **more,
        )
        if config["mqtt.username"] is not None:
            secret = config["mqtt.password"]
            client.username_pw_set(config["mqtt.username"], secret.value if secret else None)
        if is_safe:
            client.tls_set(config["mqtt.ssl.ca.file"] or None)
        client.connect_timeout = float(config["mqtt.connect.timeout.seconds"])
        client.reconnect_delay_set(1, 30)
        self._asked = host, port, config["mqtt.keepalive.interval.seconds"], is_clean
        self.refusal: str | None = None
        self.is_up = threading.Event()
        client.on_connect = self._connected
        client.on_disconnect = lambda *_: self.is_up.clear()
        self.on_up: Any = lambda: None

    def start(self) -> None:
        host, port, alive_s, is_clean = self._asked
        more: dict[str, Any] = {}
        if self.is_5:
            from paho.mqtt.packettypes import PacketTypes
            from paho.mqtt.properties import Properties

            given = Properties(PacketTypes.CONNECT)
            given.SessionExpiryInterval = 0 if is_clean else 0xFFFFFFFF
            more = {"clean_start": is_clean, "properties": given}
        self.client.connect_async(host, port, alive_s, **more)
        self.client.loop_start()

    def _connected(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            if str(reason) in PASSING:
                return  # paho tries again
            self.refusal = f"The MQTT broker refuses the connection: {reason}"
            return
        self.refusal = None
        self.on_up()
        self.is_up.set()

    def check(self) -> None:
        if self.refusal is not None:
            raise ConnectError(self.refusal)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


class MqttSource:
    """Messages of topics; the key is the message's topic, the value its payload."""

    kind = SOURCE
    task_class = "io.confluent.connect.mqtt.MqttSourceTask"
    exactly_once = False
    config = ConfigDef(
        [
            Key("mqtt.topics", Kind.LIST, importance=Importance.HIGH, doc="Topics, also with + and #, or $share/G/.."),
            Key("kafka.topic", importance=Importance.HIGH, doc="The topic that gets the messages."),
            key("mqtt.clean.session.enabled", True, "Let the broker forget us when we go.", Kind.BOOLEAN),
            key("records.buffer.queue.size", 5000, "The most messages that wait.", Kind.INT, validator=between(1)),
            key("batch.size", 500, "The most messages of a poll.", Kind.INT, validator=between(1)),
            *CONNECTION,
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        """Share out the topics; a shared subscription goes to all tasks, for the broker shares out its messages."""
        parsed = self.config.parse(config)
        place_of_server(parsed["mqtt.server.uri"])
        topics: list[str] = parsed["mqtt.topics"]
        if not topics:
            raise ConfigError("Name topics in mqtt.topics.")
        shared = [one for one in topics if one.startswith(SHARED)]
        others = [one for one in topics if not one.startswith(SHARED)]
        count = most if shared else min(most, len(others))
        given = [{**config, "mqtt.topics": ",".join(shared + others[n::count])} for n in range(count)]
        name = parsed["mqtt.client.id"] or config.get("name", "moldau")
        return [{**one, "mqtt.client.id": f"{name}-{n}"} for n, one in enumerate(given)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        raise ConnectError("The broker keeps what was not acknowledged; there are no offsets to set.")

    def open(self, context: SourceContext) -> Listening:
        return Listening(context)


class Listening:
    """The task of the source."""

    def __init__(self, context: SourceContext) -> None:
        self._config = config = MqttSource.config.parse(context.config)
        self._feed = Feed(config["records.buffer.queue.size"])
        name = context.config.get("name", "moldau")
        self._line = Line(config, name, is_clean=config["mqtt.clean.session.enabled"], manual_ack=True)
        self._line.on_up = self._subscribe
        self._line.client.on_message = self._arrived
        self._line.client.on_subscribe = self._subscribed
        self._polled: list[tuple[int, int]] = []  # to be acknowledged once they are in Kafka
        self.is_subscribed = threading.Event()  # only then messages are kept for it
        self._line.start()

    @property
    def wants_commit(self) -> bool:
        """A broker sends only so many messages that are not acknowledged."""
        return bool(self._polled)

    def _subscribe(self) -> None:
        self._line.client.subscribe([(topic, self._config["mqtt.qos"]) for topic in self._config["mqtt.topics"]])

    def _subscribed(self, _client: Any, _data: Any, _mid: int, reasons: Sequence[Any], _properties: Any) -> None:
        for topic, reason in zip(self._config["mqtt.topics"], reasons, strict=False):
            if reason.is_failure:
                self._line.refusal = f"The MQTT broker refuses the subscription of {topic}: {reason}"
        self.is_subscribed.set()

    def _arrived(self, _client: Any, _data: Any, message: Any) -> None:
        try:
            self._feed.put(message)
        except Closed:
            return  # it was not acknowledged, so it will come again

    def poll(self) -> Sequence[Record]:
        self._line.check()
        messages = self._feed.take(self._config["batch.size"])
        self._polled += [(one.mid, one.qos) for one in messages if one.qos]
        return [self._record(one) for one in messages]

    def _record(self, message: Any) -> Record:
        headers = (
            Header("mqtt.message.id", INT32, message.mid),
            Header("mqtt.qos", INT32, message.qos),
            Header("mqtt.retained", BOOLEAN, bool(message.retain)),
            Header("mqtt.duplicate", BOOLEAN, bool(message.dup)),
        )
        topic, when = self._config["kafka.topic"], time.time_ns() // 1_000_000
        return Record(topic, None, STRING, message.topic, BYTES, bytes(message.payload), when, headers)

    def committed(self) -> None:
        polled, self._polled = self._polled, []
        for mid, qos in polled:
            self._line.client.ack(mid, qos)

    def close(self) -> None:
        self._feed.close()
        self._line.close()


class MqttSink:
    """Records as messages; the topic is that of the record, unless `mqtt.topic.format` says otherwise."""

    kind = SINK
    task_class = "io.confluent.connect.mqtt.MqttSinkTask"
    exactly_once = False
    config = ConfigDef(
        [
            key("mqtt.topic.format", "${topic}", "The message's topic; ${topic} and ${key} are replaced."),
            key("mqtt.retained.enabled", False, "Let the broker keep the last message of a topic.", Kind.BOOLEAN),
            *CONNECTION,
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        place_of_server(parsed["mqtt.server.uri"])
        name = parsed["mqtt.client.id"] or config.get("name", "moldau")
        return [{**config, "mqtt.client.id": f"{name}-{n}"} for n in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Publishing:
        return Publishing(context)


class Publishing:
    """The task of the sink."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._config = config = MqttSink.config.parse(context.config)
        self._json = make_converter(JSON, "value", {"schemas.enable": "false"})
        self._line = Line(config, context.config.get("name", "moldau"), is_clean=True)
        self._line.client.max_queued_messages_set(0)
        self._line.start()

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return {}

    def put(self, records: Sequence[Record]) -> None:
        self._line.check()
        wait_s = self._config["mqtt.connect.timeout.seconds"]
        if not self._line.is_up.wait(min(1.0, wait_s)):
            raise RetriableError("The MQTT broker cannot be reached.")
        sent = [info for one in records if (info := self._publish(one)) is not None]
        end = time.monotonic() + wait_s
        for info in sent:
            while not info.is_published():
                if time.monotonic() > end or not self._line.is_up.is_set():
                    raise RetriableError("The MQTT broker has not acknowledged all messages.")
                info.wait_for_publish(0.1)

    def _publish(self, record: Record) -> Any:
        try:
            topic, payload = self._topic(record), self._payload(record)
        except DataError as error:
            self._context.report(record, error)
            return None
        return self._line.client.publish(
            topic, payload, self._config["mqtt.qos"], self._config["mqtt.retained.enabled"]
        )

    def _topic(self, record: Record) -> str:
        name = "" if record.key is None else to_string(record.key_schema, record.key)
        topic = self._config["mqtt.topic.format"].replace("${topic}", record.topic).replace("${key}", name)
        if not topic or any(each in topic for each in "+#\0"):
            raise DataError(f"{topic!r} is not the name of a topic of MQTT")
        return topic

    def _payload(self, record: Record) -> bytes:
        value = record.value
        if value is None:
            return b""  # which also removes a retained message
        if isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return value.encode()
        return self._json.write(record.topic, record.value_schema, value) or b""

    def flush(self, offsets: Offsets) -> Offsets:
        return offsets

    def close(self) -> None:
        self._line.close()
