"""Settings of topics, of one broker and of all brokers: the same endpoints under three paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moldau.admin import configs
from moldau.admin.configs import Change, Entry, Kind, Operation, Resource
from moldau.http import ADMIN, EDITOR, Endpoint, HttpError
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found


@dataclass(frozen=True, slots=True)
class Scope:
    """The owner of settings: `param` names it in the path, `fields` are those of a setting that name it."""

    name: str
    whose: str
    kind: Kind
    path: str
    param: str | None
    fields: Callable[[str], dict[str, Any]]

    def resource(self, call: Call) -> Resource:
        return Resource(self.kind, str(call[self.param]) if self.param else "")


CLUSTER = "/v3/clusters/{cluster_id}/"
TOPIC = Scope("Topic", "a topic", Kind.TOPIC, "topics/{}/configs", "topic_name", lambda name: {"topic_name": name})
BROKER = Scope("Broker", "a broker", Kind.BROKER, "brokers/{}/configs", "broker_id", lambda id: {"broker_id": int(id)})
ALL_BROKERS = Scope(
    "Cluster", "all brokers", Kind.BROKER, "broker-configs", None, lambda _: {"config_type": Kind.BROKER.name}
)


def describe(call: Call, resources: list[Resource], names: list[str] | None = None) -> dict[Resource, list[Entry]]:
    """Describe topics, one broker, or what holds for all brokers."""
    for one in resources:
        if one.kind is Kind.BROKER and one.name and int(one.name) not in call.kafka.client.refresh().brokers:
            raise not_found(f"Broker {one.name}")
    return configs.describe_all(call.kafka.client, resources, names) if resources else {}


def setting(call: Call, scope: Scope, owner: str, entry: Entry) -> dict[str, Any]:
    key, crn = ("config", {scope.name.lower(): owner}) if scope.param else ("broker_config", {})
    return call.resource(
        f"Kafka{scope.name}Config",
        (*scope.path.format(owner).split("/"), entry.name),
        {**crn, key: entry.name},
        **scope.fields(owner),
        name=entry.name,
        value=entry.value,
        is_default=entry.is_default,
        is_read_only=entry.read_only,
        is_sensitive=entry.sensitive,
        source=entry.source,
        synonyms=[{"name": one.name, "value": one.value, "source": one.source} for one in entry.synonyms],
    )


def listing(call: Call, scope: Scope, resources: list[Resource]) -> dict[str, Any]:
    found = describe(call, resources).items()
    rows = [setting(call, scope, one.name, entry) for one, entries in found for entry in entries]
    return call.listing(f"Kafka{scope.name}ConfigList", rows)


def one(call: Call, scope: Scope) -> dict[str, Any]:
    resource, name = scope.resource(call), call["name"]
    for entry in describe(call, [resource], [name])[resource]:
        if entry.name == name:
            return setting(call, scope, resource.name, entry)
    raise not_found(f"Config {name}")


def alter(call: Call, scope: Scope, changes: list[Change], only: bool = False) -> None:
    resource = scope.resource(call)
    if scope.param:  # what holds for all brokers is listed only where it is set
        known = {entry.name for entry in describe(call, [resource])[resource]}
        for change in changes:
            if change.name not in known:
                raise not_found(f"Config {change.name}")
    configs.alter(call.kafka.client, resource, changes, validate_only=only)


def change_of(row: dict[str, Any]) -> Change:
    if (row.get("operation") or "SET") == "DELETE":
        return Change(row["name"], None, Operation.DELETE)
    if row.get("value") is None:
        raise HttpError(400, f"Config {row['name']} is to be set and has no value.")
    return Change(row["name"], row["value"])


def endpoints(scope: Scope) -> tuple[Endpoint, ...]:
    """Return the endpoints that list settings, alter many, and get, set and reset one."""

    def alter_many(call: Call) -> None:
        changes = [change_of(row) for row in call.body["data"]]
        alter(call, scope, changes, call.body.get("validate_only", False))

    def put(call: Call) -> None:
        alter(call, scope, [change_of({"name": call["name"], **call.body})])

    def reset(call: Call) -> None:
        alter(call, scope, [change_of({"name": call["name"], "operation": "DELETE"})])

    row, rows, whose = f"{scope.name}Config", f"{scope.name}ConfigList", scope.whose
    path = CLUSTER + scope.path.format(f"{{{scope.param}}}")
    each = f"{path}/{{name}}"
    done: dict[str, Any] = {"status": 204, "role": EDITOR if scope is TOPIC else ADMIN}
    return (
        Endpoint("GET", path, lambda call: listing(call, scope, [scope.resource(call)]), f"Settings of {whose}.", rows),
        Endpoint("POST", f"{path}:alter", alter_many, f"Set some of {whose}.", takes="ConfigChanges", **done),
        Endpoint("GET", each, lambda call: one(call, scope), f"One setting of {whose}.", row),
        Endpoint("PUT", each, put, f"Set one of {whose}.", takes="ConfigValue", **done),
        Endpoint("DELETE", each, reset, f"Put one of {whose} back to its default.", **done),
    )


def all_topics(call: Call) -> dict[str, Any]:
    return listing(call, TOPIC, [Resource(Kind.TOPIC, topic.name) for topic in call.kafka.topics(None)])


def all_brokers(call: Call) -> dict[str, Any]:
    numbers = sorted(call.kafka.client.refresh().brokers)
    rows = [row for number in numbers for row in listing(call, BROKER, [Resource(Kind.BROKER, str(number))])["data"]]
    return call.listing("KafkaBrokerConfigList", rows)


CONFIGS = (
    *(endpoint for scope in (TOPIC, BROKER, ALL_BROKERS) for endpoint in endpoints(scope)),
    Endpoint("GET", f"{CLUSTER}topics/-/configs", all_topics, "Settings of all topics.", "TopicConfigList"),
    Endpoint("GET", f"{CLUSTER}brokers/-/configs", all_brokers, "Settings of each broker.", "BrokerConfigList"),
)
