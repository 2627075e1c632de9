"""HTTP sink: each record, or a batch of them, is a request.

The settings are those of Confluent's connector. A request carries `Idempotency-Key: TOPIC-PARTITION-OFFSET` of its
first record, so a server that knows the key takes a repeated request once; otherwise delivery is at least once. Records
that the server refuses go to the dead letters; a refused batch is sent again record by record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from urllib.parse import quote

from moldau.connect.config_def import REQUIRED, ConfigDef, Importance, Key, Kind, between, key, one_of
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors.positions import name_of, numbered, place_of
from moldau.connect.connectors.web import KEYS, Refused, Web, an_http_url, headers_of
from moldau.connect.converters import make_converter
from moldau.connect.data import Record
from moldau.connect.errors import ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.values import to_string

Way = tuple[str, str]  # URL and method
Row = tuple[Record, int]  # a record, and its number among those that were made of one
JSON = "org.apache.kafka.connect.json.JsonConverter"
URL = Key("http.api.url", Kind.STRING, REQUIRED, Importance.HIGH, "The URL; ${topic} and ${key} are replaced.")


class HttpSink:
    """Records as requests."""

    kind = SINK
    task_class = "io.confluent.connect.http.HttpSinkTask"
    exactly_once = False
    config = ConfigDef(
        [
            Key(URL.name, URL.kind, URL.default, URL.importance, URL.doc, validator=an_http_url),
            key("request.method", "POST", "The method.", validator=one_of("POST", "PUT", "PATCH", "DELETE")),
            key("request.body.format", "json", "Format of values.", validator=one_of("json", "string")),
            key("headers", "", "Headers of each request, as Name:value|Name:value."),
            key("header.separator", "|", "What separates headers."),
            key("batch.max.size", 1, "The most records of a request.", Kind.INT, validator=between(1)),
            key("batch.json.as.array", False, "Send a JSON array.", Kind.BOOLEAN),
            key("batch.prefix", "", "Text before the records of a request."),
            key("batch.suffix", "", "Text after them."),
            key("batch.separator", ",", "Text between them."),
            key("behavior.on.null.values", "ignore", "No value.", validator=one_of("ignore", "delete", "fail")),
            key("idempotency.header", "Idempotency-Key", "The header that names a request; empty for none."),
            *KEYS,
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        headers_of(parsed["headers"], parsed["header.separator"])
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Requests:
        return Requests(context)


class Requests:
    """The task."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._config = config = HttpSink.config.parse(context.config)
        self._web = Web(config, context.wait, headers_of(config["headers"], config["header.separator"]))
        self._json = make_converter(JSON, "value", {"schemas.enable": "false"})
        self._done: dict[TopicPartition, int] = {}  # what of a batch that is put again was sent already

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        self._done.clear()
        return {}

    def put(self, records: Sequence[Record]) -> None:
        left = [one for one in records if (at := place_of(one))[1] >= self._done.get(at[0], 0)]
        rows = [(way, (one, number)) for one, number in numbered(left) if (way := self._way(one)) is not None]
        unsent = Counter(place_of(one) for _, (one, _) in rows)
        for (url, method), batch in self._batches(rows):
            try:
                self._send(method, url, batch)
            except Refused as error:
                self._one_by_one(method, url, batch, error)
            for one, _ in batch:
                place, offset = at = place_of(one)
                unsent[at] -= 1
                if not unsent[at]:
                    self._done[place] = offset + 1

    def _batches(self, rows: Sequence[tuple[Way, Row]]) -> Iterator[tuple[Way, list[Row]]]:
        """Group records that follow each other and go the same way."""
        size = self._config["batch.max.size"]
        for way, run in groupby(rows, lambda pair: pair[0]):
            found = [row for _, row in run]
            most = 1 if way[1] == "DELETE" else size
            for start in range(0, len(found), most):
                yield way, found[start : start + most]

    def _way(self, record: Record) -> Way | None:
        """Return the URL and the method for a record; None for one to be left out."""
        method = self._config["request.method"]
        if record.value is None:
            match self._config["behavior.on.null.values"]:
                case "ignore":
                    return None
                case "delete":
                    method = "DELETE"
                case _:
                    self._context.report(record, ConnectError("The record has no value."))
                    return None
        name = "" if record.key is None else to_string(record.key_schema, record.key)
        url = self._config[URL.name].replace("${topic}", quote(record.topic, safe=""))
        return url.replace("${key}", quote(name, safe="")), method

    def _send(self, method: str, url: str, batch: Sequence[Row]) -> None:
        name = self._config["idempotency.header"]
        headers = {name: name_of(*batch[0], "-")} if name else {}
        if self._config["request.body.format"] == "json":
            headers["Content-Type"] = "application/json"
        self._web.send(method, url, self._body([one for one, _ in batch]), **headers)

    def _body(self, batch: Sequence[Record]) -> bytes | None:
        if batch[0].value is None:
            return None
        config, values = self._config, [self._value(one) for one in batch]
        if config["batch.json.as.array"]:
            return b"[" + b",".join(values) + b"]"
        if config["batch.max.size"] == 1:
            return values[0]
        prefix, suffix, between_ = (config[f"batch.{name}"].encode() for name in ("prefix", "suffix", "separator"))
        return prefix + between_.join(values) + suffix

    def _value(self, record: Record) -> bytes:
        if isinstance(record.value, bytes):
            return record.value
        if self._config["request.body.format"] == "json":
            return self._json.write(record.topic, record.value_schema, record.value) or b"null"
        return to_string(record.value_schema, record.value).encode()

    def _one_by_one(self, method: str, url: str, batch: Sequence[Row], error: Refused) -> None:
        """Find the records that the server does not want."""
        for one, number in batch:
            why = error
            if len(batch) > 1:
                try:
                    self._send(method, url, [(one, number)])
                    continue
                except Refused as found:
                    why = found
            self._context.report(one, why)

    def flush(self, offsets: Offsets) -> Offsets:
        return offsets

    def close(self) -> None:
        self._web.close()
