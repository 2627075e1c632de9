"""Schemas of the store, parsed: references found through the store, results kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from moldau.registry import names
from moldau.registry.errors import refuse
from moldau.registry.records import Version
from moldau.registry.store import Store
from moldau.serdes.schemas import (
    TYPES,
    Parsed,
    Reference,
    SchemaError,
    Tags,
    entities_of,
    formatted,
    normalize,
    parse,
    tags_of,
    with_tags,
)

RESERVED = "confluent:reserved"
MOST_REFERENCES = 1_000
Key = tuple[object, ...]


class Schemas:
    """Parses what a request brings and what the store has; SchemaError becomes the error 42201."""

    def __init__(self, store: Store, size: int) -> None:
        self._store, self._size = store, size
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, Parsed] = OrderedDict()

    def read(self, version: Version, *, new: bool = False, normalized: bool = False) -> Parsed:
        """A version of a subject, whether the store has it yet or not."""
        if version.type not in TYPES:
            raise refuse(42201, f"Invalid schema type {version.type}: use one of {', '.join(TYPES)}.")
        try:
            resolved = self._resolve(version.subject, version.references)
            key = (version.type, version.schema, version.references, tuple(resolved.items()), new, normalized)
            parsed = self._remembered(key, lambda: _parsed(version, resolved, new, normalized))
        except SchemaError as error:
            raise refuse(42201, f"Invalid schema of type {version.type}, details: {error}") from None
        return replace(parsed, version=version.version or None, reserved=_reserved(version))

    def formatted(self, version: Version, format: str) -> str:
        """The text in a format; the text itself if there is none."""
        if not format.strip():
            return version.schema
        parsed = self.read(version)
        try:
            return formatted(parsed, format.strip())
        except SchemaError as error:
            raise refuse(42201, str(error)) from None

    def tagged(self, version: Version, add: Tags, remove: Tags) -> Version:
        """With tags added and others taken away; 42201 where the schema has no such entity."""
        try:
            parsed = with_tags(self.read(version), add, remove)
        except SchemaError as error:
            raise refuse(42201, str(error)) from None
        return version.but(schema=parsed.text)

    def tagged_as(self, version: Version, older: Version) -> Version:
        """With the tags that an older version has where both have the same entity."""
        known = entities_of(self.read(version))
        kept = {entity: tags for entity, tags in tags_of(self.read(older)).items() if entity in known}
        return self.tagged(version, kept, {}) if kept else version

    def _remembered(self, key: Key, make: Callable[[], Parsed]) -> Parsed:
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

    def _resolve(self, subject: str, references: tuple[Reference, ...]) -> dict[str, str]:
        """The texts of all references, by name; what others need comes first. References cannot form a circle in the
        store, because each must be there before it is referred to; the bound is for a topic that another wrote."""
        resolved: dict[str, str] = {}
        path: list[tuple[str, int]] = []

        def visit(parent: str, reference: Reference) -> None:
            place = (names.within(parent, reference.subject), reference.version)
            target = self._store.version(*place)
            if target is None:
                raise SchemaError(f'no schema reference found for subject "{place[0]}" and version {place[1]}')
            if place in path or len(path) > MOST_REFERENCES:
                raise SchemaError(f'the references of subject "{place[0]}" lead back to it')
            if reference.name in resolved:
                return
            path.append(place)
            for deeper in target.references:
                visit(target.subject, deeper)
            path.pop()
            resolved.setdefault(reference.name, target.schema)
            if len(resolved) > MOST_REFERENCES:
                raise SchemaError(f"more than {MOST_REFERENCES} schemas are referenced")

        for reference in references:
            visit(subject, reference)
        return resolved


def _parsed(version: Version, resolved: dict[str, str], new: bool, normalized: bool) -> Parsed:
    parsed = parse(version.type, version.schema, version.references, resolved, new=new)
    return normalize(parsed) if normalized else parsed


def _reserved(version: Version) -> frozenset[str]:
    text = ((version.metadata or {}).get("properties") or {}).get(RESERVED) or ""
    return frozenset(part.strip() for part in text.split(",") if part.strip())
