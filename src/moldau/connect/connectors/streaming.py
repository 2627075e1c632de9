"""Streams over HTTP: server-sent events, lines of JSON, and WebSockets.

The connection is kept by a thread, and taken up again when it breaks. A stream that numbers its events goes on where it
was: server-sent events with `Last-Event-ID`, others by `${offset}` in the URL or in the first message. Then nothing is
lost. A stream that does not is heard from the moment of the connection on: what was sent before is lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key
from moldau.connect.connector import SOURCE, Config, SourceContext, check_text_offset
from moldau.connect.connectors.http_source import OFFSET, pointed
from moldau.connect.connectors.live import Closed, Feed
from moldau.connect.connectors.packages import needed
from moldau.connect.connectors.web import an_http_url, headers_of
from moldau.connect.data import STRING, Record
from moldau.connect.errors import ConnectError, RetriableError, invalid
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape

ASKED = "${offset}"
PASSING = (408, 425, 429)
MAX_EVENT = 16 * 1024 * 1024


def a_web_socket(name: str, value: Any) -> None:
    if not str(value or "").startswith(("ws://", "wss://")):
        raise invalid(name, value, "a URL begins with ws:// or wss://")


COMMON = (
    Key("topic.name.pattern", importance=Importance.HIGH, doc="The topic that gets the records."),
    key("http.request.headers", "", "Headers of the request, as Name:value|Name:value."),
    key("auth.token", None, "A token that is sent as Authorization: Bearer.", Kind.PASSWORD),
    key("http.initial.offset", "", "The offset of the first connection."),
    key("http.offset.json.pointer", "", "Where an event has its offset."),
    key("key.json.pointer", "", "Where an event has its key."),
    key("retry.backoff.ms", 1000, "How long to wait before connecting again.", Kind.LONG, validator=between(1)),
    key("http.connect.timeout.ms", 30_000, "How long to wait for a connection.", Kind.INT, validator=between(1)),
    key("http.idle.timeout.ms", 300_000, "A silence after which to connect again.", Kind.INT, validator=between(1)),
    key("records.buffer.queue.size", 5000, "The most events that wait.", Kind.INT, validator=between(1)),
    key("batch.size", 500, "The most events of a poll.", Kind.INT, validator=between(1)),
)


class StreamingHttpSource:
    """Events of an answer that does not end: `text/event-stream`, or a line each."""

    kind = SOURCE
    task_class = "moldau.connect.StreamingHttpSourceTask"
    exactly_once = True
    config = ConfigDef(
        [
            Key("url", importance=Importance.HIGH, doc="The URL; ${offset} is replaced.", validator=an_http_url),
            *COMMON,
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        headers_of(self.config.parse(config)["http.request.headers"])
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        check_text_offset(partition, "url", offset, OFFSET)

    def open(self, context: SourceContext) -> Streaming:
        return Streaming(context, self.config.parse(context.config), http_events)


class WebSocketSource(StreamingHttpSource):
    """Messages of a WebSocket."""

    task_class = "moldau.connect.WebSocketSourceTask"
    config = ConfigDef(
        [
            Key("url", importance=Importance.HIGH, doc="The URL; ${offset} is replaced.", validator=a_web_socket),
            key("websocket.subscribe", "", "A message to send first; ${offset} is replaced."),
            *COMMON,
        ]
    )

    def open(self, context: SourceContext) -> Streaming:
        return Streaming(context, self.config.parse(context.config), socket_events)


Event = tuple[str, str | None]  # the text, and the id that the stream gave it


class Streaming:
    """The task."""

    def __init__(self, context: SourceContext, config: Mapping[str, Any], events: Any) -> None:
        self._config, self._events = config, events
        self._partition = {"url": config["url"]}
        stored = context.offset(self._partition) or {}
        self._heard = self._offset = str(stored.get(OFFSET, config["http.initial.offset"]))
        self._key, self._shape = Shape(), Shape()
        again_s = config["retry.backoff.ms"] / 1000
        self._feed = Feed(config["records.buffer.queue.size"], self._listen, again_s)

    def _listen(self, feed: Feed) -> None:
        """Take events until the stream ends; the next connection goes on after the last that was taken."""
        for text, id in self._events(self._config, self._heard, feed):
            value = _read(text)
            place = self._config["http.offset.json.pointer"]
            found = pointed(value, place) if place else id
            if found is not None:
                self._heard = found if isinstance(found, str) else json.dumps(found)
            feed.put((value, self._heard))

    def poll(self) -> Sequence[Record]:
        return [self._record(value, offset) for value, offset in self._feed.take(self._config["batch.size"])]

    def _record(self, value: Any, offset: str) -> Record:
        place = self._config["key.json.pointer"]
        key_schema, name = self._key.take(pointed(value, place) if place else None)
        schema, made = (STRING, value) if isinstance(value, str) else self._shape.take(value)
        topic, when = self._config["topic.name.pattern"], time.time_ns() // 1_000_000
        return Record(topic, None, key_schema, name, schema, made, when, (), self._partition, {OFFSET: offset})

    def close(self) -> None:
        self._feed.close()


def _read(text: str) -> Any:
    """Return what the text says as JSON, or the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _headers(config: Mapping[str, Any]) -> dict[str, str]:
    given = headers_of(config["http.request.headers"])
    secret = config["auth.token"]
    return given if secret is None else {**given, "Authorization": f"Bearer {secret.value}"}


