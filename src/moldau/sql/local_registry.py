"""A schema registry in memory, for statements that run without a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.serdes.framing import SchemaRef
from moldau.serdes.registry import Registered, RegistryError, Schema


@dataclass(slots=True)
class LocalRegistry:
    """Schemas by id and by subject, as `serdes.registry.Registry` gives them. Equal texts share an id."""

    by_id: dict[int, Schema] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)

    def schema(self, ref: SchemaRef, subject: str | None = None, format: str | None = None) -> Schema:
        if ref.id not in self.by_id:
            raise RegistryError(f"Schema {ref.id} not found", 404, 40403)
        return self.by_id[ref.id]

    def latest(self, subject: str, format: str | None = None) -> Registered:
        versions = self.subjects.get(subject)
        if not versions:
            raise RegistryError(f"Subject '{subject}' not found.", 404, 40401)
        return Registered(SchemaRef(versions[-1]), self.by_id[versions[-1]])

    def latest_with(self, subject: str, metadata: Mapping[str, str], format: str | None = None) -> Registered:
        raise RegistryError("schemas have no metadata here", 404, 40401)

    def register(self, subject: str, schema: Schema, normalize: bool, id: int | None = None) -> SchemaRef:
        """Register a schema, under a given id if one is wanted."""
        if id is None:
            known = (number for number, each in self.by_id.items() if each == schema)
            id = next(known, max(self.by_id, default=0) + 1)
        self.by_id[id] = schema
        versions = self.subjects.setdefault(subject, [])
        if id not in versions:
            versions.append(id)
        return SchemaRef(id)

    def version(self, subject: str, schema: Schema, normalize: bool) -> int:
        found = self.lookup(subject, schema, normalize).id
        assert found is not None
        return self.subjects[subject].index(found) + 1

    def lookup(self, subject: str, schema: Schema, normalize: bool, deleted: bool = False) -> SchemaRef:
        for id in self.subjects.get(subject, ()):
            if self.by_id[id] == schema:
                return SchemaRef(id)
        raise RegistryError("Schema not found", 404, 40403)

    def delete(self, subject: str) -> None:
        if self.subjects.pop(subject, None) is None:
            raise RegistryError(f"Subject '{subject}' not found.", 404, 40401)

    def close(self) -> None:
        """Keep nothing open."""

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalRegistry, (self.by_id, self.subjects)
