"""Acknowledgements of a share group's members, be they alone or on the back of a fetch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from moldau.broker.share.groups import enabled
from moldau.broker.share.sessions import Part, ShareSession
from moldau.broker.steps import start
from moldau.machines.share.partition import REJECT, RENEW, Acknowledgement
from moldau.machines.share.state import Key
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

RENEWS_FROM = 2
MEMBER_ID_LENGTH = 36

Told = tuple[Error, str | None]
Request = m.ShareFetchRequest | m.ShareAcknowledgeRequest


def member_of(node: Node, request: Request) -> tuple[str, str]:
    """Return the group and the member that a request comes from; raises Refused where it can have none."""
    group, member = request.group_id, request.member_id
    if not enabled(node):
        raise Refused(Error.UNSUPPORTED_VERSION, "")
    if group is None or not member or len(member) > MEMBER_ID_LENGTH:
        raise Refused(Error.INVALID_REQUEST, "")
    return group, member


def acknowledged_in(request: Request) -> dict[Part, list[Acknowledgement]]:
    """Return what a request acknowledges, by partition."""
    return {
        (bytes(topic.topic_id), part.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in part.acknowledgement_batches
        ]
        for topic in request.topics
        for part in topic.partitions
        if part.acknowledgement_batches
    }


async def acknowledge(
    node: Node, session: ShareSession, said: Mapping[Part, Sequence[Acknowledgement]], version: int, renews: bool
) -> dict[Part, Told]:
    """Settle all that is acknowledged; returns for each partition how it went."""
    highest = RENEW if version >= RENEWS_FROM else REJECT
    told = {
        part: start(node, outcome(node, Key(session.group, *part), session.member, batches, highest, renews))
        for part, batches in said.items()
    }
    return {part: await promise for part, promise in told.items()}


async def outcome(
    node: Node, key: Key, member: str, said: Sequence[Acknowledgement], highest: int, renews: bool
) -> Told:
    try:
        await settle(node, key, member, said, highest, renews)
    except Refused as refused:
        return refused.error, refused.message or None
    return Error.NONE, None


async def settle(
    node: Node, key: Key, member: str, said: Sequence[Acknowledgement], highest: int, renews: bool
) -> None:
    partitions = node.replicas.by_id.get(key.topic_id)
    if partitions is None:
        raise Refused(Error.UNKNOWN_TOPIC_ID, "")
    if not is_sound(said, highest, renews):
        raise Refused(Error.INVALID_REQUEST, "")
    shared = node.share_partitions.find(key)
    if key.partition not in partitions or shared is None:
        raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_OR_PARTITION.message)
    now = node.clock.monotonic_ms()
    await node.share_partitions.commit(shared, lambda: shared.machine.acknowledge(member, said, now))


def is_sound(said: Iterable[Acknowledgement], highest: int, renews: bool) -> bool:
    """Tell whether batches come in their order, each with a type for all of its records or for each."""
    last = -1
    for one in said:
        if one.first > one.last or one.first < last or len(one.types) not in (1, one.last - one.first + 1):
            return False
        if any(not 0 <= kind <= highest or (kind == RENEW and not renews) for kind in one.types):
            return False
        last = one.last
    return True
