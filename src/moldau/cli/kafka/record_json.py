"""Messages of the protocol as JSON, as Kafka's own converters write them."""

from __future__ import annotations

import base64
import json
from typing import Any

from moldau.cli.kafka.java_text import base64_id, double_text
from moldau.wire.schema import Field, Message, Struct


def to_json(message: Any, version: int) -> dict[str, Any]:
    """Return the fields of a version; tagged ones only if they differ from their default."""
    spec: Message | Struct = message.SCHEMA
    document: dict[str, Any] = {}
    for field in spec.fields:
        value = getattr(message, field.name)
        if field.at(version) and not (field.tag is not None and _is_default(field, value)):
            document[json_name(field.name)] = _value(field, value, version)
    return document


def json_name(name: str) -> str:
    """Return the name of a field in Kafka's JSON: topicId for `topic_id`."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def compact(value: Any) -> str:
    """Write JSON without blanks, with floating-point numbers as Java writes them."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(name)}:{compact(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ",".join(map(compact, value)) + "]"
        case float():
            return double_text(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def _is_default(field: Field, value: Any) -> bool:
    if field.is_array:
        return value is None if field.default is None else value is not None and len(value) == 0
    return value == field.default


def _value(field: Field, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_item(field.item, one, version) for one in value]
    return _item(field.item, value, version)


def _item(kind: str, value: Any, version: int) -> Any:
    match kind:
        case "uuid":
            return base64_id(bytes(value))
        case "bytes" | "records":
            return base64.b64encode(bytes(value)).decode()
        case _:
            return to_json(value, version) if hasattr(value, "SCHEMA") else value
