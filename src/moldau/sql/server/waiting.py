"""Statements that ask somebody else, and may wait for an answer: ASSERT, and those about connectors.

The service answers them without its lock, so that queries and other requests go on meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.sql.server import assertions, connectors, entities
from moldau.sql.tree import AssertSchema, AssertTopic, Statement

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service


def is_waiting(statement: Statement) -> bool:
    return isinstance(statement, AssertTopic | AssertSchema) or connectors.is_about_connectors(statement)


def answer(service: Service, statement: Statement, request: Request) -> dict[str, Any]:
    settings = {**service.settings, **request.properties}
    if isinstance(statement, AssertTopic | AssertSchema):
        kind = "assert_topic" if isinstance(statement, AssertTopic) else "assert_schema"
        fields = assertions.check(statement, service.topics, service.registry, settings)
        return entities.entity(kind, statement.text, **fields)
    kind, fields = connectors.answer(statement, service.settings)
    if kind == "connector_description":
        with service.lock:
            known = [source for source in service.engine.catalogue.sources.values() if source.topic in fields["topics"]]
            fields["sources"] = [entities.description(service, source, False) for source in known]
    return entities.entity(kind, statement.text, **fields)
