"""Tags in Avro schemas: `confluent:tags` of records and of fields, found and changed.

A record is named by its full name, a field by that and its own: `shop.Order`, `shop.Order.id`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from moldau.registry.errors import refuse, unprocessable
from moldau.registry.records import AVRO, Json, Version

TAGS = "confluent:tags"
RECORD, FIELD = "sr_record", "sr_field"
EVERY = "*"


class Entity(NamedTuple):
    """A part of a schema that may have tags."""

    path: str
    type: str


def changed(version: Version, add: Any, remove: Any) -> str:
    """The text with tags added and taken away; 42201 where an entity is not there."""
    if not add and not remove:
        return version.schema
    if version.type != AVRO:
        raise refuse(42201, f"Tags can be set in Avro schemas, not in one of type {version.type}.")
    document = json.loads(version.schema)
    nodes = dict(entities(document))
    for entity, _ in [*_rows(add), *_rows(remove)]:
        if entity not in nodes:
            raise refuse(42201, f"The schema has no {entity.type} {entity.path}.")
    for entity, tags in _rows(add):
        kept = nodes[entity].get(TAGS) or []
        nodes[entity][TAGS] = [*kept, *(tag for tag in tags if tag not in kept)]
    for entity, tags in _rows(remove):
        nodes[entity][TAGS] = [tag for tag in nodes[entity].get(TAGS) or [] if tag not in tags]
        if not nodes[entity][TAGS]:
            del nodes[entity][TAGS]
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def found(version: Version, wanted: list[str]) -> list[Json]:
    """Entities with at least one of the tags that are wanted, `*` for any, and all their tags."""
    if version.type != AVRO:
        return []
    rows = []
    for entity, node in entities(json.loads(version.schema)):
        tags = node.get(TAGS) or []
        if tags and (EVERY in wanted or set(tags) & set(wanted)):
            rows.append({"schemaEntity": {"entityPath": entity.path, "entityType": entity.type}, "tags": tags})
    return rows


def entities(node: Any, namespace: str = "") -> Iterator[tuple[Entity, Json]]:
    """Records and fields of an Avro schema, outermost first."""
    if isinstance(node, list):
        for branch in node:
            yield from entities(branch, namespace)
    elif isinstance(node, dict):
        if node.get("type") in ("record", "error") and isinstance(node.get("fields"), list):
            yield from _record(node, namespace)
        else:
            for inner in (node.get("type"), node.get("items"), node.get("values")):
                yield from entities(inner, namespace)


def _record(node: Json, namespace: str) -> Iterator[tuple[Entity, Json]]:
    name = node["name"]
    if "." not in name:
        name = ".".join(filter(None, (node.get("namespace", namespace), name)))
    yield Entity(name, RECORD), node
    for field in node["fields"]:
        yield Entity(f"{name}.{field['name']}", FIELD), field
        yield from entities(field["type"], name.rpartition(".")[0])


def _rows(given: Any) -> list[tuple[Entity, list[str]]]:
    try:
        rows = [(row["schemaEntity"], list(row["tags"])) for row in given or ()]
        return [(Entity(entity["entityPath"], entity["entityType"]), tags) for entity, tags in rows]
    except (TypeError, KeyError):
        raise unprocessable("Tags have a schemaEntity (entityPath, entityType) and tags.") from None
