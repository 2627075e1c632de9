"""Syslog and lines of a socket: a server that takes messages over UDP or TCP.

Syslog of RFC 5424 and RFC 3164 becomes a struct; what is neither is kept as `rawMessage`. The settings are those of
Confluent's connector. Nobody acknowledges a message of syslog, so those that come while no task listens are lost; over
TCP a sender has to wait while the buffer is full, over UDP its messages are lost then.
"""

from __future__ import annotations

import re
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.connectors.live import Closed, Feed
from moldau.connect.data import INT32, INT64, OPTIONAL, STRING, Record, Schema, Struct, Type, map_of, struct
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition

TEXT = OPTIONAL[Type.STRING]
MESSAGE = struct(
    {
        "name": TEXT,
        "type": STRING,
        "message": TEXT,
        "host": TEXT,
        "version": INT32.but(optional=True),
        "level": INT32.but(optional=True),
        "tag": TEXT,
        "facility": INT32.but(optional=True),
        "severity": INT32.but(optional=True),
        "appName": TEXT,
        "processId": TEXT,
        "messageId": TEXT,
        "structuredData": map_of(STRING, map_of(STRING, STRING), optional=True),
        "timestamp": INT64.but(optional=True),
        "remoteAddress": TEXT,
        "rawMessage": TEXT,
    },
    name="io.confluent.syslog.SyslogMessage",
)
RFC5424 = re.compile(
    r"<(\d{1,3})>(\d{1,2}) (\S+) (\S+) (\S+) (\S+) (\S+) (-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: (.*))?", re.DOTALL
)
RFC3164 = re.compile(
    r"<(\d{1,3})>([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (\S+) (?:([^\s:\[]{1,64})(?:\[([^\]]*)\])?: ?)?(.*)", re.DOTALL
)
ELEMENT = re.compile(r"\[([^ \]=\"]+)((?: [^ =\]\"]+=\"(?:[^\"\\]|\\.)*\")*)\]")
PARAMETER = re.compile(r" ([^ =\]\"]+)=\"((?:[^\"\\]|\\.)*)\"")
MOST = 64 * 1024


def _keys(prefix: str) -> tuple[Key, ...]:
    return (
        Key(f"{prefix}.port", Kind.INT, importance=Importance.HIGH, doc="The port.", validator=between(0, 65535)),
        key(f"{prefix}.host", "0.0.0.0", "The address to listen at."),
        key(f"{prefix}.listener", "TCP", "How messages come.", validator=one_of("TCP", "UDP", "TCPSSL")),
        key(f"{prefix}.ssl.cert.chain.file", "", "The certificate, for TCPSSL."),
        key(f"{prefix}.ssl.key.file", "", "Its key, for TCPSSL."),
        key(f"{prefix}.queue.max.size", 50_000, "The most messages that wait.", Kind.INT, validator=between(1)),
        key(f"{prefix}.queue.batch.size", 1000, "The most messages of a poll.", Kind.INT, validator=between(1)),
    )


class SyslogSource:
    """Messages of syslog."""

    kind = SOURCE
    task_class = "io.confluent.connect.syslog.SyslogSourceTask"
    exactly_once = False
    prefix = "syslog"
    config = ConfigDef([key("topic", "syslog", "The topic that gets the messages."), *_keys("syslog")])

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        safe = [f"{self.prefix}.ssl.{name}.file" for name in ("cert.chain", "key")]
        if parsed[f"{self.prefix}.listener"] == "TCPSSL" and not all(parsed[name] for name in safe):
            raise ConfigError(f"TCPSSL needs {' and '.join(safe)}.")
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        raise ConnectError("Nothing can be read again; there are no offsets to set.")

    def open(self, context: SourceContext) -> Serving:
        return Serving(self.config.parse(context.config), self.prefix)

    def value(self, text: str, peer: str) -> tuple[Schema, Any]:
        return MESSAGE, parsed_message(text, peer, datetime.now(UTC))


class SocketSource(SyslogSource):
    """Lines over TCP, or datagrams over UDP, as they are."""

    task_class = "moldau.connect.SocketSourceTask"
    prefix = "socket"
    config = ConfigDef([Key("topic", doc="The topic that gets the lines."), *_keys("socket")])

    def value(self, text: str, peer: str) -> tuple[Schema, Any]:
        return STRING, text


