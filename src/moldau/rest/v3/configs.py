"""Settings of topics, of one broker and of all brokers: the same endpoints under three paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.client import ANY, CONTROLLER, Node
from moldau.client import messages as m
from moldau.http import Endpoint, HttpError
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found
from moldau.settings.entries import SOURCES

TOPIC, BROKER = 2, 4  # kinds of resources
SET, DELETE = 0, 1


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose settings: the kind of resource, its name in the path, and how one setting is shown."""

    kind: str
    resource: int
    path: str
    param: str | None
    segments: Callable[[str], tuple[Any, ...]]
    crn: Callable[[str], dict[str, Any]]

    def owner(self, call: Call) -> str:
        return str(call[self.param]) if self.param else ""

    def shown(self, owner: str) -> dict[str, Any]:
        match self.kind:
            case "Topic":
                return {"topic_name": owner}
            case "Broker":
                return {"broker_id": int(owner)}
        return {"config_type": "BROKER"}


CLUSTER = "/v3/clusters/{cluster_id}"
SCOPES = (
    Scope(
        "Topic",
        TOPIC,
        f"{CLUSTER}/topics/{{topic_name}}/configs",
        "topic_name",
        lambda owner: ("topics", owner, "configs"),
        lambda owner: {"topic": owner},
    ),
    Scope(
        "Broker",
        BROKER,
        f"{CLUSTER}/brokers/{{broker_id}}/configs",
        "broker_id",
        lambda owner: ("brokers", owner, "configs"),
        lambda owner: {"broker": owner},
    ),
    Scope("Cluster", BROKER, f"{CLUSTER}/broker-configs", None, lambda _: ("broker-configs",), lambda _: {}),
)


def describe(call: Call, scope: Scope, owners: list[str], names: list[str] | None = None) -> list[Any]:
    """What a broker says of topics, or a broker of itself, or any of what holds for all brokers."""
    rows = [m.DescribeConfigsRequest_DescribeConfigsResource(scope.resource, owner, names) for owner in owners]
    to = Node(int(owners[0])) if scope.kind == "Broker" else ANY
    if isinstance(to, Node) and to.id not in call.kafka.client.refresh().brokers:
        raise not_found(f"Broker {owners[0]}")
    return list(call.kafka.send(m.DescribeConfigsRequest(rows, include_synonyms=True), to).results)


def shown(call: Call, scope: Scope, owner: str, row: Any) -> dict[str, Any]:
    key = "broker_config" if scope.kind == "Cluster" else "config"
    return call.resource(
        f"Kafka{scope.kind}Config",
        (*scope.segments(owner), row.name),
        {**scope.crn(owner), key: row.name},
        **scope.shown(owner),
        name=row.name,
        value=row.value,
        is_default=SOURCES.get(row.config_source) == "DEFAULT_CONFIG",
        is_read_only=row.read_only,
        is_sensitive=row.is_sensitive,
        source=SOURCES.get(row.config_source, "UNKNOWN"),
        synonyms=[
            {"name": one.name, "value": one.value, "source": SOURCES.get(one.source, "UNKNOWN")} for one in row.synonyms
        ],
    )


def listing(call: Call, scope: Scope, owners: list[str]) -> dict[str, Any]:
    found = describe(call, scope, owners) if owners else []
    rows = [shown(call, scope, one.resource_name, row) for one in found for row in one.configs]
    return call.listing(f"Kafka{scope.kind}ConfigList", rows)


def one(call: Call, scope: Scope) -> dict[str, Any]:
    owner, name = scope.owner(call), call["name"]
    for row in describe(call, scope, [owner], [name])[0].configs:
        if row.name == name:
            return shown(call, scope, owner, row)
    raise not_found(f"Config {name}")


def alter(call: Call, scope: Scope, changes: list[tuple[str, int, str | None]], only: bool = False) -> None:
    owner = scope.owner(call)
    if scope.kind != "Cluster":  # what holds for all brokers is listed only where it is set
        known = {row.name for row in describe(call, scope, [owner])[0].configs}
        for name, _, _ in changes:
            if name not in known:
                raise not_found(f"Config {name}")
    rows = [m.IncrementalAlterConfigsRequest_AlterableConfig(*change) for change in changes]
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(scope.resource, owner, rows)
    to = Node(int(owner)) if scope.kind == "Broker" else CONTROLLER
    call.kafka.send(m.IncrementalAlterConfigsRequest([resource], only), to)


def change_of(row: dict[str, Any]) -> tuple[str, int, str | None]:
    if (row.get("operation") or "SET") == "DELETE":
        return row["name"], DELETE, None
    if row.get("value") is None:
        raise HttpError(400, f"Config {row['name']} is to be set and has no value.")
    return row["name"], SET, row["value"]


def endpoints(scope: Scope) -> tuple[Endpoint, ...]:
    """List, alter many, get, set and reset."""
    whose = {"Topic": "a topic", "Broker": "a broker", "Cluster": "all brokers"}[scope.kind]

    def alter_many(call: Call) -> None:
        changes = [change_of(row) for row in call.body["data"]]
        alter(call, scope, changes, call.body.get("validate_only", False))

    def put(call: Call) -> None:
        alter(call, scope, [change_of({"name": call["name"], **call.body})])

    row, rows = f"{scope.kind}Config", f"{scope.kind}ConfigList"
    path = scope.path
    return (
        Endpoint("GET", path, lambda call: listing(call, scope, [scope.owner(call)]), f"Settings of {whose}.", rows),
        Endpoint("POST", f"{path}:alter", alter_many, f"Set some of {whose}.", takes="ConfigChanges", status=204),
        Endpoint("GET", f"{path}/{{name}}", lambda call: one(call, scope), f"One setting of {whose}.", row),
        Endpoint("PUT", f"{path}/{{name}}", put, f"Set one of {whose}.", takes="ConfigValue", status=204),
        Endpoint(
            "DELETE",
            f"{path}/{{name}}",
            lambda call: alter(call, scope, [(call["name"], DELETE, None)]),
            f"Put one of {whose} back to its default.",
            status=204,
        ),
    )


def all_topics(call: Call) -> dict[str, Any]:
    return listing(call, SCOPES[0], [topic.name for topic in call.kafka.topics(None)])


def all_brokers(call: Call) -> dict[str, Any]:
    numbers = sorted(call.kafka.client.refresh().brokers)
    rows = [row for number in numbers for row in listing(call, SCOPES[1], [str(number)])["data"]]
    return call.listing("KafkaBrokerConfigList", rows)


CONFIGS = (
    *(endpoint for scope in SCOPES for endpoint in endpoints(scope)),
    Endpoint("GET", f"{CLUSTER}/topics/-/configs", all_topics, "Settings of all topics.", "TopicConfigList"),
    Endpoint("GET", f"{CLUSTER}/brokers/-/configs", all_brokers, "Settings of each broker.", "BrokerConfigList"),
)
