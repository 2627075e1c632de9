"""JSON with a schema registry: values are JSON text behind Confluent's frame, checked against a JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft7Validator, validator_for
from referencing import Registry as Resources
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from .context import Context, SerdeError
from .framing import frame, unframe
from .json_bounded import MOST_STEPS, TooMuch, bounded, plain, start
from .options import Options
from .primitive import JSON
from .registry import Registry, Schema
from .rules import Visit
from .typed import Subjects
from .walking import JsonWalk


@lru_cache(maxsize=1000)
def validator(schema: Schema) -> Validator:
    """Make a validator. References are found by name among the registry's; nothing is fetched from anywhere else."""
    if schema.type != "JSON":
        raise SerdeError(f"the schema is {schema.type}, not JSON")
    document = json.loads(schema.text)
    made = bounded(validator_for(document, Draft7Validator))
    return made(plain(document), registry=_references(schema))


def _references(schema: Schema) -> Resources[Any]:
    return Resources().with_resources([(name, _resource(json.loads(text))) for name, text in schema.resolved])


@lru_cache(maxsize=1000)
def _root(schema: Schema) -> tuple[Any, Any]:
    """Return the document of a schema, and what finds the schemas that it refers to."""
    root = _resource(json.loads(schema.text))
    return root.contents, _references(schema).resolver_with_root(root)


def _resource(document: Any) -> Resource[Any]:
    """Return a schema that others refer to, found by the rules of its own dialect and checked by theirs."""
    return DRAFT7.detect(document).create_resource(plain(document))


def walk(schema: Schema, value: Any, visit: Visit) -> Any:
    """Visit the fields of a value, for rules."""
    known = validator(schema)

    def resolve(reference: str, base: Any) -> tuple[Any, Any]:
        try:
            found = base.lookup(reference)
        except Unresolvable as error:
            raise SerdeError(f"the schema refers to {error.ref!r}, which is not among its references") from None
        return found.contents, found.resolver

    def fits(part: Any, base: Any, inner: Any) -> bool:
        start()
        return known.evolve(schema=part, _resolver=base).is_valid(inner)

    return JsonWalk(resolve, fits, visit).walk(*_root(schema), value)


@lru_cache(maxsize=1000)
def title(schema: Schema) -> str | None:
    document = json.loads(schema.text)
    return document.get("title") if isinstance(document, dict) else None


def check(schema: Schema, value: Any) -> None:
    start()
    try:
        validator(schema).validate(value)
    except ValidationError as error:
        raise SerdeError(f"the value does not fit its schema at {error.json_path}: {short(error.message)}") from None
    except Unresolvable as error:
        raise SerdeError(f"the schema refers to {error.ref!r}, which is not among its references") from None
    except RecursionError:
        raise SerdeError("the value, or its schema, nests too deeply") from None
    except TooMuch:
        raise SerdeError(f"the value takes more than {MOST_STEPS:,} steps to check against its schema") from None
    except re.error as error:
        raise SerdeError(f"a pattern of the schema cannot be read: {error}") from None


def short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:120]} ... {message[-70:]}"


@dataclass(slots=True)
class JsonSchema:
    subjects: Subjects

    @classmethod
    def of(
        cls, registry: Registry, schema: Schema | str | None = None, settings: Mapping[str, Any] | None = None
    ) -> JsonSchema:
        own = Schema("JSON", schema) if isinstance(schema, str) else schema
        if own:
            validator(own)
        return cls(Subjects(registry, Options.of(settings or {}), own, title(own) if own else None))

    def to_bytes(self, value: Any, context: Context) -> bytes | None:
        if value is None:
            return None
        written = self.subjects.to_write(context)
        value = self.subjects.before_writing(written.schema, context, value, partial(walk, written.schema))
        if self.subjects.options.validate:
            check(written.schema, value)
        payload = JSON.to_bytes(value, context)
        assert payload is not None
        payload = self.subjects.payload_to_write(written.schema, context, payload)
        return frame(written.ref, payload, context, in_header=self.subjects.options.in_header)

    def from_bytes(self, data: bytes | None, context: Context) -> Any:
        if data is None:
            return None
        ref, payload = unframe(data, context)
        writer = self.subjects.writer(ref, context)
        payload = self.subjects.payload_to_read(writer, context, title(writer), payload)
        value = JSON.from_bytes(payload, context)
        value = self.subjects.after_reading(writer, context, title(writer), value, partial(walk, writer))
        if self.subjects.options.validate:
            check(self.subjects.reader(context, title(writer)) or writer, value)
        return value
