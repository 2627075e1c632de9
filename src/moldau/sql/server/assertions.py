"""ASSERT TOPIC and ASSERT SCHEMA: wait until something is there, or gone; otherwise refuse with code 41700."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from moldau.serdes.framing import SchemaRef
from moldau.serdes.registry import RegistryError
from moldau.sql.errors import SqlError
from moldau.sql.server.errors import ASSERTION_FAILED, ServerError
from moldau.sql.server.topics import Topics
from moldau.sql.tree import AssertSchema, AssertTopic, Span

TIMEOUTS = {AssertTopic: "ksql.assert.topic.default.timeout.ms", AssertSchema: "ksql.assert.schema.default.timeout.ms"}
DEFAULT_MS = 1_000
PAUSE_S = 0.05
UNITS_S = {"MILLISECONDS": 0.001, "SECONDS": 1, "MINUTES": 60, "HOURS": 3_600, "DAYS": 86_400}
MOST_S = 3_600.0  # an assertion holds a thread, so it may not wait for days


def check(
    statement: AssertTopic | AssertSchema, topics: Topics, registry: Any, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of the answer once the assertion holds."""
    if isinstance(statement, AssertTopic):
        topic = statement
        _wait(statement.timeout, statement, settings, lambda: _topic_fault(topic, topics))
        return {"topicName": statement.name, "exists": statement.exists}
    if registry is None:
        raise SqlError("ASSERT SCHEMA needs a schema registry. Set 'ksql.schema.registry.url' to its address.")
    if statement.subject is None and statement.schema_id is None:
        raise SqlError("ASSERT SCHEMA statements must include a subject name or an id")
    schema = statement
    _wait(statement.timeout, statement, settings, lambda: _schema_fault(schema, registry))
    return {"subject": statement.subject, "id": statement.schema_id, "exists": statement.exists}


def _wait(
    span: Span | None, statement: AssertTopic | AssertSchema, settings: Mapping[str, Any], fault: Callable[[], str]
) -> None:
    limit_s = int(settings.get(TIMEOUTS[type(statement)], DEFAULT_MS)) / 1000
    if span is not None:
        if span.unit not in UNITS_S:
            raise SqlError(f"A timeout is given in {', '.join(UNITS_S)}, not in {span.unit}.")
        limit_s = span.count * UNITS_S[span.unit]
    deadline = time.monotonic() + min(limit_s, MOST_S)
    while found := fault():
        if time.monotonic() >= deadline:
            raise ServerError(ASSERTION_FAILED, found)
        time.sleep(PAUSE_S)


def _topic_fault(statement: AssertTopic, topics: Topics) -> str:
    """Say what is not as asserted; empty if all is."""
    count = topics.partitions(statement.name)
    if not statement.exists:
        return f"Topic {statement.name} exists" if count else ""
    if not count:
        return f"Topic {statement.name} does not exist"
    actual = {"PARTITIONS": count, "REPLICAS": topics.replicas(statement.name)}
    faults = []
    for name, wanted in statement.properties:
        if name not in actual:
            faults.append(f"Cannot assert topic property {name}: the properties are {', '.join(actual)}")
        elif int(wanted) != actual[name]:
            faults.append(
                f"Mismatched configuration for topic {statement.name}: For config {name.lower()}, "
                f"expected {wanted} got {actual[name]}"
            )
    return "\n".join(faults)


def _schema_fault(statement: AssertSchema, registry: Any) -> str:
    named = [
        text
        for text in (
            statement.subject is not None and f"subject name {statement.subject}",
            statement.schema_id is not None and f"id {statement.schema_id}",
        )
        if text
    ]
    is_there = _is_registered(statement, registry)
    if is_there == statement.exists:
        return ""
    return f"Schema with {' and '.join(named)} {'does not exist' if statement.exists else 'exists'}"


def _is_registered(statement: AssertSchema, registry: Any) -> bool:
    try:
        if statement.schema_id is None:
            registry.latest(statement.subject)
            return True
        schema = registry.schema(SchemaRef(statement.schema_id), statement.subject)
        if statement.subject is not None:
            registry.lookup(statement.subject, schema, False)
        return True
    except RegistryError as error:
        if error.status != 404:
            raise SqlError(f"The schema registry does not answer: {error}") from None
        return False
