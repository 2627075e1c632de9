"""The schema registry as serdes see it: schemas by id and GUID, the latest of a subject, registration, references.

HTTP, retries, authentication and caches are those of confluent-kafka's client. What it raises becomes RegistryError,
which says whether the registry refused or was not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .context import SerdeError
from .framing import SchemaRef
from .rules import NO_RULES, Rules, rules_of
from .schemas import Reference

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

MAX_REFERENCES = 1000
MAX_SCHEMAS = 10_000  # that are kept
PREFIX = "schema.registry."
DEFAULTS = {"timeout": 10, "max.retries": 2, "retries.wait.ms": 100, "retries.max.wait.ms": 1000}


class RegistryError(SerdeError):
    """The registry did not do what was asked. `status` is 0 when it could not be reached; `code` is Confluent's."""

    def __init__(self, message: str, status: int = 0, code: int = 0) -> None:
        super().__init__(message)
        self.status, self.code = status, code

    @property
    def retriable(self) -> bool:
        return self.status == 0 or self.status >= 500 or self.status == 429


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema's text with the texts of all that it references, those that others need first."""

    type: str
    text: str
    references: tuple[Reference, ...] = ()
    resolved: tuple[tuple[str, str], ...] = ()  # reference name, text
    rules: Rules = NO_RULES


@dataclass(frozen=True, slots=True)
class Registered:
    ref: SchemaRef
    schema: Schema


@dataclass(slots=True)
class Registry:
    client: SchemaRegistryClient
    schemas: dict[tuple[SchemaRef, str | None], Schema] = field(default_factory=dict)

    @classmethod
    def connect(cls, settings: Mapping[str, Any]) -> Registry:
        """Connect by `schema.registry.url` and the settings of confluent-kafka's client, with or without that
        prefix."""
        from confluent_kafka.schema_registry import SchemaRegistryClient

        given = {name.removeprefix(PREFIX): value for name, value in settings.items()}
        if "url" not in given:
            raise ValueError("schema.registry.url is needed, for example http://localhost:8081")
        return cls(SchemaRegistryClient.new_client({**DEFAULTS, **given}))

    def schema(self, ref: SchemaRef, subject: str | None = None, format: str | None = None) -> Schema:
        """Return the schema of an id or GUID. It never changes, so it is asked for once."""
        key = (SchemaRef(ref.id, ref.guid), format)
        if key not in self.schemas:
            if ref.guid is not None:
                found = self.ask(self.client.get_schema_by_guid, str(ref.guid), format)
            else:
                found = self.ask(self.client.get_schema, ref.id, subject, format)
            if len(self.schemas) >= MAX_SCHEMAS:
                self.schemas.pop(next(iter(self.schemas)))  # the oldest
            self.schemas[key] = self.completed(found, format)
        return self.schemas[key]

    def latest(self, subject: str, format: str | None = None) -> Registered:
        return self.registered(self.ask(self.client.get_latest_version, subject, format), format)

    def latest_with(self, subject: str, metadata: Mapping[str, str], format: str | None = None) -> Registered:
        answer = self.ask(self.client.get_latest_with_metadata, subject, dict(metadata), True, format)
        return self.registered(answer, format)

    def register(self, subject: str, schema: Schema, normalize: bool) -> SchemaRef:
        answer = self.ask(self.client.register_schema_full_response, subject, outgoing(schema), normalize)
        return ref_of(answer)

    def version(self, subject: str, schema: Schema, normalize: bool) -> int:
        return self.ask(self.client.lookup_schema, subject, outgoing(schema), normalize).version

    def lookup(self, subject: str, schema: Schema, normalize: bool, deleted: bool = False) -> SchemaRef:
        answer = self.ask(self.client.lookup_schema, subject, outgoing(schema), normalize, None, deleted)
        return ref_of(answer)

    def delete(self, subject: str) -> None:
        """Delete a subject so that it can be brought back."""
        self.ask(self.client.delete_subject, subject)

    def close(self) -> None:
        self.client.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the settings to another process, such as a worker of Spark: a client cannot be sent."""
        return reconnected, (tuple(self.client.config().items()),)

    def registered(self, answer: Any, format: str | None) -> Registered:
        return Registered(ref_of(answer), self.completed(answer.schema, format))

    def completed(self, schema: Any, format: str | None) -> Schema:
        resolved: dict[str, str] = {}
        self.follow(schema, format, resolved, set())
        references = tuple(Reference(r.name, r.subject, r.version) for r in schema.references or ())
        kind, rules = schema.schema_type or "AVRO", rules_of(schema)
        return Schema(kind, schema.schema_str, references, tuple(resolved.items()), rules)

    def follow(self, schema: Any, format: str | None, resolved: dict[str, str], seen: set[str]) -> None:
        for reference in schema.references or ():
            if reference.name in seen:
                continue
            seen.add(reference.name)
            if len(seen) > MAX_REFERENCES:
                raise SerdeError(f"the schema has more than {MAX_REFERENCES} references")
            found = self.ask(self.client.get_version, reference.subject, reference.version, True, format).schema
            self.follow(found, format, resolved, seen)
            resolved[reference.name] = found.schema_str

    def ask(self, call: Callable[..., Any], *given: Any) -> Any:
        from confluent_kafka.schema_registry import SchemaRegistryError
        from confluent_kafka.schema_registry.error import OAuthTokenError

        try:
            return call(*given)
        except SchemaRegistryError as error:
            problem = f"the schema registry refused: {error.error_message}"
            raise RegistryError(problem, error.http_status_code, error.error_code) from None
        except OAuthTokenError as error:
            raise RegistryError(f"no token for the schema registry: {error}", 401) from None
        except Exception as error:
            if not type(error).__module__.startswith("httpx"):  # the client may run on httpx or on its successor
                raise
            where = self.client.config().get("url")
            raise RegistryError(f"the schema registry {where} cannot be reached: {error}") from None


@cache
def reconnected(settings: tuple[tuple[str, Any], ...]) -> Registry:
    """Keep one client for each process, with the schemas that it knows, however many serdes arrive there."""
    return Registry.connect(dict(settings))


def ref_of(answer: Any) -> SchemaRef:
    return SchemaRef(answer.schema_id, UUID(answer.guid) if answer.guid else None)


def outgoing(schema: Schema) -> Any:
    from confluent_kafka.schema_registry import Schema as Outgoing
    from confluent_kafka.schema_registry import SchemaReference

    references = [SchemaReference(r.name, r.subject, r.version) for r in schema.references]
    return Outgoing(schema.text, schema.type, references)
