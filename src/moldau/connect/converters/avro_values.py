"""Values between Connect and fastavro: functions that are made once for each schema, and know what comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from moldau.connect import data
from moldau.connect.converters.avro_schemas import UNION
from moldau.connect.data import Schema, Struct, Type
from moldau.connect.errors import DataError
from moldau.serdes.schemas.avro import Array, Map, Named, Primitive, Union
from moldau.serdes.schemas.avro import Schema as Node

Convert = Callable[[Any], Any]


def writer(node: Node, schema: Schema) -> Convert:
    """Make what turns a value into what fastavro writes; a branch of a union of several is named."""
    default, optional = schema.default, schema.optional
    present = _present_writer(node, schema)

    def write(value: Any) -> Any:
        if value is None:
            if default is None:
                if not optional:
                    raise DataError("Found null value for non-optional schema")
                return None
            value = default
        return value if present is None else present(value)

    return write


def _present_writer(node: Node, schema: Schema) -> Convert | None:
    """Make the same for values that are there; None if they stay what they are."""
    if isinstance(node, Union):
        branches = _branches(node)
        if schema.name != UNION:
            return _present_writer(branches[0], schema) if branches else None
        return _union_writer(branches, schema)
    if schema.name in data.LOGICAL:
        return lambda value: data.encode_logical(schema, value)
    if isinstance(node, Named) and node.is_record:
        return _record_writer(node, schema)
    if isinstance(node, Array) and schema.type is Type.MAP:
        assert isinstance(node.items, Named) and schema.key_schema and schema.value_schema
        keys, values = node.items.fields
        key, item = writer(keys.type, schema.key_schema), writer(values.type, schema.value_schema)
        return lambda value: [{"key": key(k), "value": item(v)} for k, v in value.items()]
    return _collection(node, schema, writer)


def _record_writer(node: Named, schema: Schema) -> Convert:
    missing = [each.name for each in node.fields if schema.type is Type.STRUCT and each.name not in schema.by_name]
    rows = [
        (each.name, schema.by_name[each.name].index, writer(each.type, schema.by_name[each.name].schema))
        for each in node.fields
        if each.name in schema.by_name
    ]

    def write(value: Any) -> Any:
        if not isinstance(value, Struct) or schema.type is not Type.STRUCT:
            raise DataError(f"The value for the record {node.full_name} is not a struct")
        if value.schema is not schema and value.schema != schema:  # a struct goes by its own
            return _record_writer(node, value.schema)(value)
        if missing:
            raise DataError(f"The schema of the registry has the field {missing[0]}, which the struct does not have")
        values = value.values
        return {name: convert(values[index]) for name, index, convert in rows}

    return write


def _union_writer(branches: Sequence[Node], schema: Schema) -> Convert:
    names = [each.full_name if isinstance(each, Named) else each.kind for each in branches]
    rows = [
        (name, writer(branch, place.schema)) for name, branch, place in zip(names, branches, schema.fields, strict=True)
    ]

    def write(value: Any) -> Any:
        for (name, convert), (_, each) in zip(rows, value, strict=True):
            if each is not None:
                return name, convert(each)
        raise DataError("A struct that stands for a union has no value")

    return write


def _collection(node: Node, schema: Schema, of_items: Callable[[Node, Schema], Convert]) -> Convert | None:
    """Make what goes through a list, or the values of a map; None for what is neither."""
    inner = schema.value_schema or data.STRING
    if isinstance(node, Array):
        item = of_items(node.items, inner)
        return lambda value: [item(each) for each in value]
    if isinstance(node, Map):
        item = of_items(node.values, inner)
        return lambda value: {key: item(each) for key, each in value.items()}
    return None


def _branches(node: Union) -> list[Node]:
    return [each for each in node.branches if each.kind != "null"]


def reader(node: Node, schema: Schema) -> Convert:
    """Make what turns what fastavro has read into a value."""
    if isinstance(node, Union):
        branches = _branches(node)
        if schema.name != UNION:
            return reader(branches[0], schema) if branches else _as_it_is
        return _union_reader(branches, schema)
    present = _present_reader(node, schema)
    if present is None and isinstance(node, Primitive):
        return _as_it_is

    def read(value: Any) -> Any:
        if value is None:
            return None
        if value.__class__ is tuple:  # (name of the branch, value)
            value = value[1]
        return value if present is None else present(value)

    return read


def _as_it_is(value: Any) -> Any:
    return value


def _present_reader(node: Node, schema: Schema) -> Convert | None:
    if schema.name in data.LOGICAL:
        return lambda value: data.decode_logical(schema, value)
    if isinstance(node, Named) and node.is_record:
        rows = [
            (each.name, reader(each.type, place.schema)) for each, place in zip(node.fields, schema.fields, strict=True)
        ]
        return lambda value: Struct(schema, tuple([convert(value[name]) for name, convert in rows]))
    if isinstance(node, Array) and schema.type is Type.MAP:
        assert isinstance(node.items, Named) and schema.key_schema and schema.value_schema
        keys, values = node.items.fields
        key, item = reader(keys.type, schema.key_schema), reader(values.type, schema.value_schema)

        def read(value: Any) -> dict[Any, Any]:
            pairs = ((key(each["key"]), item(each["value"])) for each in value)
            return {tuple(found) if isinstance(found, list) else found: each for found, each in pairs}

        return read
    return _collection(node, schema, reader)


def _union_reader(branches: Sequence[Node], schema: Schema) -> Convert:
    rows = [(branch, reader(branch, place.schema)) for branch, place in zip(branches, schema.fields, strict=True)]

    def read(value: Any) -> Any:
        if value is None:
            return None
        chosen = next((each for each in branches if _fits(each, value)), None)
        if chosen is None:
            raise DataError("A value fits no branch of its union")
        return Struct(schema, tuple(convert(value) if branch is chosen else None for branch, convert in rows))

    return read


PYTHON = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "bytes": bytes,
    "array": list,
    "map": dict,
}


def _fits(node: Node, value: Any) -> bool:
    """Tell whether a value was read from a branch: fastavro names records, and other types by tuples too."""
    if isinstance(value, tuple):
        return isinstance(node, Named) and value[0] in (node.full_name, node.name)
    return isinstance(node, Primitive | Array | Map) and type(value) is PYTHON.get(node.kind)
