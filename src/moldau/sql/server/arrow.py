"""Rows of a query as an Arrow stream: typed columns, a batch for what was there at once."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import date, datetime, time
from typing import Any

from moldau.sql.server.errors import ServerError
from moldau.sql.tree import ArrayType, DecimalType, MapType, Primitive, StructType, Type

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
Column = tuple[str, Type, bool]

_VALUES: dict[str, Callable[[Any], Any]] = {
    "BYTES": base64.b64decode,
    "DATE": date.fromisoformat,
    "TIME": time.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "DOUBLE": float,
}


def arrow_type(kind: Type) -> Any:
    """Return the Arrow type of a SQL type."""
    import pyarrow as pa

    plain = {
        "BOOLEAN": pa.bool_(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "BYTES": pa.binary(),
        "DATE": pa.date32(),
        "TIME": pa.time32("ms"),
        "TIMESTAMP": pa.timestamp("ms"),
    }
    match kind:
        case Primitive():
            return plain[kind.name]
        case DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case ArrayType():
            return pa.list_(arrow_type(kind.item))
        case MapType():
            return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
        case StructType():
            return pa.struct([(field.name, arrow_type(field.type)) for field in kind.fields])
        case _:
            raise AssertionError(f"{kind} was not resolved")


def value(node: Any, kind: Type) -> Any:
    """Turn a JSON node of an answer into what Arrow takes for the type."""
    if node is None:
        return None
    match kind:
        case ArrayType():
            return [value(item, kind.item) for item in node]
        case MapType():
            return [(_key(key, kind.key), value(item, kind.value)) for key, item in node.items()]
        case StructType():
            return {field.name: value(node[field.name], field.type) for field in kind.fields}
        case Primitive() if kind.name in _VALUES:
            return _VALUES[kind.name](node)
        case _:
            return node


def _key(text: str, kind: Type) -> Any:
    """Read the key of a map, which is a text in JSON."""
    if kind == Primitive("STRING") or text == "null":
        return text
    if kind == Primitive("BOOLEAN"):
        return text == "true"
    return int(text) if kind in (Primitive("INTEGER"), Primitive("BIGINT")) else value(text, kind)


async def parts(columns: Sequence[Column], batches: AsyncIterator[list[Any]]) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of the stream. A failure ends it without its end mark, so that readers see it."""
    import pyarrow as pa

    schema = pa.schema([(name, arrow_type(kind)) for name, kind, _ in columns])
    sink = io.BytesIO()

    def written() -> bytes:
        found = sink.getvalue()
        sink.seek(0)
        sink.truncate()
        return found

    with pa.ipc.new_stream(sink, schema) as writer:
        yield written()
        async for rows in batches:
            failed = [row for row in rows if isinstance(row, ServerError)]
            if failed:
                raise failed[0]
            arrays = [
                pa.array([value(row.columns[at], kind) for row in rows], schema.field(at).type)
                for at, (_, kind, _) in enumerate(columns)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            yield written()
    yield written()
