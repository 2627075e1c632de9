"""Keys, values and headers of many records as columns of text for DuckDB, decoded with the registry if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from moldau.records.formats import TYPES
from moldau.serdes.arrow.batch import NO_ID, Slices
from moldau.serdes.arrow.converters import columns
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import ID_SIZE, SchemaRef
from moldau.serdes.registry import Registry
from moldau.spark.source.batches import Decoded
from moldau.wire.records import column_reader as decode

MAP = pa.map_(pa.string(), pa.string())
ToJson = Callable[[pa.Array], pa.Array]


def texts(values: pa.Array) -> pa.Array:
    """Decode as UTF-8; invalid bytes are replaced."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if one is None else one.decode(errors="replace") for one in values.to_pylist()], pa.string()
        )


class Typed:
    """Decodes keys and values of a topic to JSON text with the registry. Each schema is asked for once."""

    def __init__(self, topic: str, connect: Callable[[], Registry], to_json: ToJson) -> None:
        self._topic, self._connect, self._to_json = topic, connect, to_json
        self._known: dict[tuple[str, int], Any] = {}

    def texts(self, values: pa.Array, field: Literal["key", "value"]) -> pa.Array:
        """Return the text of each row, decoded if possible."""
        ids, _ = Slices.of(values).unframed()
        named = np.unique(ids[ids != NO_ID]).tolist()
        pieces, taken = [], []
        for id in named:
            rows = np.flatnonzero(ids == id)
            found = self._decoded(values.take(pa.array(rows)), field, id)
            if found is not None:
                pieces.append(found)
                taken.append(rows)
        if not pieces:
            return texts(values)
        rest = np.setdiff1d(np.arange(len(values)), np.concatenate(taken), assume_unique=True)
        pieces.append(texts(values.take(pa.array(rest, pa.int64()))))
        order = np.argsort(np.concatenate([*taken, rest]))
        return pa.concat_arrays(pieces).take(pa.array(order))

    def _decoded(self, values: pa.Array, field: Literal["key", "value"], id: int) -> pa.Array | None:
        """Decode by the writer's schema; None if there is no such schema or it does not fit."""
        if (field, id) not in self._known:
            self._known[field, id] = self._converter(id)
        converter = self._known[field, id]
        if converter is None:
            return None
        if converter == "JSON":
            return texts(pa.array([one[ID_SIZE:] for one in values.to_pylist()], pa.binary()))
        try:
            converted = converter.to_arrow(values, Context(self._topic, field))
        except SerdeError:
            return None
        return None if converted.errors else self._to_json(converted.values)

    def _converter(self, id: int) -> Any:
        try:
            registry = self._connect()
            schema = registry.schema(SchemaRef(id))
            return "JSON" if schema.type == "JSON" else columns(TYPES.get(schema.type, "avro"), registry, schema)
        except SerdeError:
            return None


def headers(found: Decoded) -> pa.Array:
    """Return a map for each record; the first of several headers of one name counts. Names need not be UTF-8 either."""
    if not found.has_headers:
        return pa.nulls(found.rows, MAP)
    flat = found.headers.flatten()
    names = [one.decode(errors="replace") for one in flat.field("key").cast(pa.binary()).to_pylist()]
    contents = [None if one is None else one.decode(errors="replace") for one in flat.field("value").to_pylist()]
    maps, at = [], 0
    for count in found.table[decode.HEADERS, : found.rows].tolist():
        pairs = zip(names[at : at + count], contents[at : at + count], strict=True)
        maps.append(list(dict(reversed(list(pairs))).items()))
        at += count
    return pa.array(maps, MAP)
