"""The part of a serde with a schema that does not depend on its format: which schema, under which subject.

A writer's schema is its own, registered or looked up once a subject; or the registry's, if the options say so. A
reader's schema is its own, the latest of the subject, or simply that of the writer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .context import Context, SerdeError
from .framing import SchemaRef
from .options import Options, by_topic
from .registry import Registered, Registry, Schema
from .rules import READ, WRITE, Executor, Visit, run_on_fields, run_on_payload

LATEST_SECONDS = 60  # how long "the latest version" is believed


@dataclass(slots=True)
class Subjects:
    """The schemas of subjects, as one serde uses them. May be used by several threads."""

    registry: Registry
    options: Options
    own: Schema | None = None  # the schema that the user gave
    name: str | None = None  # its record's name
    format: str | None = None  # in which the registry shall give texts
    clock: Callable[[], float] = time.monotonic
    known: dict[str, SchemaRef] = field(default_factory=dict)
    latest: dict[str, tuple[float, Registered]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    encryption: Executor | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out lock and cache, which belong to this process."""
        return Subjects, (self.registry, self.options, self.own, self.name, self.format)

    def to_write(self, context: Context) -> Registered:
        subject = self.options.subject_of(context, self.name)
        if self.options.takes_from_registry:
            return self.from_registry(subject)
        if self.own is None:
            raise SerdeError("there is no schema to write with: give one, or set use.latest.version or use.schema.id")
        return Registered(self.known.get(subject) or self.settle(subject, self.own), self.own)

    def executor(self) -> Executor:
        """Return what runs rules; its module is imported only where a schema has some."""
        if self.encryption is None:
            from .encryption.fields import encryption

            self.encryption = encryption(self.registry, self.options.rule_params)
        return self.encryption

    def before_writing(self, schema: Schema, context: Context, value: Any, walk: Callable[[Any, Visit], Any]) -> Any:
        """Return a value as it is written: after the rules of its schema."""
        return self._ruled(WRITE, schema, context, self.name, value, walk)

    def after_reading(
        self, writer: Schema, context: Context, name: str | None, value: Any, walk: Callable[[Any, Visit], Any]
    ) -> Any:
        """Return a value as its reader wants it: after the rules of the latest schema, or of the writer's."""
        latest = self.options.use_latest or self.options.metadata is not None
        schema = self.reader(context, name) if latest else writer
        return self._ruled(READ, schema or writer, context, name, value, walk)

    def _ruled(
        self,
        mode: str,
        schema: Schema,
        context: Context,
        name: str | None,
        value: Any,
        walk: Callable[[Any, Visit], Any],
    ) -> Any:
        if not schema.rules.domain:
            return value
        return run_on_fields(schema.rules, mode, self.options.subject_of(context, name), self.executor, value, walk)

    def payload_to_write(self, schema: Schema, context: Context, payload: bytes) -> bytes:
        if not schema.rules.encoding:
            return payload
        return run_on_payload(schema.rules, WRITE, self.options.subject_of(context, self.name), self.executor, payload)

    def payload_to_read(self, writer: Schema, context: Context, name: str | None, payload: bytes) -> bytes:
        if not writer.rules.encoding:
            return payload
        return run_on_payload(writer.rules, READ, self.options.subject_of(context, name), self.executor, payload)

    def settle(self, subject: str, schema: Schema) -> SchemaRef:
        with self.lock:
            if subject not in self.known:
                ask = self.registry.register if self.options.auto_register else self.registry.lookup
                self.known[subject] = ask(subject, schema, self.options.normalize)
            return self.known[subject]

    def settle_reference(self, subject: str, schema: Schema) -> int:
        self.settle(subject, schema)
        return self.registry.version(subject, schema, self.options.normalize)

    def from_registry(self, subject: str) -> Registered:
        with self.lock:
            fresh, found = self.latest.get(subject, (0.0, None))
            if found is None or fresh <= self.clock():
                found = self.chosen(subject)
                self.latest[subject] = (self.clock() + LATEST_SECONDS, found)
            return found

    def chosen(self, subject: str) -> Registered:
        if self.options.schema_id is not None:
            ref = SchemaRef(self.options.schema_id)
            schema = self.registry.schema(ref, subject, self.format)
            if self.options.in_header:
                ref = self.registry.lookup(subject, schema, False, deleted=True)
            return Registered(ref, schema)
        if self.options.metadata is not None:
            return self.registry.latest_with(subject, self.options.metadata, self.format)
        return self.registry.latest(subject, self.format)

    def writer(self, ref: SchemaRef, context: Context) -> Schema:
        """Return the schema that bytes were written with."""
        subject = self.options.subject_of(context, None) if self.options.subject_of is by_topic else None
        return self.registry.schema(ref, subject, self.format)

    def reader(self, context: Context, name: str | None) -> Schema | None:
        """Return the schema that values are wanted in; None for that of the writer, whose record's name is given."""
        if self.options.use_latest or self.options.metadata is not None:
            return self.from_registry(self.options.subject_of(context, name)).schema
        return self.own
