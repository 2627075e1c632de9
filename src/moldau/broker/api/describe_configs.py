"""DescribeConfigs (key 32), v1-4: the settings of topics, brokers, loggers, client metrics and groups.

Null or no names ask for all settings; an unknown name is left out. The value is what is in effect, the synonyms (if
asked for) say what else would have given one. Null stands for a value that is secret or not there.

v3 types and documentation (KIP-569).
Deviates: a broker lists the settings that mean something to it, not those of Kafka's own machinery. Some defaults suit
a node that is alone (docs/settings.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau import settings as table
from moldau.broker.api import Answer, Connection, api
from moldau.broker.configs import check_broker_id, scope_of
from moldau.broker.loggers import levels
from moldau.broker.node import Node
from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from moldau.machines.metadata.topics import check_name
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(32, versions=(1, 4))
def describe_configs(node: Node, connection: Connection, request: m.DescribeConfigsRequest, version: int) -> Answer:
    if any(resource.resource_type not in CHECKS for resource in request.resources):
        problem = Refused(Error.INVALID_REQUEST, "The request names a resource type that does not exist.")
        return m.DescribeConfigsResponse(results=[refusal(resource, problem) for resource in request.resources])
    rows: dict[Any, list[Any]] = {}
    return m.DescribeConfigsResponse(results=[describe(node, one, request, rows) for one in request.resources])


def describe(node: Node, resource: Any, request: m.DescribeConfigsRequest, known: dict[Any, list[Any]]) -> Any:
    """Describe one resource. Most topics are alike and tools ask for thousands, so rows are computed once."""
    kind, name = resource.resource_type, resource.resource_name
    names = resource.configuration_keys
    try:
        CHECKS[kind](node, name)
    except Refused as refused:
        return refusal(resource, refused)
    if kind == BROKER_LOGGER:
        rows = [logger_row(*pair) for pair in levels().items() if not names or pair[0] in names]
    else:
        own, scope = node.cluster.config(kind, name), scope_of(kind, name)
        key = scope, frozenset(own.items()), frozenset(names or ())
        if key not in known:
            entries = table.describe(scope, node.settings, own, names)
            known[key] = [row_of(entry, request.include_synonyms, request.include_documentation) for entry in entries]
        rows = known[key]
    return m.DescribeConfigsResponse_DescribeConfigsResult(resource_type=kind, resource_name=name, configs=rows)


def row_of(entry: table.Entry, synonyms: bool, documentation: bool) -> Any:
    return m.DescribeConfigsResponse_DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[m.DescribeConfigsResponse_DescribeConfigsSynonym(*s) for s in entry.synonyms] if synonyms else [],
        config_type=entry.type,
        documentation=entry.doc if documentation else None,
    )


def logger_row(name: str, level: str) -> Any:
    return m.DescribeConfigsResponse_DescribeConfigsResourceResult(
        name=name, value=level, config_source=table.DYNAMIC_BROKER_LOGGER_CONFIG
    )


def refusal(resource: Any, refused: Refused) -> Any:
    asked = resource.resource_type, resource.resource_name
    return m.DescribeConfigsResponse_DescribeConfigsResult(refused.error, refused.message, *asked)


def check_topic(node: Node, name: str) -> None:
    check_name(name)
    if name not in node.cluster.topics:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")


def check_broker(node: Node, name: str) -> None:
    if name:
        check_broker_id(node, name)


def check_named(node: Node, name: str) -> None:
    if not name:
        raise Refused(Error.INVALID_REQUEST, "The name of the resource is empty.")


CHECKS: dict[int, Callable[[Any, str], None]] = {
    TOPIC: check_topic,
    BROKER: check_broker,
    BROKER_LOGGER: check_broker_id,
    CLIENT_METRICS: check_named,
    GROUP: check_named,
}
