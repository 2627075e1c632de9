"""The OpenAPI document, made from the rows of the endpoints, and the endpoint that serves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from moldau import __version__
from moldau.rest.endpoints import NUMBERS, Call, Endpoint
from moldau.rest.schemas import OPERATION, PATTERN, PERMISSION, RESOURCE, components, ref

WHERE = "/openapi.json"
QUERY: dict[str, dict[str, Any]] = {
    "timeout": {"type": "integer", "minimum": -1, "maximum": 2**31 - 1},
    "max_bytes": {"type": "integer", "minimum": -1, "maximum": 2**31 - 1},
    "async": {"type": "boolean"},
    "include_authorized_operations": {"type": "boolean"},
    "offset_type": {"type": "string", "enum": ["earliest", "latest"]},
    "resource_type": {"type": "string", "enum": RESOURCE[1:-1].split(",")},
    "pattern_type": {"type": "string", "enum": PATTERN[1:-1].split(",")},
    "operation": {"type": "string", "enum": OPERATION[1:-1].split(",")},
    "permission": {"type": "string", "enum": PERMISSION[1:-1].split(",")},
}
STRING = {"type": "string"}


def documented(rows: Sequence[Endpoint]) -> list[Endpoint]:
    """The rows, and one more that describes them all."""
    made = document(rows)

    def describe(call: Call) -> dict[str, Any]:
        return {**made, "servers": [{"url": call.base}]}

    return [*rows, Endpoint("GET", WHERE, describe, "This document.", "Nothing")]


def document(rows: Sequence[Endpoint]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = _operation(row)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Moldau REST Proxy", "version": __version__},
        "paths": paths,
        "components": {"schemas": components()},
    }


def _operation(row: Endpoint) -> dict[str, Any]:
    made: dict[str, Any] = {"summary": row.doc, "parameters": _parameters(row), "responses": _responses(row)}
    if row.takes:
        content = {name: {"schema": ref(row.takes)} for name in row.accepts.names}
        made["requestBody"] = {"required": row.body_needed, "content": content}
    return made


def _parameters(row: Endpoint) -> list[dict[str, Any]]:
    inside = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer"} if name in NUMBERS else STRING}
        for name in re.findall(r"{(\w+)}", row.path)
    ]
    behind = [{"name": name, "in": "query", "schema": QUERY.get(name, STRING)} for name in row.query]
    return inside + behind


def _responses(row: Endpoint) -> dict[str, Any]:
    good: dict[str, Any] = {"description": row.doc}
    if row.gives:
        good["content"] = {name: {"schema": ref(row.gives)} for name in row.produces.names}
    refused = {"description": "A refusal.", "content": {"application/json": {"schema": ref("Error")}}}
    return {**{str(status): good for status in (row.status, *row.answers)}, "4XX": refused, "5XX": refused}
