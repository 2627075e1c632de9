"""Share groups on this node: what their machines decide about the state of partitions is carried out here.

A machine (machines/share/heartbeats.py, machines/share/offsets.py) notes what is about to happen and gives the request;
the share coordinator answers it, and the machine is told. A crash in between does no harm: the note is in the log of
the group, and the next heartbeat or deletion finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.effects import Change
from moldau.machines.groups import Groups
from moldau.machines.share import offsets as share_offsets
from moldau.machines.share.topics import Topics
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

FEATURE = "share.version"
Outcome = Callable[[Groups, str, Partitions], list[Change]]


def enabled(node: Node) -> bool:
    """Tell whether share groups are on, by the cluster's feature level or by the broker's settings."""
    return bool(node.cluster.features.get(FEATURE)) or "share" in node.settings["group.coordinator.rebalance.protocols"]


def check_request(node: Node, group_id: str) -> None:
    """Refuse a request for a group's offsets where share groups are off, or that names no group."""
    error = Error.NONE if group_id else Error.INVALID_GROUP_ID
    if error := error if enabled(node) else Error.UNSUPPORTED_VERSION:
        raise Refused(error, error.message)


async def write(node: Node, index: int, changes: Iterable[Change] = ()) -> None:
    """Commit changes of a group, or wait until those before are committed; raises Refused."""
    if error := await node.groups.commit(index, list(changes)):
        raise Refused(error, error.message)


async def initialize(node: Node, index: int, group_id: str, partitions: Topics) -> None:
    """Set up the state of partitions that a heartbeat has asked for. As in Kafka, one that fails fails them all."""
    if (machine := node.groups.machines.get(index)) is None:
        return
    request = share_offsets.begin_set_up(machine, group_id, partitions)
    if request is None:
        return
    response = await node.share_state.initialize(request)
    ok = not any(errors_of(response).values())
    outcome: Outcome = share_offsets.initialized if ok else share_offsets.uninitialized
    await conclude(node, index, request, outcome)


async def conclude(node: Node, index: int, request: Any, outcome: Outcome) -> None:
    """Tell the machine how it went."""
    partitions = {row.topic_id: frozenset(part.partition for part in row.partitions) for row in request.topics}
    if (machine := node.groups.machines.get(index)) is not None:
        await node.groups.commit(index, outcome(machine, request.group_id, partitions))


async def delete_states(node: Node, index: int, machine: Groups, group_id: str) -> Error:
    """Delete all that a group has at the share coordinator; raises Refused."""
    step = share_offsets.delete_group(machine, group_id)
    error = await node.groups.commit(index, step.changes)
    if error or step.request is None:
        return error
    return next(filter(None, errors_of(await node.share_state.delete(step.request)).values()), Error.NONE)


def errors_of(response: Any) -> dict[tuple[bytes, int], Error]:
    """Return what the share coordinator says of each partition."""
    return {
        (row.topic_id, part.partition): Error(part.error_code) for row in response.results for part in row.partitions
    }
