"""Reserved fields: names that the metadata property confluent:reserved keeps free for later versions of a schema."""

from __future__ import annotations

from typing import Any

from moldau.serdes.schemas import Parsed
from moldau.serdes.schemas.avro import Named
from moldau.serdes.schemas.proto import Message


def check_reserved(new: Parsed, newest: Parsed | None) -> list[str]:
    """Check that reserved names stay reserved, and that no field of the schema itself has one."""
    gone = sorted(newest.reserved - new.reserved) if newest else []
    found = [f"the reserved field {name} of the old schema is not reserved in the new schema" for name in gone]
    taken = sorted(new.reserved & set(fields(new)))
    return found + [f"the new schema has a field with the reserved name {name}" for name in taken]


def fields(parsed: Parsed) -> list[str]:
    """Return the names of the fields at the top of a schema."""
    raw: Any = parsed.raw
    match parsed.type:
        case "AVRO":
            return [entry.name for entry in raw.fields] if isinstance(raw, Named) else []
        case "JSON":
            properties = raw.get("properties") if isinstance(raw, dict) else None
            return list(properties) if isinstance(properties, dict) else []
    return [entry.name for node in raw.types if isinstance(node, Message) for entry in node.every_field()]
