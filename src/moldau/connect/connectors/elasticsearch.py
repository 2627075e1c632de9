"""Elasticsearch and OpenSearch sink, over their bulk API.

The settings are those of Confluent's connector. A document's id is the record's key, and its version the offset, so
what is written twice, or too late, changes nothing: the last value of each key is there exactly once. With `key.ignore`
the id is TOPIC+PARTITION+OFFSET, and each record is there exactly once. `write.method=upsert` merges fields instead, at
least once. Data streams only grow; a repeated record is known by its id there.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import cycle
from typing import Any
from urllib.parse import quote

import httpx

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, key, one_of_any_case
from moldau.connect.connector import SINK, Config, Offsets, SinkContext, TopicPartition
from moldau.connect.connectors.positions import name_of, numbered, place_of
from moldau.connect.connectors.web import an_http_url
from moldau.connect.data import DATE, DECIMAL, TIMESTAMP, Record, Schema, Type
from moldau.connect.errors import ConfigError, ConnectError, DataError, RetriableError
from moldau.connect.offset_topic import SourceOffset, SourcePartition
from moldau.connect.shapes import plain
from moldau.connect.values import to_string

log = logging.getLogger(__name__)
FAIL, WARN, IGNORE, DELETE = "FAIL", "WARN", "IGNORE", "DELETE"
INSERT, UPSERT = "INSERT", "UPSERT"
CONFLICT = 409
PASSING = {429, 502, 503, 504}
MAX_ID = 512
NUMBERS = {
    Type.INT8: "byte",
    Type.INT16: "short",
    Type.INT32: "integer",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.BYTES: "binary",
}
TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}


def _urls(name: str, value: Any) -> None:
    for one in value or ():
        an_http_url(name, one)


class ElasticsearchSink:
    """Records as documents of an index with the name of their topic."""

    kind = SINK
    task_class = "io.confluent.connect.elasticsearch.ElasticsearchSinkTask"
    exactly_once = False
    config = ConfigDef(
        [
            Key("connection.url", Kind.LIST, importance=Importance.HIGH, doc="URLs of the nodes.", validator=_urls),
            key("connection.username", None, "The user."),
            key("connection.password", None, "The user's password.", Kind.PASSWORD),
            key("connection.timeout.ms", 1000, "How long to wait for a connection.", Kind.INT, validator=between(1)),
            key("read.timeout.ms", 3000, "How long to wait for an answer.", Kind.INT, validator=between(1)),
            key("batch.size", 2000, "The most records of a request.", Kind.INT, validator=between(1)),
            key("bulk.size.bytes", 5 * 1024 * 1024, "The most bytes of a request.", Kind.LONG, validator=between(1)),
            key("max.retries", 5, "How often a request is tried again.", Kind.INT, validator=between(0)),
            key("retry.backoff.ms", 100, "How long to wait before that.", Kind.LONG, validator=between(0)),
            key("key.ignore", False, "Make ids of topic, partition and offset.", Kind.BOOLEAN),
            key("topic.key.ignore", [], "Topics for which key.ignore is true.", Kind.LIST),
            key("schema.ignore", False, "Let the index find out the types of fields.", Kind.BOOLEAN),
            key("topic.schema.ignore", [], "Topics for which schema.ignore is true.", Kind.LIST),
            key("drop.invalid.message", False, "Leave out records that cannot become documents.", Kind.BOOLEAN),
            key(
                "behavior.on.null.values",
                FAIL,
                "What to do with a record without a value.",
                validator=one_of_any_case(FAIL, IGNORE, DELETE),
            ),
            key(
                "behavior.on.malformed.documents",
                FAIL,
                "What to do with a document that the index refuses.",
                validator=one_of_any_case(FAIL, WARN, IGNORE),
            ),
            key("write.method", INSERT, "Replace or merge.", validator=one_of_any_case(INSERT, UPSERT)),
            key("external.version.header", "", "The header with the version; the offset by default."),
            key("data.stream.type", "NONE", "LOGS or METRICS.", validator=one_of_any_case("NONE", "LOGS", "METRICS")),
            key("data.stream.dataset", "", "The middle of the data stream's name; ${topic} is replaced."),
            key("data.stream.namespace", "${topic}", "The end of the data stream's name; ${topic} is replaced."),
            key("data.stream.timestamp.field", [], "The fields of which the first is @timestamp.", Kind.LIST),
        ]
    )

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        parsed = self.config.parse(config)
        if not parsed["connection.url"]:
            raise ConfigError("Name the nodes in connection.url.")
        if parsed["data.stream.type"].upper() != "NONE" and not parsed["data.stream.dataset"]:
            raise ConfigError("A data stream needs data.stream.dataset.")
        return [dict(config) for _ in range(most)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """The offsets are those of a consumer group: any will do."""

    def open(self, context: SinkContext) -> Indexing:
        return Indexing(context)


Action = tuple[Record, bytes]


class Indexing:
    """The task."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._config = config = ElasticsearchSink.config.parse(context.config)
        timeout = httpx.Timeout(config["read.timeout.ms"] / 1000, connect=config["connection.timeout.ms"] / 1000)
        secret = config["connection.password"]
        user = config["connection.username"]
        auth = httpx.BasicAuth(user, secret.value if secret else "") if user else None
        self._client = httpx.Client(timeout=timeout, auth=auth, headers={"Content-Type": "application/json"})
        self._nodes = cycle(one.rstrip("/") for one in config["connection.url"])
        self._node, self._left = next(self._nodes), config["max.retries"]
        self._prepared: set[str] = set()
        self._is_stream = config["data.stream.type"].upper() != "NONE"

    def open(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return {}

    def put(self, records: Sequence[Record]) -> None:
        for batch in self._batches(self._actions(records)):
            self._send(batch)

    def _actions(self, records: Sequence[Record]) -> Iterator[Action]:
        for one, number in numbered(records):
            try:
                made = self._action(one, number)
            except (DataError, ConfigError) as error:
                if self._config["drop.invalid.message"]:
                    log.warning("a record is left out: %s", error)
                else:
                    self._context.report(one, error)
                continue
            if made is not None:
                yield one, made

    def _batches(self, actions: Iterator[Action]) -> Iterator[list[Action]]:
        batch: list[Action] = []
        size = 0
        for one in actions:
            if batch and (len(batch) >= self._config["batch.size"] or size >= self._config["bulk.size.bytes"]):
                yield batch
                batch, size = [], 0
            batch.append(one)
            size += len(one[1])
        if batch:
            yield batch

    def _action(self, record: Record, number: int) -> bytes | None:
        """Return the lines of a record in a bulk request; None for one that is to be left out."""
        config, index = self._config, self.index(record.topic)
        ignores_key = config["key.ignore"] or record.topic in config["topic.key.ignore"]
        (topic, partition), offset = place_of(record)
        id = name_of(record, number, "+") if ignores_key or self._is_stream else _id(record)
        target: dict[str, Any] = {"_index": index, "_id": id}
        version = {} if ignores_key or self._is_stream else self._version(record, offset)
        if record.value is None:
            match config["behavior.on.null.values"].upper():
                case "IGNORE":
                    return None
                case "DELETE":
                    return None if ignores_key or self._is_stream else _lines({"delete": {**target, **version}})
                case _:
                    raise DataError(f"The record {topic}-{partition}@{offset} has no value.")
        self._prepare(index, record)
        document = _document(record)
        if self._is_stream:
            return _lines({"create": target}, {**document, "@timestamp": self._time(record, document)})
        if config["write.method"].upper() == UPSERT:
            return _lines({"update": {**target, "retry_on_conflict": 5}}, {"doc": document, "doc_as_upsert": True})
        return _lines({"index": {**target, **version}}, document)

    def index(self, topic: str) -> str:
        if not self._is_stream:
            return topic.lower()
        parts = (self._config[f"data.stream.{part}"] for part in ("type", "dataset", "namespace"))
        return "-".join(part.replace("${topic}", topic).lower() for part in parts)

    def _version(self, record: Record, offset: int) -> dict[str, Any]:
        if self._config["write.method"].upper() == UPSERT:
            return {}
        name = self._config["external.version.header"]
        found = next((one.value for one in record.headers if one.name == name), None) if name else offset
        try:
            return {"version": int(found), "version_type": "external"}  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise DataError(f"The header {name} is not a version: {found!r}") from None

    def _time(self, record: Record, document: Mapping[str, Any]) -> Any:
        names = self._config["data.stream.timestamp.field"]
        found = next((document[name] for name in names if document.get(name) is not None), None)
        return record.timestamp if found is None else found

    # Requests.

    def _prepare(self, index: str, record: Record) -> None:
        """Create an index with the types of a record's schema, unless it is there."""
        config = self._config
        if index in self._prepared or self._is_stream:
            return
        ignores = config["schema.ignore"] or record.topic in config["topic.schema.ignore"]
        if record.value_schema is not None and record.value_schema.type is Type.STRUCT and not ignores:
            body = {"mappings": {"properties": mapping(record.value_schema)["properties"]}}
            answer = self._ask("PUT", f"/{quote(index, safe='')}", json.dumps(body).encode())
            if answer.status_code >= 400 and "resource_already_exists" not in answer.text:
                raise ConnectError(f"The index {index} cannot be created: {answer.text[:300]}")
        self._prepared.add(index)

    def _send(self, batch: Sequence[Action]) -> None:
        answer = self._ask("POST", "/_bulk", b"".join(lines for _, lines in batch))
        if answer.status_code >= 400:
            raise ConnectError(f"The bulk request was answered {answer.status_code}: {answer.text[:300]}")
        items = [next(iter(one.values())) for one in answer.json()["items"]]
        again = [one for one, item in zip(batch, items, strict=True) if item["status"] in PASSING]
        for (record, _), item in zip(batch, items, strict=True):
            status = item["status"]
            if status >= 300 and status not in PASSING and not _is_known(item):
                self._refused(record, item)
        if again:  # the others are known by their versions or ids if they are sent again
            raise self._retriable(f"{len(again)} documents were answered 429 or 503")
        self._left = self._config["max.retries"]

    def _refused(self, record: Record, item: Mapping[str, Any]) -> None:
        error = item.get("error") or {}
        said = f"{item.get('_index')}/{item.get('_id')} was answered {item['status']}: {json.dumps(error)[:300]}"
        how = self._config["behavior.on.malformed.documents"].upper()
        if how == FAIL or item["status"] in (401, 403):
            self._context.report(record, ConnectError(said))
        else:
            log.log(logging.WARNING if how == WARN else logging.DEBUG, "a document is left out: %s", said)

    def _ask(self, method: str, path: str, body: bytes) -> httpx.Response:
        try:
            answer = self._client.request(method, self._node + path, content=body)
        except httpx.HTTPError as error:
            said, self._node = f"{method} {self._node}{path}: {error or type(error).__name__}", next(self._nodes)
            raise self._retriable(said) from error
        if answer.status_code in PASSING:
            raise self._retriable(f"{method} {path} was answered {answer.status_code}")
        return answer

    def _retriable(self, said: str) -> ConnectError:
        if self._left <= 0:
            return ConnectError(f"{said}; also after {self._config['max.retries']} retries")
        self._left -= 1
        self._context.wait(self._config["retry.backoff.ms"] / 1000)
        return RetriableError(said)

    def flush(self, offsets: Offsets) -> Offsets:
        return offsets

    def close(self) -> None:
        self._client.close()


def _is_known(item: Mapping[str, Any]) -> bool:
    """Tell whether the index has the document already, or a later one, or does not have what is to be deleted."""
    return item["status"] == CONFLICT or (item["status"] == 404 and item.get("result") == "not_found")


def _id(record: Record) -> str:
    if record.key is None:
        raise DataError("The record has no key for the id of its document; key.ignore=true does without.")
    if not isinstance(record.key, str | int) or isinstance(record.key, bool):
        raise DataError("The id of a document is made of a string or a whole number; key.ignore=true does without.")
    text = to_string(record.key_schema, record.key)
    if not text or len(text.encode()) > MAX_ID:
        raise DataError(f"The id of a document has 1 to {MAX_ID} bytes, not {len(text.encode())}.")
    return text


def _document(record: Record) -> dict[str, Any]:
    value = plain(record.value_schema, record.value)
    if not isinstance(value, dict):
        raise DataError("Only structs and objects can become documents.")
    return value


def _lines(*parts: Any) -> bytes:
    try:
        return b"".join(json.dumps(one, default=_json, allow_nan=False).encode() + b"\n" for one in parts)
    except ValueError as error:
        raise DataError(f"The record cannot be written as JSON: {error}") from None


def _json(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            raise DataError(f"A value of type {type(value).__name__} has no JSON.")


def mapping(schema: Schema) -> dict[str, Any]:
    """Return how an index has values of a schema."""
    if schema.name in (DATE, TIMESTAMP):
        return {"type": "date"}
    if schema.name == DECIMAL:
        return {"type": "double"}
    if schema.type is Type.STRUCT:
        return {"properties": {each.name: mapping(each.schema) for each in schema.fields}}
    if schema.type is Type.ARRAY:
        return mapping(schema.value_schema) if schema.value_schema else {"type": "object"}
    if schema.type is Type.MAP:
        return {"type": "object"}
    return {"type": NUMBERS[schema.type]} if schema.type in NUMBERS else dict(TEXT)
