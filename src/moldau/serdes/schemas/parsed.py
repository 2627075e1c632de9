"""What a parsed schema is, whatever its type, and how big one may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import maxsize
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, str] = MappingProxyType({})


class SchemaError(ValueError):
    """A schema that cannot be used: one sentence says what is wrong and where."""


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """Another schema that this one uses: the name by which it does, and the subject and version where it stands."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds against schemas made to hurt: each is checked before work that grows with it is done."""

    size: int = 1_000_000  # characters, also of all referenced schemas together
    depth: int = 200  # nested brackets
    references: int = 1_000


DEFAULT_LIMITS = Limits()
UNLIMITED = Limits(maxsize, maxsize, maxsize)  # for what has been parsed within its limits before


@dataclass(frozen=True, slots=True)
class Entity:
    """Something in a schema that can have tags: its path, and whether it is a record or a field."""

    path: str
    type: str  # sr_record or sr_field


@dataclass(frozen=True, slots=True)
class Parsed:
    """One schema, understood.

    `text` is the canonical string, as a registry stores and returns it. `name` is the full name of the record or of
    the first message, the title of a JSON Schema, or None. `raw` is what the type's own functions work on: an `avro`
    node, a JSON document, or a Protobuf file. `version` and `reserved` (the metadata property confluent:reserved) are
    the registry's to set with `dataclasses.replace`; only compatibility looks at them.
    """

    type: str
    text: str
    references: tuple[Reference, ...] = ()
    name: str | None = None
    raw: Any = field(default=None, compare=False, repr=False)
    resolved: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    version: int | None = None
    reserved: frozenset[str] = frozenset()


def check_size(text: str, resolved: Mapping[str, str], limits: Limits) -> None:
    total = len(text) + sum(map(len, resolved.values()))
    if total > limits.size:
        raise SchemaError(f"the schema and its references have {total} characters, at most {limits.size} are allowed")
    if len(resolved) > limits.references:
        raise SchemaError(f"{len(resolved)} schemas are referenced, at most {limits.references} are allowed")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"the schema is not valid Unicode at character {error.start}") from None
