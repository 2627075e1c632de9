"""The names that a server knows: sources with their columns, functions, settings, topics and queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.sql.functions.registry import REGISTRY
from moldau.sql.functions.signatures import parameter_text
from moldau.sql.lexer import RESERVED
from moldau.sql.shell.entities import signature, type_text
from moldau.sql.shell.remote import RemoteError, Scope, Server

REQUESTS = (
    "SHOW STREAMS EXTENDED;",
    "SHOW TABLES EXTENDED;",
    "SHOW FUNCTIONS;",
    "SHOW TOPICS;",
    "SHOW QUERIES;",
    "SHOW PROPERTIES;",
)
PSEUDO = {"ROWTIME": "BIGINT", "ROWPARTITION": "INTEGER", "ROWOFFSET": "BIGINT"}
WINDOW = {"WINDOWSTART": "BIGINT", "WINDOWEND": "BIGINT"}
# Settings of statements that servers do not list as long as they have no value.
SETTINGS = (
    "auto.offset.reset",
    "cache.max.bytes.buffering",
    "commit.interval.ms",
    "ksql.query.pull.table.scan.enabled",
    "ksql.query.push.v2.enabled",
)
_PLAIN = re.compile(r"[A-Z_][A-Z0-9_@]*")


@dataclass(frozen=True, slots=True)
class KnownSource:
    """A stream or a table with the types of its columns."""

    kind: str
    columns: Mapping[str, str]


@dataclass(slots=True)
class Names:
    """What can be named."""

    sources: dict[str, KnownSource] = field(default_factory=dict)
    functions: dict[str, list[str]] = field(default_factory=dict)  # with their signatures
    settings: list[str] = field(default_factory=lambda: list(SETTINGS))
    topics: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)


def load(server: Server) -> Names:
    """Ask a server. A request that it refuses leaves its names out."""
    names = Names()
    for request in REQUESTS:
        try:
            for entity in server.execute(request, Scope()):
                _take(names, entity)
        except RemoteError as error:
            if not error.code:
                raise
    return names


def _take(names: Names, entity: Mapping[str, Any]) -> None:
    match entity.get("@type"):
        case "source_descriptions":
            for one in entity["sourceDescriptions"]:
                columns = {each["name"]: type_text(each["schema"]) for each in one["fields"]}
                windowed = WINDOW if one.get("windowType") else {}
                names.sources[one["name"]] = KnownSource(one["type"], {**columns, **windowed})
        case "function_names":
            names.functions = {one["name"]: known_signatures(one["name"]) for one in entity["functions"]}
        case "kafka_topics":
            names.topics = [one["name"] for one in entity["topics"]]
        case "queries":
            names.queries = [one["id"] for one in entity["queries"]]
        case "properties":
            names.settings = sorted({*SETTINGS, *(one["name"] for one in entity["properties"])})


def known_signatures(name: str) -> list[str]:
    """Return the signatures of a function that Moldau has, too."""
    rows = REGISTRY.rows.get(name.upper(), [])
    return [f"{row.signature} -> {parameter_text(row.signature.result)}" for row in rows]


def described_signatures(server: Server, name: str) -> list[str]:
    """Ask the server for the signatures of a function that only it knows."""
    try:
        described = server.execute(f"DESCRIBE FUNCTION {name};")[0]
    except RemoteError:
        return []
    return [f"{signature(name, one)} -> {one['returnType']}" for one in described.get("functions", ())]


def quoted_if_needed(name: str) -> str:
    """Write a name as a statement needs it."""
    return name if _PLAIN.fullmatch(name) and name not in RESERVED else f"`{name}`"
