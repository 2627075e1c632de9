"""Guards of the config APIs: each resource is asked for by itself, brokers and client metrics by the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.broker.api import Answer
from moldau.broker.api.describe_configs import CHECKS
from moldau.broker.api.incremental_alter_configs import check_changes
from moldau.broker.authorization import DENIED, Call
from moldau.broker.authorization.whole import guard
from moldau.broker.configs import SCOPES
from moldau.machines.metadata import acls
from moldau.machines.metadata.acls import ALTER_CONFIGS, CLUSTER_NAME, DESCRIBE_CONFIGS
from moldau.machines.metadata.cluster import BROKER_LOGGER, GROUP, TOPIC
from moldau.machines.metadata.configs import duplicates
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

# What has permissions of its own; all other resources are the cluster's.
OWN = {TOPIC: acls.TOPIC, GROUP: acls.GROUP}


def may(call: Call[Any], operation: int, resource: Any) -> bool:
    kind = OWN.get(resource.resource_type, acls.CLUSTER)
    return call.may(operation, kind, resource.resource_name if kind != acls.CLUSTER else CLUSTER_NAME)


def denial_of(resource: Any) -> Error:
    return DENIED[OWN.get(resource.resource_type, acls.CLUSTER)]


@guard(32)
def describe_configs(call: Call[m.DescribeConfigsRequest]) -> Answer:
    if any(resource.resource_type not in CHECKS for resource in call.request.resources):
        return call.forward()  # the handler refuses all of them
    return call.withhold("resources", "results", lambda resource: may(call, DESCRIBE_CONFIGS, resource), denial_of)


@guard(33)
def alter_configs(call: Call[m.AlterConfigsRequest]) -> Answer:
    return guard_changes(call, has_values, tuple(SCOPES))


@guard(44)
def incremental_alter_configs(call: Call[m.IncrementalAlterConfigsRequest]) -> Answer:
    return guard_changes(call, is_sound, (*SCOPES, BROKER_LOGGER))


def guard_changes(call: Call[Any], sound: Callable[[Any], bool], kinds: tuple[int, ...]) -> Answer:
    """Ask for what is sound; the rest is refused by the handler, before anybody asks for permissions."""
    twice = duplicates(call.request.resources)

    def passes(resource: Any) -> bool:
        kind, name = resource.resource_type, resource.resource_name
        if kind not in kinds or (kind, name) in twice or not sound(resource):
            return True
        return may(call, ALTER_CONFIGS, resource)

    return call.withhold("resources", "responses", passes, denial_of)


def has_values(resource: Any) -> bool:
    given = {config.name: config.value for config in resource.configs}
    return len(given) == len(resource.configs) and None not in given.values()


def is_sound(resource: Any) -> bool:
    try:
        check_changes([(config.name, config.config_operation, config.value) for config in resource.configs])
    except Refused:
        return False
    return True