def http_events(config: Mapping[str, Any], offset: str, feed: Feed) -> Iterator[Event]:
    """Yield the events of one answer."""
    url = config["url"].replace(ASKED, quote(offset, safe=""))
    headers = {"Accept": "text/event-stream, application/x-ndjson, */*", "Cache-Control": "no-cache"}
    headers |= {**_headers(config), **({"Last-Event-ID": offset} if offset else {})}
    timeout = httpx.Timeout(config["http.idle.timeout.ms"] / 1000, connect=config["http.connect.timeout.ms"] / 1000)
    try:
        with (
            httpx.Client(timeout=timeout, follow_redirects=True) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if answer.status_code >= 400:
                said = f"GET {url} was answered {answer.status_code}"
                passes = answer.status_code >= 500 or answer.status_code in PASSING
                raise (RetriableError if passes else ConnectError)(said)
            kind = answer.headers.get("content-type", "")
            lines = _until(feed, answer.iter_lines())
            yield from (
                server_sent(lines) if "event-stream" in kind else ((line, None) for line in lines if line.strip())
            )
    except httpx.HTTPError as error:
        raise RetriableError(f"GET {url}: {error or type(error).__name__}") from error


def _until(feed: Feed, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if feed.closed.is_set():
            raise Closed
        yield line


def server_sent(lines: Iterator[str]) -> Iterator[Event]:
    """Read events as the HTML standard says: fields until an empty line; an id holds until the next."""
    data: list[str] = []
    size, last = 0, None
    for line in lines:
        if not line:
            if data:
                yield "\n".join(data), last
            data, size = [], 0
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
            size += len(value)
            if size > MAX_EVENT:
                raise ConnectError(f"An event has more than {MAX_EVENT} characters.")
        elif name == "id" and "\0" not in value:
            last = value


def socket_events(config: Mapping[str, Any], offset: str, feed: Feed) -> Iterator[Event]:
    """Yield the messages of one connection."""
    client = needed("websockets.sync.client", "A WebSocket", "websocket")
    broken = needed("websockets.exceptions", "A WebSocket", "websocket")
    url = config["url"].replace(ASKED, quote(offset, safe=""))
    wait_s = config["http.connect.timeout.ms"] / 1000
    try:
        with client.connect(
            url, additional_headers=_headers(config), open_timeout=wait_s, max_size=MAX_EVENT, proxy=None
        ) as line:
            if config["websocket.subscribe"]:
                line.send(config["websocket.subscribe"].replace(ASKED, json.dumps(offset)[1:-1]))
            silent_since = time.monotonic()
            while True:
                if feed.closed.is_set():
                    raise Closed
                try:
                    found = line.recv(0.2)
                except TimeoutError:
                    if (time.monotonic() - silent_since) * 1000 > config["http.idle.timeout.ms"]:
                        raise RetriableError(f"{url} was silent for too long.") from None
                    continue
                silent_since = time.monotonic()
                yield found if isinstance(found, str) else found.decode("utf-8", "replace"), None
    except broken.InvalidStatus as error:
        status = error.response.status_code
        passes = status >= 500 or status in PASSING
        raise (RetriableError if passes else ConnectError)(f"{url} was answered {status}") from error
    except broken.InvalidURI as error:
        raise ConnectError(f"{url} cannot be asked: {error}") from error
    except (broken.WebSocketException, OSError, TimeoutError) as error:
        raise RetriableError(f"{url}: {error or type(error).__name__}") from error
