"""What the config APIs share: resources and the scopes of the settings table, and who may be asked about a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from moldau import settings as table
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.cluster.controller.policy import clear_eligible_leaders
from moldau.machines.metadata.cluster import BROKER, CLIENT_METRICS, GROUP, TOPIC, Cluster
from moldau.machines.metadata.configs import broker_layers, check_resource, duplicates, replace
from moldau.settings.checks import check_broker
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

SCOPES = {TOPIC: table.TOPIC, BROKER: table.BROKER, CLIENT_METRICS: table.CLIENT_METRICS, GROUP: table.GROUP}


def scope_of(kind: int, name: str) -> str:
    """Return the scope in the settings table; the settings of no broker in particular are those of all of them."""
    return table.CLUSTER if kind == BROKER and not name else SCOPES[kind]


def check_broker_id(node: Node, name: str, *, is_change: bool = False) -> None:
    """Refuse the id of another broker: a broker answers for itself alone. The active controller changes all of them."""
    digits = name[1:] if name[:1] in ("+", "-") else name
    if not (digits.isascii() and digits.isdigit()):
        raise Refused(Error.INVALID_REQUEST, f"The id of a broker is a number, not '{name}'.")
    if int(name) != node.id and not (is_change and node.controller is not None):
        raise Refused(Error.INVALID_REQUEST, f"This is broker {node.id}; ask broker {name} itself.")


def check_stored(node: Node, kind: int, name: str) -> None:
    """Refuse a resource whose settings are not kept in the metadata, or that cannot be."""
    if kind not in SCOPES:
        raise Refused(Error.INVALID_REQUEST, f"There is no resource type {kind}.")
    if kind == BROKER and name:
        check_broker_id(node, name, is_change=True)
    check_resource(kind, name)


def refused_setting(wrong: table.SettingError) -> Refused:
    return Refused(Error[wrong.error], f"{wrong}.")


def plan(
    node: Node, image: Cluster, kind: int, name: str, new: Callable[[], dict[str, str]], touched: Iterable[str]
) -> list[Any]:
    """Make the records of the overrides that the settings table works out; raises Refused."""
    try:
        overrides = new()
    except table.SettingError as wrong:
        raise refused_setting(wrong) from None
    if kind == BROKER:
        check_together(node, image, name, overrides)
    records = replace(image, kind, name, overrides, list(touched))
    return [*records, *clear_eligible_leaders(image, records)]


def check_together(node: Node, image: Cluster, name: str, overrides: dict[str, str]) -> None:
    """Check that a broker's settings go with each other, and with those that it was started with."""
    mine, everybody = broker_layers(image, node.id)
    layers = (overrides, everybody) if name else (mine, overrides)
    try:
        check_broker(node.settings.with_dynamic(*layers))
        if name in ("", str(node.id)):
            node.check_settings(node.settings.with_dynamic(*layers))
    except table.SettingError as wrong:
        raise Refused(Error.INVALID_REQUEST, f"{wrong}.") from None


async def alter_each(
    node: Node,
    request: m.AlterConfigsRequest | m.IncrementalAlterConfigsRequest,
    alter: Callable[[Node, Proposal, bool, Any], None],
    response: Callable[..., Any],
    row: Callable[..., Any],
) -> Any:
    """Alter one resource after the other and answer; a resource that is named twice is refused both times."""
    proposal, twice = node.metadata.propose(), duplicates(request.resources)
    rows: list[Any] = []
    for resource in request.resources:
        key = resource.resource_type, resource.resource_name
        try:
            if key in twice:
                raise Refused(Error.INVALID_REQUEST, "The request names this resource twice.")
            alter(node, proposal, request.validate_only, resource)
        except Refused as refused:
            rows.append(row(refused.error, refused.message, *key))
        else:
            rows.append(row(Error.NONE, None, *key))
    return await proposal.answer(response(responses=rows), rows)
