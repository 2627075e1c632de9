"""Answers to statements that change nothing: SHOW and DESCRIBE."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from moldau.settings import SQL, rows
from moldau.sql import functions
from moldau.sql.catalogue import Source
from moldau.sql.errors import SqlError
from moldau.sql.functions.categories import category
from moldau.sql.functions.registry import REGISTRY, Row
from moldau.sql.functions.signatures import parameter_text
from moldau.sql.server.entities import Entity, brief, description, entity, listed, schema, warned
from moldau.sql.server.explaining import explain, query_description
from moldau.sql.server.planning import SECRET, without_password
from moldau.sql.server.property_names import KSQL, STREAMS
from moldau.sql.tree import Describe, Explain, Show, Statement

if TYPE_CHECKING:
    from moldau.sql.server.service import Request, Service

# What SHOW TOPICS leaves out, and SHOW ALL TOPICS does not: the topics of services.
HIDDEN = re.compile(
    r"_confluent.*|__confluent.*|_schemas|__consumer_offsets|__transaction_state|__share_group_state"
    r"|connect-(configs|offsets|status|statuses)"
)
# The settings of a server that a request may override; those of Kafka Streams and its clients may be overridden, too.
OF_QUERIES = frozenset({"ksql.dialect", "ksql.runtime", "ksql.runtime.shared"})
CONCEALED = "[hidden]"
# Words of types as ksqlDB writes them where it describes a function.
WORDS = {"INTEGER": "INT", "STRING": "VARCHAR"}
_WORD = re.compile("|".join(WORDS))
LOCAL = (
    "Queries with ksql.runtime=local run in the process of a server. After a restart they read their topics anew, and "
    "results of the last second may be written twice."
)
NO_WORKER = "No worker runs the query: `moldau worker` starts one, and SET 'ksql.runtime'='local' needs none."


def answer(service: Service, statement: Statement, request: Request) -> Entity:
    """Answer a statement that changes nothing."""
    match statement:
        case Show():
            return SHOWN[statement.what](service, statement, request)
        case Describe():
            return _describe(service, statement)
        case Explain():
            return explain(service, statement, request)
        case _:
            raise SqlError(f"The server does not execute this kind of statement yet: {type(statement).__name__}.")


def _sources(kind: str, tag: str) -> Callable[[Service, Show, Request], Entity]:
    def show(service: Service, statement: Show, request: Request) -> Entity:
        if statement.extended:
            return _described(service, statement, kind)
        return entity(tag, statement.text, **{tag: [listed(source) for source in _of_kind(service, kind)]})

    return show


def _of_kind(service: Service, kind: str) -> list[Source]:
    return [source for _, source in sorted(service.engine.catalogue.sources.items()) if source.kind == kind]


def _described(service: Service, statement: Show | Describe, kind: str) -> Entity:
    described = [description(service, source, statement.extended) for source in _of_kind(service, kind)]
    return entity("source_descriptions", statement.text, sourceDescriptions=described)


def _topics(service: Service, statement: Show, request: Request) -> Entity:
    names = service.topics.names()
    if statement.scope != "ALL":
        names = [name for name in names if not HIDDEN.fullmatch(name)]
    readers = service.topics.readers() if statement.extended else {}
    found = []
    for name in names:
        row: Entity = {"name": name, "replicaInfo": [service.topics.replicas(name)] * service.topics.partitions(name)}
        if statement.extended:
            of_topic = readers.get(name, {})
            row |= {"consumerCount": sum(of_topic.values()), "consumerGroupCount": len(of_topic)}
        found.append(row)
    kind = "kafka_topics_extended" if statement.extended else "kafka_topics"
    return entity(kind, statement.text, topics=found)


def _queries(service: Service, statement: Show, request: Request) -> Entity:
    plans = list(service.engine.queries.values())
    if statement.extended:
        described = [query_description(service, plan) for plan in plans]
        return entity("query_descriptions", statement.text, queryDescriptions=described)
    found = [brief(service, plan) for plan in plans]
    for query_id, results in list(service.pushes.items()):
        running = {"statusCount": {"RUNNING": 1}, "queryType": "PUSH", "state": "RUNNING:1"}
        found.append({"queryString": results.text, "sinks": [], "sinkKafkaTopics": [], "id": query_id, **running})
    shown = entity("queries", statement.text, queries=found)
    warnings = [LOCAL] if any(plan.run.runtime == "local" for plan in plans) else []
    warnings += [NO_WORKER] if any("UNRESPONSIVE" in row["statusCount"] for row in found) else []
    return warned(shown, warnings)


def _functions(service: Service, statement: Show, request: Request) -> Entity:
    found = [
        {"name": name, "type": str(functions.kind(name)).upper(), "category": category(name)}
        for name in sorted(REGISTRY.rows)
    ]
    return entity("function_names", statement.text, functions=found)


def _types(service: Service, statement: Show, request: Request) -> Entity:
    types = service.engine.catalogue.types
    return entity("type_list", statement.text, types={name: schema(kind) for name, kind in sorted(types.items())})


def _variables(service: Service, statement: Show, request: Request) -> Entity:
    found = [{"name": name, "value": value} for name, value in sorted(request.variables.items())]
    return entity("variables", statement.text, variables=found)


def _properties(service: Service, statement: Show, request: Request) -> Entity:
    defaults = {name: row.default or "" for name, row in rows(SQL).items() if name.startswith(KSQL)}
    given = {_full(name): value for name, value in service.settings.items()}
    overridden = {_full(name): value for name, value in request.properties.items()}
    effective = {name: _value(name, value) for name, value in {**defaults, **given, **overridden}.items()}
    return entity(
        "properties",
        statement.text,
        properties=[_property(service, name, value) for name, value in sorted(effective.items())],
        overwrittenProperties=sorted(overridden),
        defaultProperties=sorted(name for name, value in defaults.items() if effective[name] == value),
    )


def _full(name: str) -> str:
    return name if name.startswith(KSQL) else f"{STREAMS}{name}"


def _value(name: str, value: Any) -> str:
    """Write the value of a setting; nobody sees secrets."""
    if any(word in name for word in SECRET):
        return CONCEALED
    return str(value).lower() if isinstance(value, bool) else without_password(str(value))


def _property(service: Service, name: str, value: str) -> Entity:
    is_of_query = name in OF_QUERIES or name.startswith(STREAMS)
    editable, level = is_of_query and service.admission.limits.allows(name), "QUERY" if is_of_query else "SERVER"
    return {"name": name, "scope": "KSQL", "value": value, "editable": editable, "level": level}


SHOWN: dict[str, Callable[[Service, Show, Request], Entity]] = {
    "STREAMS": _sources("STREAM", "streams"),
    "TABLES": _sources("TABLE", "tables"),
    "TOPICS": _topics,
    "QUERIES": _queries,
    "FUNCTIONS": _functions,
    "TYPES": _types,
    "VARIABLES": _variables,
    "PROPERTIES": _properties,
}


def _describe(service: Service, statement: Describe) -> Entity:
    catalogue = service.engine.catalogue
    match statement.what:
        case "SOURCE":
            name = statement.name or ""
            source = catalogue.sources.get(name)
            if source is None:
                raise SqlError(f"Could not find STREAM/TABLE '{name}' in the Metastore{catalogue.hint(name)}")
            described = description(service, source, statement.extended)
            return entity("sourceDescription", statement.text, sourceDescription=described)
        case "STREAMS" | "TABLES":
            return _described(service, statement, statement.what[:-1])
        case "FUNCTION":
            return _function(statement)
        case "CONNECTOR":
            raise AssertionError("waiting.py answers what connectors are asked for")


def _function(statement: Describe) -> Entity:
    name = (statement.name or "").upper()
    found: list[Row] = REGISTRY.rows.get(name, [])
    if not found:
        raise SqlError(f"Can't find any functions with the name '{name}'")
    doc = next((row.doc.strip() for row in found if row.doc), "")
    return entity(
        "describe_function",
        statement.text,
        name=name,
        description=doc,
        author="",
        version="",
        path="internal",
        functions=[_variation(row, doc) for row in found],
        type=str(functions.kind(name)).upper(),
    )


def _variation(row: Row, doc: str) -> Entity:
    signature = row.signature
    named = enumerate(zip(signature.parameters, signature.names, strict=True))
    return {
        "arguments": [
            {"name": name, "type": _type_words(parameter_text(parameter)), "isVariadic": at == signature.variadic}
            for at, (parameter, name) in named
        ],
        "returnType": _type_words(parameter_text(signature.result)),
        "description": row.doc.strip() or doc,
    }


def _type_words(text: str) -> str:
    return _WORD.sub(lambda found: WORDS[found[0]], text)
