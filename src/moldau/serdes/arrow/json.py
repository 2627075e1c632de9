"""JSON with a JSON Schema as Arrow columns.

Objects with properties are structs, with only additionalProperties maps; arrays are lists; what has no single type is
its JSON text. pyarrow reads all rows at once; where one of them is wrong, or the columns are beyond it, Python reads
them one by one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from ..context import SerdeError
from ..framing import SchemaRef
from ..primitive import read_json, write_json
from ..registry import Schema
from .batch import Converted, Slices

SIMPLE = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "null": pa.null(),
}
ANY = pa.string()
ANY_MARK = {b"moldau.json": b"any"}
BLOCK = 1 << 20
MAX_DEPTH = 100


@lru_cache(maxsize=1000)
def json_type(schema: Schema) -> pa.DataType:
    named = {name: json.loads(text) for name, text in schema.resolved}
    return field_of("", json.loads(schema.text), Documents(json.loads(schema.text), named), ()).type


class Documents:
    """Where `$ref` leads."""

    def __init__(self, root: Any, named: dict[str, Any]) -> None:
        self.root, self.named = root, named

    def at(self, ref: str) -> Any:
        name, _, pointer = ref.partition("#")
        found = self.named.get(name) if name else self.root
        for part in pointer.strip("/").split("/") if pointer.strip("/") else ():
            part = part.replace("~1", "/").replace("~0", "~")
            found = found.get(part) if isinstance(found, dict) else None
        if found is None:
            raise SerdeError(f"the schema refers to {ref!r}, which is not among its references")
        return found


def field_of(name: str, schema: Any, documents: Documents, above: tuple[str, ...]) -> pa.Field:
    """Make a column. Each is nullable: an object need not have all of its properties."""
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        if schema["$ref"] in above:
            raise SerdeError(f"{schema['$ref']} contains itself, and columns cannot: read it value by value")
        above = (*above, schema["$ref"])
        schema = documents.at(schema["$ref"])
    if not isinstance(schema, dict) or len(above) > MAX_DEPTH:
        return pa.field(name, ANY, metadata=ANY_MARK)
    for union in ("oneOf", "anyOf"):
        if isinstance(schema.get(union), list):
            rest = [
                branch for branch in schema[union] if not (isinstance(branch, dict) and branch.get("type") == "null")
            ]
            return field_of(name, rest[0] if len(rest) == 1 else None, documents, above)
    kind = schema.get("type")
    if isinstance(kind, list):
        rest = [one for one in kind if one != "null"]
        kind = rest[0] if len(rest) == 1 else None
    return typed_field(name, kind, schema, documents, above)


def typed_field(name: str, kind: Any, schema: dict[str, Any], documents: Documents, above: tuple[str, ...]) -> pa.Field:
    properties = schema.get("properties")
    if kind == "object" and isinstance(properties, dict) and properties:
        return pa.field(name, pa.struct([field_of(key, value, documents, above) for key, value in properties.items()]))
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        value = field_of("value", schema["additionalProperties"], documents, above)
        return pa.field(name, pa.map_(pa.string(), value))
    if kind == "array" and isinstance(schema.get("items"), dict):
        return pa.field(name, pa.list_(field_of("item", schema["items"], documents, above)))
    if kind in SIMPLE:
        return pa.field(name, SIMPLE[kind])
    return pa.field(name, ANY, metadata=ANY_MARK)


def is_any(field: pa.Field) -> bool:
    return bool(field.metadata) and b"moldau.json" in field.metadata


def is_native(type: pa.DataType) -> bool:
    """Say whether pyarrow's reader gives this type what Python's would: no maps, and no text of any JSON."""
    if pa.types.is_struct(type):
        return all(is_native(one.type) and not is_any(one) for one in type)
    if pa.types.is_list(type):
        return is_native(type.value_type) and not is_any(type.value_field)
    return not pa.types.is_map(type) and not pa.types.is_null(type)


def read_json_rows(payloads: Slices, writer: Schema, reader: Schema, ref: SchemaRef) -> Converted:
    return read_rows(payloads, json_type(reader))


def read_rows(payloads: Slices, type: pa.DataType) -> Converted:
    fast = at_once(payloads, type) if pa.types.is_struct(type) and is_native(type) and len(payloads.starts) else None
    return fast or one_by_one(payloads, type)


def at_once(payloads: Slices, type: pa.DataType) -> Converted | None:
    """Read all rows by pyarrow's reader; None if one of them is wrong. As each begins with { and ends with }, no object
    can go from one row into the next, and as many objects as rows are one for each."""
    longest = int((payloads.ends - payloads.starts).max())
    inner = payloads.present & (payloads.ends - payloads.starts >= 2)
    if not inner.all():
        return None
    if not ((payloads.data[payloads.starts] == ord("{")) & (payloads.data[payloads.ends - 1] == ord("}"))).all():
        return None
    text = b"\n".join(payloads.rows())  # type: ignore[arg-type]
    options = pj.ParseOptions(
        explicit_schema=pa.schema(list(type)),
        newlines_in_values=text.count(b"\n") >= len(payloads.starts),
        unexpected_field_behavior="ignore",
    )
    try:
        table = pj.read_json(io.BytesIO(text), pj.ReadOptions(block_size=max(BLOCK, 2 * longest)), options)
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(payloads.starts):
        return None
    columns = [column.combine_chunks() for column in table.columns]
    return Converted(pa.StructArray.from_arrays(columns, fields=list(type)))


def one_by_one(payloads: Slices, type: pa.DataType) -> Converted:
    shape = shaper(pa.field("", type))
    errors: dict[int, str] = {}
    out: list[Any] = []
    for row, data in enumerate(payloads.rows()):
        value = None
        if data is not None:
            try:
                value = shape(read_json(data))
            except (ValueError, RecursionError) as error:
                errors[row] = str(error)
        out.append(value)
    return Converted(pa.array(out, type), errors)


def shaper(field: pa.Field) -> Callable[[Any], Any]:
    """Return a function that gives a value the form that pyarrow takes for the field, or says why it does not fit."""
    type = field.type
    if is_any(field):
        return lambda value: None if value is None else write_json(value).decode()
    if pa.types.is_struct(type):
        inner = {one.name: shaper(one) for one in type}
        return of(dict, type, lambda value: {name: shape(value.get(name)) for name, shape in inner.items()})
    if pa.types.is_map(type):
        item = shaper(type.item_field)
        return of(dict, type, lambda value: [(key, item(one)) for key, one in value.items()])
    if pa.types.is_list(type):
        item = shaper(type.value_field)
        return of(list, type, lambda value: [item(one) for one in value])
    if pa.types.is_int64(type):
        return of(int, type, whole)
    if pa.types.is_float64(type):
        return of(int | float, type, float)
    kinds = {pa.string(): str, pa.bool_(): bool}
    return of(kinds.get(type, ()), type, lambda value: value)


def whole(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} has more than 64 bits")
    return value


def of(kind: Any, type: pa.DataType, then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def shaped(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"a value of {type} was expected, not {write_json(value)[:40].decode(errors='replace')}")
        return then(value)

    return shaped


def write_json_rows(values: pa.Array, schema: Schema, head: Callable[[tuple[int, ...] | None], bytes]) -> Converted:
    type, before = json_type(schema), head(None)
    if values.type != type:
        values = values.cast(type)
    plain = unshaper(pa.field("", type))
    return Converted(
        pa.array([None if v is None else before + write_json(plain(v)) for v in values.to_pylist()], pa.binary())
    )


def unshaper(field: pa.Field) -> Callable[[Any], Any]:
    """Return a function for the way back. It leaves out null properties: few JSON Schemas allow null beside a type."""
    type = field.type
    if is_any(field):
        return lambda value: None if value is None else json.loads(value)
    if pa.types.is_struct(type):
        inner = [(one.name, unshaper(one)) for one in type]
        return lambda value: {name: plain(value[name]) for name, plain in inner if value[name] is not None}
    if pa.types.is_map(type):
        item = unshaper(type.item_field)
        return lambda value: {key: item(one) for key, one in value}
    if pa.types.is_list(type):
        item = unshaper(type.value_field)
        return lambda value: [None if one is None else item(one) for one in value]
    return lambda value: value