class Serving:
    """The task: a server in threads of its own."""

    def __init__(self, config: Mapping[str, Any], prefix: str) -> None:
        self._config, self._prefix = config, prefix
        self._value = (SyslogSource if prefix == "syslog" else SocketSource)().value
        self._most: int = config[f"{prefix}.queue.batch.size"]
        self._feed = feed = Feed(config[f"{prefix}.queue.max.size"])
        is_udp = config[f"{prefix}.listener"] == "UDP"
        handler: Any = type("Handler", (Datagram if is_udp else Lines,), {"feed": feed})
        kind: Any = socketserver.ThreadingUDPServer if is_udp else Threads
        try:
            self._server = kind((config[f"{prefix}.host"], config[f"{prefix}.port"]), handler)
        except OSError as error:
            place = f"{config[f'{prefix}.host']}:{config[f'{prefix}.port']}"
            raise ConnectError(f"{place} cannot be listened at: {error.strerror or error}") from error
        if config[f"{prefix}.listener"] == "TCPSSL":
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(config[f"{prefix}.ssl.cert.chain.file"], config[f"{prefix}.ssl.key.file"])
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="syslog", daemon=True)
        self._thread.start()

    def poll(self) -> Sequence[Record]:
        return [self._record(*one) for one in self._feed.take(self._most)]

    def _record(self, text: str, peer: str) -> Record:
        schema, value = self._value(text, peer)
        return Record(self._config["topic"], None, STRING, peer, schema, value, time.time_ns() // 1_000_000)

    def close(self) -> None:
        self._feed.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Threads(socketserver.ThreadingTCPServer):
    """A thread for each connection, which ends with the feed."""

    allow_reuse_address, daemon_threads, block_on_close = True, True, False


class Datagram(socketserver.BaseRequestHandler):
    """A message of UDP; one that finds the buffer full is lost."""

    feed: Feed

    def handle(self) -> None:
        text = self.request[0].decode("utf-8", "replace").rstrip("\r\n\0")
        try:
            self.feed.put((text, self.client_address[0]))
        except Closed:
            return


class Lines(socketserver.BaseRequestHandler):
    """Messages of a connection: a line each, or each after its length (RFC 6587)."""

    feed: Feed

    def handle(self) -> None:
        line: socket.socket = self.request
        line.settimeout(0.5)
        left = b""
        try:
            while not self.feed.closed.is_set():
                try:
                    found = line.recv(MOST)
                except TimeoutError:
                    continue
                messages, left = framed(left + found, is_end=not found)
                for one in messages:
                    self.feed.put((one.decode("utf-8", "replace"), self.client_address[0]))
                if not found:
                    return
        except (Closed, OSError):
            return


COUNTED = re.compile(rb"([1-9]\d{0,6}) (?=<)")


def framed(data: bytes, *, is_end: bool = False) -> tuple[list[bytes], bytes]:
    """Split what has come into messages and the beginning of the next; a line that is too long is cut."""
    found: list[bytes] = []
    while data:
        counted = COUNTED.match(data)
        if counted:
            end = counted.end() + int(counted[1])
            if len(data) < end and not is_end:
                break
            found.append(data[counted.end() : end])
            data = data[end:]
            continue
        line, newline, rest = data.partition(b"\n")
        if not newline and not is_end and len(data) < MOST:
            break
        found.append(line.rstrip(b"\r\0"))
        data = rest
    return [one for one in found if one], data


def parsed_message(text: str, peer: str, now: datetime) -> Struct:
    """Read a message; `now` says which year one of RFC 3164 is of."""
    common = {"remoteAddress": peer}
    if (match := RFC5424.fullmatch(text)) and _is_time(match[3]):
        level, version, when, host, app, process, id, data, message = match.groups()
        if int(level) < 192:
            words = {"host": host, "appName": app, "processId": process, "messageId": id}
            return Struct.of(
                MESSAGE,
                {
                    **common,
                    **_level(int(level)),
                    **{name: None if word == "-" else word for name, word in words.items()},
                    "type": "RFC5424",
                    "version": int(version),
                    "timestamp": None if when == "-" else int(datetime.fromisoformat(when).timestamp() * 1000),
                    "structuredData": _data(data),
                    "message": (message or "").removeprefix("\ufeff"),
                },
            )
    if (match := RFC3164.fullmatch(text)) and int(match[1]) < 192:
        level, when, host, tag, process, message = match.groups()
        moment = _year_of(when, now)
        if moment is not None:
            more = {"type": "RFC3164", "host": host, "tag": tag, "processId": process, "message": message}
            return Struct.of(MESSAGE, {**common, **_level(int(level)), **more, "timestamp": moment})
    return Struct.of(MESSAGE, {**common, "type": "UNKNOWN", "rawMessage": text})


def _level(level: int) -> dict[str, int]:
    return {"level": level % 8, "facility": level // 8, "severity": level % 8}


def _is_time(text: str) -> bool:
    try:
        return text == "-" or datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _year_of(text: str, now: datetime) -> int | None:
    """Give a time without a year the last year that does not put it more than a day into the future."""
    for year in (now.year, now.year - 1):
        try:
            moment = datetime.strptime(f"{year} {text}", "%Y %b %d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            continue
        if (moment - now).days < 1:
            return int(moment.timestamp() * 1000)
    return None


def _data(text: str) -> dict[str, dict[str, str]] | None:
    if text == "-":
        return None
    return {
        match[1]: {name: re.sub(r"\\([\"\\\]])", r"\1", value) for name, value in PARAMETER.findall(match[2])}
        for match in ELEMENT.finditer(text)
    }
