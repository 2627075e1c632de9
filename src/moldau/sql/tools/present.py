"""The catalogue of a server, made anew here from what it says over HTTP: its statements, executed on an empty engine.

Nothing of it is sent back. It works for servers of ksqlDB, too, as far as their statements are known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from moldau.sql.catalogue import Columns, Format, Topic
from moldau.sql.engine import Engine
from moldau.sql.errors import SqlError
from moldau.sql.parser import parse
from moldau.sql.shell.remote import Server
from moldau.sql.tree import ArrayType, CreateAs, DecimalType, Field, InsertInto, MapType, Primitive, StructType, Type
from moldau.sql.upgrades import RUNTIME

Described = Mapping[str, Any]
_NUMBER = re.compile(r"_(\d+)$")


class NotKnown(Exception):
    """A catalogue that cannot be made anew: the text says which source is in the way."""


def present(server: Server) -> Engine:
    """Return an engine with the sources, types and queries of a server."""
    entities = server.execute("SHOW TYPES; SHOW STREAMS EXTENDED; SHOW TABLES EXTENDED; SHOW QUERIES EXTENDED;")
    types = {name: type_of(one) for each in entities for name, one in each.get("types", {}).items()}
    sources = [one for each in entities for one in each.get("sourceDescriptions", ())]
    described = [one for each in entities for one in each.get("queryDescriptions", ())]
    queries = {one["id"]: one["statementText"] for one in described}
    engine = Engine(infer=_inferring(sources))
    engine.catalogue.types.update(types)
    for one in sources:
        engine.catalogue.topics[one["topic"]] = Topic(one.get("partitions") or 1, one.get("replication") or 1)
    _execute_all(engine, sources)
    _insert_queries(engine, queries)
    for query_id in [known for known in engine.queries if known not in queries]:
        engine.execute(parse(f"TERMINATE {query_id};")[0])
    for one in described:
        if one["id"] in engine.queries:
            settings = dict(one.get("overriddenProperties") or {})
            if one.get("runtime"):
                settings[RUNTIME] = one["runtime"]
            engine.queries[one["id"]] = replace(engine.queries[one["id"]], settings=settings)
    return engine


def _execute_all(engine: Engine, sources: list[Described]) -> None:
    """Execute the statements of sources, those first that others read."""
    left = list(sources)
    refusals: dict[str, str] = {}
    while left:
        waiting = []
        for one in left:
            try:
                _execute(engine, one)
            except SqlError as error:
                refusals[one["name"]] = str(error)
                waiting.append(one)
        if len(waiting) == len(left):
            name = left[0]["name"]
            raise NotKnown(f"The statement of {name} cannot be executed here: {refusals[name]}")
        left = waiting


def _execute(engine: Engine, described: Described) -> None:
    for statement in parse(described["statement"]):
        if isinstance(statement, CreateAs):
            own = f"{'CSAS' if statement.kind == 'STREAM' else 'CTAS'}_{statement.name}_"
            ids = [one["id"] for one in described.get("writeQueries", ()) if one["id"].startswith(own)]
            engine.count = max(map(number_of, ids), default=engine.count)
        engine.execute(statement)


def _insert_queries(engine: Engine, queries: Mapping[str, str]) -> None:
    for query_id, text in queries.items():
        if query_id in engine.queries or not text:
            continue
        for statement in parse(text if text.rstrip().endswith(";") else f"{text};"):
            if isinstance(statement, InsertInto):
                engine.count = number_of(query_id)
                engine.execute(statement)


def number_of(query_id: str) -> int:
    """Return the number at the end of the id of a query."""
    found = _NUMBER.search(query_id)
    return int(found.group(1)) if found else 0


def _inferring(sources: list[Described]) -> Any:
    """Return what stands for the registry: columns are those that the server has found there."""
    columns = {(one["topic"], key): tuple(_columns(one, key)) for one in sources for key in (True, False)}

    def infer(topic: str, key: bool, format_: Format, alone: bool) -> Columns | None:
        return columns.get((topic, key)) or None

    return infer


def _columns(described: Described, key: bool) -> Iterator[tuple[str, Type]]:
    for one in described["fields"]:
        if (one.get("type") == "KEY") is key and one.get("type") in (None, "KEY"):
            yield one["name"], type_of(one["schema"])


def type_of(schema: Described) -> Type:
    """Read a type from the form of answers."""
    match schema["type"]:
        case "ARRAY":
            return ArrayType(type_of(schema["memberSchema"]))
        case "MAP":
            return MapType(Primitive("STRING"), type_of(schema["memberSchema"]))
        case "STRUCT":
            return StructType(tuple(Field(one["name"], type_of(one["schema"])) for one in schema["fields"]))
        case "DECIMAL":
            given = schema.get("parameters") or {}
            return DecimalType(int(given.get("precision", 38)), int(given.get("scale", 10)))
        case name:
            return Primitive(name)
