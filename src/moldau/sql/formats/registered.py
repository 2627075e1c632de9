"""What the formats with a registry share: where rows are written, and whose schema they are written with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.serdes.context import Context, SerdeError
from moldau.serdes.options import Options
from moldau.serdes.registry import Schema
from moldau.serdes.typed import Subjects


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows are written: which topic, as key or value, under which name, with which registry."""

    topic: str = ""
    key: bool = False
    name: str = ""
    registry: Any = None

    @property
    def context(self) -> Context:
        return Context(self.topic, "key" if self.key else "value")

    def subjects(self, own: Schema, schema_id: str | None) -> Subjects:
        """Write with the schema of the columns, or with the one that has an id."""
        if self.registry is None:
            raise SerdeError(f"The format {own.type} needs a schema registry: set ksql.schema.registry.url")
        settings = {"use.schema.id": int(schema_id), "auto.register.schemas": False} if schema_id else {}
        return Subjects(self.registry, Options.of(settings), own)
