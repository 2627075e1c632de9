"""Nodes of test cases in the formats with schemas: the topic's registered schema decides, or that of the columns."""

from __future__ import annotations

import json as jsonlib
from typing import Any

from moldau.serdes.context import SerdeError
from moldau.serdes.framing import SchemaRef, frame, unframe
from moldau.serdes.registry import Registered, RegistryError, Schema

from ..catalogue import Format
from ..tree import Field
from ..types import Columns
from . import json


def _writer(serde: Any) -> Registered:
    """Return the latest schema of the topic; the one of the columns if there is none."""
    place = serde.place
    subject = f"{place.topic}-{'key' if place.key else 'value'}"
    try:
        return place.registry.latest(subject)
    except RegistryError:
        return serde.subjects.to_write(place.context)


def encode(format: Format, columns: Columns, node: Any, serde: Any) -> bytes | None:
    if format.name == "PROTOBUF_NOSR":
        return serde.dumps(_row(columns, node))
    written = _writer(serde)
    context = serde.place.context
    if format.name == "JSON_SR":
        return frame(written.ref, json.document(node).encode(), context, in_header=False)
    if format.name == "AVRO":
        from moldau.serdes import avro as codecs

        from . import avro

        datum = avro.shaped(node, jsonlib.loads(written.schema.text))
        return frame(written.ref, codecs.encode(codecs.codec(written.schema), datum), context, in_header=False)
    return _message(written, node, serde)


def _message(written: Registered, node: Any, serde: Any) -> bytes:
    from moldau.serdes.protobuf import file_of, named, path_to

    from . import protobuf

    descriptor: Any = named(file_of(written.schema), serde.message)
    own = protobuf.columns_of(written.schema, serde.message, False)
    types = dict(serde.columns)
    upper = {name.upper(): type for name, type in types.items()}
    columns = [(each.name, upper.get(each.name.upper(), each.type)) for each in own.fields]
    message: Any = protobuf.GetMessageClass(descriptor)()
    row = _row(columns, node)
    assert row is not None
    protobuf.fill(message, columns, row)
    ref = SchemaRef(written.ref.id, None, path_to(descriptor))
    return frame(ref, message.SerializeToString(), serde.place.context, in_header=False)


def _row(columns: Columns, node: Any) -> Any:
    """Read a node as JSON of the columns."""
    if not isinstance(node, dict):
        raise SerdeError(f"{node!r} is not a record")
    return json.struct_reader(tuple(Field(name, type) for name, type in columns))(node)


def decode(format: Format, columns: Columns, data: bytes, serde: Any) -> Any:
    if format.name in ("PROTOBUF", "PROTOBUF_NOSR"):
        from . import protobuf

        message = serde.parsed(data)
        return protobuf.node_of(message, dict(columns))
    ref, payload = unframe(data, serde.place.context)
    if format.name == "JSON_SR":
        return json.parse(bytes(payload))
    from moldau.serdes import avro as codecs

    from . import avro

    writer: Schema = serde.subjects.writer(ref, serde.place.context)
    return avro.node_of(codecs.decode(payload, codecs.codec(writer), None))
