"""Keys and values decoded with the registry. If it does not answer, it is not asked again for a while, and pages show
bytes instead of waiting for it with every record.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from moldau.client import Record
from moldau.console.model.records import DECODED, KEPT, Part, Row, from_document, headers, plain
from moldau.records.formats import ByRegistry
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import SCHEMA_HEADER, SchemaRef, unframe
from moldau.serdes.registry import Registry, RegistryError

PATIENCE_S = 10.0  # until a registry that did not answer is asked again
UNKNOWN_S = 60.0  # until it is asked again for a schema that it does not know
MOST_UNKNOWN = 10_000
FRAMED = (b"\0", b"\1")


class Decoder:
    """Decodes the records of one topic for pages."""

    def __init__(self, topic: str, connect: Callable[[], Registry]) -> None:
        self._topic, self._connect = topic, connect
        self._codec: ByRegistry | None = None
        self._away_until, self._away = 0.0, ""
        self._unknown: dict[SchemaRef, tuple[float, str]] = {}

    def row(self, partition: int, record: Record) -> Row:
        key, value = self._part(record, "key", record.key), self._part(record, "value", record.value)
        return Row(partition, record.offset, record.timestamp, key, value, headers(record))

    def _part(self, record: Record, field: Literal["key", "value"], data: bytes | None) -> Part:
        context = Context(self._topic, field, list(record.headers))
        framed = data is not None and (data[:1] in FRAMED or context.header(SCHEMA_HEADER[field]) is not None)
        if data is None or not framed:
            return plain(data)
        if len(data) > DECODED:
            return replace(plain(data), note="too large to decode")
        try:
            ref = unframe(bytes(data), context)[0]
            return self._decoded(bytes(data), context, SchemaRef(ref.id, ref.guid))
        except (SerdeError, RecursionError) as error:
            return replace(plain(data), note=str(error) or "it nests too deeply")

    def _decoded(self, data: bytes, context: Context, ref: SchemaRef) -> Part:
        now = time.monotonic()
        if now < self._away_until:
            raise SerdeError(self._away)
        until, why = self._unknown.get(ref, (0.0, ""))
        if now < until:
            raise SerdeError(why)
        try:
            if self._codec is None:
                self._codec = ByRegistry(self._connect(), {})
            document, _ = self._codec.show(data, context)
        except RegistryError as error:
            self._remember(error, ref, now)
            raise
        kind = self._codec.registry.schema(ref).type
        return from_document(document, data[:KEPT], len(data), f"{kind} by schema {ref.id or ref.guid}")

    def _remember(self, error: RegistryError, ref: SchemaRef, now: float) -> None:
        if error.retriable:
            self._away_until, self._away = now + PATIENCE_S, str(error)
        elif len(self._unknown) < MOST_UNKNOWN:
            self._unknown[ref] = (now + UNKNOWN_S, str(error))
