"""How the answers of a server are written: a row for each kind of entity that is a list, a function for the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from moldau.sql.shell.tables import listing

Entity = Mapping[str, Any]
Width = int | None


class Listing(NamedTuple):
    """A list in an entity: its field, the titles of the table, and the cells of an element."""

    field: str
    titles: str
    cells: Callable[[Any], Sequence[Any]]
    after: str = ""
    order: Callable[[Any], Any] = lambda row: 0


def _replicas(topic: Entity) -> str:
    """Return the replicas of partitions: one number if all have the same."""
    counts = topic["replicaInfo"]
    return str(counts[0]) if counts and len(set(counts)) == 1 else ", ".join(map(str, counts))


def _source(row: Entity) -> Sequence[Any]:
    return row["name"], row["topic"], row.get("keyFormat", ""), row.get("valueFormat", ""), _yes(row.get("isWindowed"))


def _query(row: Entity) -> Sequence[Any]:
    text = " ".join(str(row["queryString"]).split())
    return (
        row["id"],
        row["queryType"],
        row.get("state") or "",
        *map(_names, (row["sinks"], row["sinkKafkaTopics"])),
        text,
    )


def _names(names: Sequence[str]) -> str:
    return ",".join(names)


def _yes(value: Any) -> str:
    return "true" if value else "false"


def _topic(row: Entity) -> Sequence[Any]:
    return row["name"], len(row["replicaInfo"]), _replicas(row)


SOURCES = "Kafka Topic|Key Format|Value Format|Windowed"
TOPICS = "Kafka Topic|Partitions|Partition Replicas"
QUERIES = "Query ID|Query Type|Status|Sink Name|Sink Kafka Topic|Query String"
LISTS: dict[str, Listing] = {
    "streams": Listing("streams", f"Stream Name|{SOURCES}", _source),
    "tables": Listing("tables", f"Table Name|{SOURCES}", _source),
    "kafka_topics": Listing("topics", TOPICS, _topic),
    "kafka_topics_extended": Listing(
        "topics",
        f"{TOPICS}|Consumers|ConsumerGroups",
        lambda row: (*_topic(row), row["consumerCount"], row["consumerGroupCount"]),
    ),
    "queries": Listing("queries", QUERIES, _query, "For detailed information on a Query run: EXPLAIN <Query ID>;"),
    "function_names": Listing(
        "functions",
        "Function Name|Category",
        lambda row: (row["name"], row.get("category") or row.get("type", "")),
        "For detailed information about a function, run: DESCRIBE FUNCTION <Function Name>;",
        lambda row: (row.get("category") or "", row["name"]),
    ),
    "variables": Listing("variables", "Variable Name|Value", lambda row: (row["name"], row["value"])),
    "connector_list": Listing(
        "connectors",
        "Connector Name|Type|Class|Status",
        lambda row: (row["name"], row["type"], row.get("className", ""), row.get("state", "")),
    ),
    "connector_plugins_list": Listing(
        "connectorsPlugins",
        "Class|Type|Version",
        lambda row: (row["className"], row["type"], row.get("version", "")),
    ),
    "properties": Listing(
        "properties",
        "Property|Scope|Level|Effective Value",
        lambda row: (row["name"], row.get("scope", ""), row.get("level") or "", row.get("value") or ""),
    ),
}


def lines(entity: Entity, width: Width = None) -> Iterator[str]:
    """Yield the lines of an entity, and its warnings before it."""
    for warning in entity.get("warnings") or ():
        yield f"WARNING: {warning['message']}"
    kind = str(entity.get("@type"))
    if kind in LISTS:
        row = LISTS[kind]
        rows = sorted(entity.get(row.field, ()), key=row.order)
        yield from listing(row.titles.split("|"), [row.cells(one) for one in rows], width)
        if row.after and entity.get(row.field):
            yield row.after
    elif kind in DESCRIBED:
        yield from DESCRIBED[kind](entity, width)
    elif (message := _message(entity)) is not None:
        yield from listing(["Message"], [[message]], width)
    else:
        yield from json_text(entity).split("\n")


def json_text(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _message(entity: Entity) -> str | None:
    match entity.get("@type"):
        case "currentStatus":
            return str(entity["commandStatus"]["message"])
        case "warning_entity" | "error_entity" | "generic_error" | "statement_error":
            return str(entity["message"])
        case "drop_connector":
            return f'Dropped connector "{entity["connectorName"]}"'
        case "terminate_query":
            return f"Query {entity['queryId']} terminated."
        case "assert_topic":
            return f"Topic {entity['topicName']} {'exists' if entity['exists'] else 'does not exist'}"
        case "assert_schema":
            parts = [f"subject name {entity['subject']}"] if entity.get("subject") else []
            parts += [f"id {entity['id']}"] if entity.get("id") is not None else []
            return f"Schema with {' '.join(parts)} {'exists' if entity['exists'] else 'does not exist'}"
        case "connector_info":
            return f"Created connector {entity['info']['name']}"
    return None


# DESCRIBE and EXPLAIN


def type_text(schema: Entity) -> str:
    """Write a type as DESCRIBE does."""
    kind, inner = schema["type"], schema.get("memberSchema")
    match kind:
        case "STRING":
            return "VARCHAR(STRING)"
        case "DECIMAL":
            given = schema.get("parameters") or {}
            return f"DECIMAL({given.get('precision')}, {given.get('scale')})" if given else "DECIMAL"
        case "ARRAY":
            return f"ARRAY<{type_text(inner or {})}>"
        case "MAP":
            return f"MAP<STRING, {type_text(inner or {})}>"
        case "STRUCT":
            fields = (f"{one['name']} {type_text(one['schema'])}" for one in schema.get("fields") or ())
            return f"STRUCT<{', '.join(fields)}>"
    return str(kind)


def _field_rows(fields: Sequence[Entity], primary: bool) -> list[list[str]]:
    marks = {"KEY": "  (primary key)" if primary else "  (key)", "HEADER": "  (header)", "SYSTEM": "  (system)"}
    rows = []
    for one in fields:
        mark = marks.get(one.get("type") or "", "")
        if one.get("headerKey"):
            mark = f"  (header('{one['headerKey']}'))"
        rows.append([one["name"], type_text(one["schema"]) + mark])
    return rows


def _source_lines(described: Entity, width: Width) -> Iterator[str]:
    fields = _field_rows(described["fields"], described["type"] == "TABLE")
    if not described.get("extended"):
        yield f"Name                 : {described['name']}"
        yield from listing(["Field", "Type"], fields, width)
        yield "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;"
        return
    place = f"{described['topic']} (partitions: {described['partitions']}, replication: {described['replication']})"
    facts = {
        "Name": described["name"],
        "Type": described["type"],
        "Window type": described.get("windowType"),
        "History": described.get("history"),
        "Timestamp field": described.get("timestamp") or "Not set - using <ROWTIME>",
        "Key format": described.get("keyFormat"),
        "Value format": described.get("valueFormat"),
        "Kafka topic": place,
        "Statement": described.get("statement"),
    }
    yield from _facts(facts)
    yield ""
    yield from listing(["Field", "Type"], fields, width)
    for key, title in (("readQueries", "that read from this"), ("writeQueries", "that write into this")):
        if described.get(key):
            yield from ("", f"Queries {title} {described['type']}", "-" * 35)
            for query in described[key]:
                yield f"{query['id']} ({query.get('state') or ''}) : {' '.join(query['queryString'].split())}"
    yield from _offsets(described, width)
    for key, title in (("statistics", "Local runtime statistics"), ("errorStats", "Errors")):
        if described.get(key):
            yield from ("", title, "-" * 24, str(described[key]))


def _offsets(described: Entity, width: Width) -> Iterator[str]:
    for summary in described.get("queryOffsetSummaries") or ():
        yield from ("", f"Consumer group       : {summary['groupId']}")
        for topic in summary.get("topicSummaries", ()):
            yield f"Kafka topic          : {topic['kafkaTopic']}"
            rows = [
                [one["partition"], one["logStartOffset"], one["logEndOffset"], one["consumerOffset"]]
                for one in topic.get("offsets", ())
            ]
            lag = sum(max(row[2] - row[3], 0) for row in rows)
            yield f"Max lag              : {lag}"
            yield from listing(["Partition", "Start Offset", "End Offset", "Offset"], rows, width)


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if value:
            yield f"{name:<20} : {value}"


def _query_lines(described: Entity, width: Width) -> Iterator[str]:
    yield from _facts(
        {
            "ID": described["id"],
            "Query Type": described.get("queryType"),
            "SQL": described["statementText"],
            "Status": described.get("state"),
        }
    )
    yield ""
    yield from listing(["Field", "Type"], _field_rows(described["fields"], False), width)
    for key, title in (
        ("sources", "Sources that this query reads from:"),
        ("sinks", "Sinks that this query writes to:"),
    ):
        if described.get(key):
            yield from ("", title, "-" * 35, *map(str, described[key]))
    for key, title in (("executionPlan", "Execution plan"), ("topology", "Processing topology")):
        if described.get(key):
            yield from ("", title, "-" * 14, *str(described[key]).rstrip().split("\n"))
    for error in described.get("queryErrors") or ():
        yield from ("", f"Error                : {error.get('errorMessage')}")
    if described.get("overriddenProperties"):
        yield from ("", "Overridden Properties", "-" * 21)
        yield from listing(["Property", "Value"], list(described["overriddenProperties"].items()), width)


def _function_lines(entity: Entity, width: Width) -> Iterator[str]:
    yield from _facts(
        {
            "Name": entity["name"],
            "Author": entity.get("author"),
            "Version": entity.get("version"),
            "Overview": entity.get("description"),
            "Type": entity.get("type"),
            "Jar": entity.get("path"),
            "Variations": " ",
        }
    )
    for one in entity.get("functions", ()):
        yield ""
        yield f"\tVariation   : {signature(entity['name'], one)}"
        yield f"\tReturns     : {one['returnType']}"
        if one.get("description"):
            yield f"\tDescription : {one['description']}"


def signature(name: str, variation: Entity) -> str:
    """Write one variation of a function as a call."""
    arguments = (
        f"{one.get('name') or ''} {one['type']}{'...' if one.get('isVariadic') else ''}".strip()
        for one in variation["arguments"]
    )
    return f"{name}({', '.join(arguments)})"


def _types(entity: Entity, width: Width) -> Iterator[str]:
    rows = [[name, type_text(schema)] for name, schema in entity.get("types", {}).items()]
    yield from listing(["Type Name", "Schema"], rows, width)


def _many(field: str, one: Callable[[Entity, Width], Iterator[str]]) -> Callable[[Entity, Width], Iterator[str]]:
    def write(entity: Entity, width: Width) -> Iterator[str]:
        for at, described in enumerate(entity.get(field, ())):
            if at:
                yield ""
            yield from one(described, width)

    return write


def _connector(entity: Entity, width: Width) -> Iterator[str]:
    status = entity.get("status") or {}
    yield from _facts(
        {
            "Name": status.get("name"),
            "Class": entity.get("connectorClass"),
            "Type": status.get("type"),
            "State": (status.get("connector") or {}).get("state"),
            "WorkerId": (status.get("connector") or {}).get("worker_id"),
        }
    )
    rows = [[one["id"], one["state"], one.get("trace") or ""] for one in status.get("tasks", ())]
    if rows:
        yield ""
        yield from listing(["Task ID", "State", "Error Trace"], rows, width)


DESCRIBED: dict[str, Callable[[Entity, Width], Iterator[str]]] = {
    "sourceDescription": lambda entity, width: _source_lines(entity["sourceDescription"], width),
    "source_descriptions": _many("sourceDescriptions", _source_lines),
    "queryDescription": lambda entity, width: _query_lines(entity["queryDescription"], width),
    "query_descriptions": _many("queryDescriptions", _query_lines),
    "describe_function": _function_lines,
    "type_list": _types,
    "connector_description": _connector,
}
