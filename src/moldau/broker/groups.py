"""The group coordinators of this node: machines/groups.py on the partitions of `__consumer_offsets`.

The machines are many modules, and imported with the first coordinator that is loaded: a start should not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moldau.broker import operations
from moldau.broker.connection import Connection
from moldau.broker.coordinators import Coordinators
from moldau.machines.effects import Effects, Promise
from moldau.machines.group import Client
from moldau.machines.metadata.cluster import Topic
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node
    from moldau.machines.groups import Command, Groups, Kind

TOPIC = "__consumer_offsets"
CHANGES_AT_ONCE = 1000


def group_coordinators(node: Node) -> Coordinators[Groups]:
    def setting(name: str) -> object:
        return node.settings[name]

    def configs() -> Mapping[str, str]:
        """Keep the writer's codec, so that a change of `offsets.topic.compression.codec` takes effect."""
        segment = str(node.settings["offsets.topic.segment.bytes"])
        return {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": segment}

    def make(index: int) -> Groups:
        from moldau.machines.groups import Groups

        return Groups(setting, node.random, lambda: node.cluster)

    return Coordinators(
        node,
        TOPIC,
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        configs,
        make,
        codec=node.settings["offsets.topic.compression.codec"],
    )


def forget_topic(node: Node, topic: Topic) -> None:
    """Delete what was committed for a topic that is gone, and what share groups have of it."""
    if not node.groups.machines:
        return
    from moldau.machines import offsets
    from moldau.machines.share import offsets as share_offsets

    for index, machine in list(node.groups.machines.items()):
        changes = offsets.of_deleted_topic(machine, topic.name, topic.id)
        changes += share_offsets.of_deleted_topic(machine, topic.id)
        for at in range(0, len(changes), CHANGES_AT_ONCE):
            node.groups.run(index, Effects(changes[at : at + CHANGES_AT_ONCE]))


def describe_groups(
    node: Node, request: Any, kind: str, row: Callable[..., Any], describe: Callable[[Any], Any], enabled: bool = True
) -> list[Any]:
    """Describe groups of one kind by a row each, with what the client may do with them if it asks for that."""
    rows: list[Any] = []
    for group_id in request.group_ids:
        try:
            if not enabled or not group_id:
                raise Refused(Error.INVALID_GROUP_ID if enabled else Error.UNSUPPORTED_VERSION, "")
            rows.append(describe(node.groups.of(group_id)[1].get(group_id, kind)))
        except Refused as refused:
            rows.append(row(refused.error, refused.message or None, group_id))
    operations.add_to_groups(request, rows)
    return rows


def client_of(connection: Connection) -> Client:
    """Return a client as Kafka shows it: its id, and its address after a slash."""
    return Client(connection.client_id or "", "/" + connection.peer.rpartition(":")[0].strip("[]"))


def ask_member(
    node: Node,
    connection: Connection,
    request: Any,
    version: int,
    command: Callable[[Kind], Command],
    refuse: Callable[[Error], Any],
) -> Any:
    """Answer a member that speaks the classic protocol, by the kind of its group."""
    if not request.group_id:
        return refuse(Error.INVALID_GROUP_ID)
    try:
        index, machine = node.groups.of(request.group_id)
    except Refused as refused:
        return refuse(refused.error)
    promise = Promise(refuse)
    kind = machine.kind_of(request.group_id)
    now = node.clock.wall_ms()
    effects = command(kind)(machine, promise, request, client_of(connection), version, now)
    return node.groups.ask(index, promise, effects)
