"""The OpenAPI document of a service, made from the rows of its endpoints, and the endpoint that serves it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau import __version__
from moldau.http.documents import Documents, ref
from moldau.http.endpoints import READ, Call, Endpoint

WHERE = "/openapi.json"
STRING = {"type": "string"}


@dataclass(frozen=True, slots=True)
class OpenApi:
    """What the document says besides the rows: `query` has schemas of query parameters, `numbers` are names in paths
    that stand for numbers; all others are strings."""

    title: str
    documents: Documents
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    numbers: Collection[str] = ()

    def documented(self, rows: Sequence[Endpoint]) -> list[Endpoint]:
        """Return the rows, and one more that describes them all."""
        made = self.document(rows)

        def describe(call: Call) -> dict[str, Any]:
            return {**made, "servers": [{"url": call.base}]}

        return [*rows, Endpoint("GET", WHERE, describe, "This document.", "Nothing", kind=READ)]

    def document(self, rows: Sequence[Endpoint]) -> dict[str, Any]:
        paths: dict[str, dict[str, Any]] = {}
        for row in rows:
            paths.setdefault(row.path, {})[row.method.lower()] = self._operation(row)
        return {
            "openapi": "3.1.0",
            "info": {"title": self.title, "version": __version__},
            "paths": paths,
            "components": {"schemas": self.documents.components},
        }

    def _operation(self, row: Endpoint) -> dict[str, Any]:
        made: dict[str, Any] = {"summary": row.doc, "parameters": self._parameters(row), "responses": _responses(row)}
        if row.takes:
            content = {name: {"schema": ref(row.takes)} for name in row.accepts.names}
            made["requestBody"] = {"required": row.body_needed, "content": content}
        return made

    def _parameters(self, row: Endpoint) -> list[dict[str, Any]]:
        in_path = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "integer"} if number else STRING}
            for name in re.findall(r"{(\w+)}", row.path)
            for number in [name in self.numbers]
        ]
        return in_path + [{"name": name, "in": "query", "schema": self.query.get(name, STRING)} for name in row.query]


def _responses(row: Endpoint) -> dict[str, Any]:
    good: dict[str, Any] = {"description": row.doc}
    if row.gives:
        good["content"] = {name: {"schema": ref(row.gives)} for name in row.produces.names}
    refused = {"description": "A refusal.", "content": {"application/json": {"schema": ref("Error")}}}
    return {**{str(status): good for status in (row.status, *row.answers)}, "4XX": refused, "5XX": refused}
