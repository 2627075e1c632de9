"""Tags of schemas, as requests bring them and answers show them: an entity of the schema, and its tags."""

from __future__ import annotations

from typing import Any

from moldau.registry.errors import unprocessable
from moldau.registry.records import Json
from moldau.serdes.schemas import Entity, Parsed, Tags, tags_of

EVERY = "*"


def read(given: Any) -> Tags:
    """Read the rows of a request. A path may begin with a dot; many rows may be about one entity."""
    found: dict[Entity, list[str]] = {}
    try:
        for row in given or ():
            place = row["schemaEntity"]
            entity = Entity(place["entityPath"].removeprefix("."), place["entityType"])
            found.setdefault(entity, []).extend(row["tags"])
    except (TypeError, KeyError, AttributeError):
        raise unprocessable("Tags have a schemaEntity (entityPath, entityType) and tags.") from None
    return found


def find(parsed: Parsed, wanted: list[str]) -> list[Json]:
    """Return entities with at least one of the tags that are wanted, `*` for any, and all their tags."""
    return [
        {"schemaEntity": {"entityPath": entity.path, "entityType": entity.type}, "tags": tags}
        for entity, tags in tags_of(parsed).items()
        if EVERY in wanted or not set(tags).isdisjoint(wanted)
    ]
