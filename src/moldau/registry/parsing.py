"""Schemas of the store, parsed: references found through the store, results kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from moldau.registry.errors import refuse
from moldau.registry.records import Version
from moldau.registry.references import Referenced
from moldau.registry.store import Store
from moldau.serdes import schemas

RESERVED = "confluent:reserved"
Key = tuple[object, ...]


class Schemas:
    """Parses what a request brings and what the store has; schemas.SchemaError becomes the error 42201."""

    def __init__(self, store: Store, size: int, *, strict: bool = False) -> None:
        self._store, self._size, self._strict = store, size, strict
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, schemas.Parsed] = OrderedDict()

    def read(self, version: Version, *, new: bool = False, normalized: bool = False) -> schemas.Parsed:
        """Parse a version of a subject, whether the store has it yet or not."""
        if version.type not in schemas.TYPES:
            raise refuse(42201, f"Invalid schema type {version.type}")
        try:
            found = Referenced(self._store, new, self._strict)
            references = tuple(found.add(version.subject, reference) for reference in version.references)
            key = (version.type, version.schema, references, tuple(found.texts.items()), new, normalized)
            parsed = self._remembered(key, lambda: _parsed(version, references, found.texts, new, normalized))
        except schemas.SchemaError as error:
            raise refuse(42201, f"Invalid schema of type {version.type}, details: {error}") from None
        return replace(parsed, version=version.version or None, reserved=_reserved(version))

    def formatted(self, version: Version, format: str) -> str:
        """Return the text in a format; the text itself if there is none."""
        if not format.strip():
            return version.schema
        parsed = self.read(version)
        try:
            return schemas.formatted(parsed, format.strip())
        except schemas.SchemaError as error:
            raise refuse(42201, str(error)) from None

    def tagged(self, version: Version, add: schemas.Tags, remove: schemas.Tags) -> Version:
        """Add tags and remove others; 42201 where the schema has no such entity."""
        try:
            parsed = schemas.with_tags(self.read(version), add, remove)
        except schemas.SchemaError as error:
            raise refuse(42201, str(error)) from None
        return version.but(schema=parsed.text)

    def tagged_as(self, version: Version, older: Version) -> Version:
        """Copy the tags of an older version where both have the same entity."""
        known = schemas.entities_of(self.read(version))
        kept = {entity: tags for entity, tags in schemas.tags_of(self.read(older)).items() if entity in known}
        return self.tagged(version, kept, {}) if kept else version

    def _remembered(self, key: Key, make: Callable[[], schemas.Parsed]) -> schemas.Parsed:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return made


def _parsed(
    version: Version, references: tuple[schemas.Reference, ...], resolved: dict[str, str], new: bool, normalized: bool
) -> schemas.Parsed:
    parsed = schemas.parse(version.type, version.schema, references, resolved, new=new)
    return schemas.normalize(parsed) if normalized else parsed


def _reserved(version: Version) -> frozenset[str]:
    text = ((version.metadata or {}).get("properties") or {}).get(RESERVED) or ""
    return frozenset(part.strip() for part in text.split(",") if part.strip())
