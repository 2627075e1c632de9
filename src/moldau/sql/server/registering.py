"""Schemas in the registry: those of a source are there when it has been created, and go with its topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moldau.serdes.context import SerdeError
from moldau.serdes.registry import RegistryError

from .. import formats
from ..catalogue import Format, Source
from ..errors import SqlError
from ..format_rules import rule
from ..types import Columns

NOT_FOUND = 404


def register(source: Source, registry: Any, again: bool) -> None:
    """Register the schemas of a new source; SqlError if the registry does not take them. Without `again`, a subject
    that has schemas keeps them.
    """
    for key, format_, columns, subject in _sides(source):
        if not columns or format_.property("schemaId"):
            continue
        if registry is None:
            raise SqlError(
                f"Cannot create topic '{source.topic}' with format {format_.name} without configuring "
                "'ksql.schema.registry.url'"
            )
        try:
            if again or not _is_known(subject, registry):
                formats.register(format_, columns, key=key, topic=source.topic, name=source.name, registry=registry)
        except SerdeError as error:
            raise SqlError(f"Could not register schema for topic: {error}") from None


def forget(source: Source, registry: Any) -> None:
    """Delete the subjects of a topic that was deleted."""
    for _, _, _, subject in _sides(source):
        if registry is None:
            return
        try:
            registry.delete(subject)
        except RegistryError as error:
            if error.status != NOT_FOUND:
                raise SqlError(f"Could not clean up the schema registry for topic: {source.topic}. {error}") from None


def _sides(source: Source) -> Iterator[tuple[bool, Format, Columns, str]]:
    """Give what has schemas: whether it is the key, its format, columns and subject."""
    sides = (True, source.key_format, source.schema.key), (False, source.value_format, source.stored_value)
    for key, format_, columns in sides:
        if rule(format_.name).infers:
            yield key, format_, columns, f"{source.topic}-{'key' if key else 'value'}"


def _is_known(subject: str, registry: Any) -> bool:
    try:
        registry.latest(subject)
    except RegistryError as error:
        if error.status != NOT_FOUND:
            raise
        return False
    return True
