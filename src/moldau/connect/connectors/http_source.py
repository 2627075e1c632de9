"""HTTP source: asks a URL again and again, and makes a record of each thing in the answer.

`http.offset.mode` says what the next request asks for, as `${offset}` in the URL: `SIMPLE_INCREMENTING` counts the
records, `CHAINING` takes a field of the last record, `CURSOR_PAGINATION` a field of the answer. An answer is one poll,
and its last record has the offset of the next request, so nothing is lost or doubled between them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SOURCE, Config, SourceContext, check_text_offset
from moldau.connect.connectors.web import KEYS, Web, an_http_url, headers_of
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import Shape

COUNTING, CHAINING, CURSOR = "SIMPLE_INCREMENTING", "CHAINING", "CURSOR_PAGINATION"
OFFSET, ASKED = "offset", "${offset}"


class HttpSource:
    """Answers of a URL."""

    kind = SOURCE
    task_class = "io.confluent.connect.http.HttpSourceTask"
    exactly_once = True
    config = ConfigDef(
        [
            Key("url", importance=Importance.HIGH, doc="The URL; ${offset} is replaced.", validator=an_http_url),
            Key("topic.name.pattern", importance=Importance.HIGH, doc="The topic that gets the records."),
            key("http.offset.mode", COUNTING, "What to ask next.", validator=one_of(COUNTING, CHAINING, CURSOR)),
            key("http.initial.offset", "0", "The offset of the first request."),
            key("http.offset.json.pointer", "", "Where a record has its offset, for CHAINING."),
            key("http.next.page.json.pointer", "", "Where an answer has the next cursor, for CURSOR_PAGINATION."),
            key("http.response.data.json.pointer", "", "Where an answer has its records."),
            key("http.request.method", "GET", "The method.", validator=one_of("GET", "POST")),
            key("http.request.body", "", "The body of a POST; ${offset} is replaced."),
            key("http.request.headers", "", "Headers of each request, as Name:value|Name:value."),
            key(
                "request.interval.ms",
                15_000,
                "How often to ask for more.",
                Kind.LONG,
                validator=between(1),
            ),
            key("key.json.pointer", "", "Where a record has its key."),
            *KEYS,
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        headers_of(parsed["http.request.headers"])
        needs = {CHAINING: "http.offset.json.pointer", CURSOR: "http.next.page.json.pointer"}
        name = needs.get(parsed["http.offset.mode"])
        if name and not parsed[name]:
            raise ConfigError(f"The mode {parsed['http.offset.mode']} needs {name}.")
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        check_text_offset(partition, "url", offset, OFFSET)

    def open(self, context: SourceContext) -> Asking:
        return Asking(context)


class Asking:
    """The task."""

    def __init__(self, context: SourceContext) -> None:
        self._context = context
        self._config = config = HttpSource.config.parse(context.config)
        self._web = Web(config, context.wait, headers_of(config["http.request.headers"]))
        self._partition = {"url": config["url"]}
        stored = context.offset(self._partition) or {}
        self._offset = str(stored.get(OFFSET, config["http.initial.offset"]))
        self._key, self._shape = Shape(), Shape()
        self._next = 0.0

    def poll(self) -> Sequence[Record]:
        if time.monotonic() < self._next:
            self._context.wait(min(0.5, self._next - time.monotonic()))
            return ()
        config, offset = self._config, self._offset
        body = config["http.request.body"].replace(ASKED, json.dumps(offset)[1:-1]).encode() or None
        url = config["url"].replace(ASKED, quote(offset, safe=""))
        headers = {"Content-Type": "application/json"} if body else {}
        answer = self._web.send(config["http.request.method"], url, body, **headers)
        try:
            document = json.loads(answer.content) if answer.content.strip() else None
        except ValueError as error:
            raise ConnectError(f"The answer of {url} is not JSON: {error}") from None
        records = self._records(document)
        if not records or self._offset == offset:
            self._next = time.monotonic() + config["request.interval.ms"] / 1000
        return records

    def _records(self, document: Any) -> list[Record]:
        """Make the records of an answer, and note what to ask for next."""
        config, mode = self._config, self._config["http.offset.mode"]
        found = pointed(document, config["http.response.data.json.pointer"])
        rows = found if isinstance(found, list) else [] if found is None else [found]
        offsets = [self._offset] * len(rows)
        if mode == COUNTING:
            offsets = [str(_whole(self._offset) + n) for n in range(1, len(rows) + 1)]
        elif mode == CHAINING:
            offsets = [_text(pointed(row, config["http.offset.json.pointer"])) for row in rows]
        elif rows and (cursor := pointed(document, config["http.next.page.json.pointer"])) is not None:
            offsets[-1] = _text(cursor)
        records = [self._record(row, offset) for row, offset in zip(rows, offsets, strict=True)]
        if offsets:
            self._offset = offsets[-1]
        return records

    def _record(self, row: Any, offset: str) -> Record:
        place = self._config["key.json.pointer"]
        key_schema, name = self._key.take(pointed(row, place) if place else None)
        schema, value = self._shape.take(row)
        topic, when = self._config["topic.name.pattern"], time.time_ns() // 1_000_000
        return Record(topic, None, key_schema, name, schema, value, when, (), self._partition, {OFFSET: offset})

    def close(self) -> None:
        self._web.close()


def pointed(document: Any, pointer: str) -> Any:
    """Follow a JSON pointer (RFC 6901); None where it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdigit() and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def _text(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        raise ConnectError("A record has no offset where http.offset.json.pointer says.")
    return value if isinstance(value, str) else json.dumps(value)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConnectError(f"The offset {text!r} is not a number; SIMPLE_INCREMENTING counts.") from None
