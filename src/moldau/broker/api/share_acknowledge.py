"""ShareAcknowledge (key 79), v1-2: a member of a share group says what became of records (KIP-932).

v1 the first.  v2 locks are renewed (KIP-1222).
Deviates: a topic id that nobody has is UNKNOWN_TOPIC_ID for its partitions; Kafka fails with the whole request.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from moldau.broker.node import Node
from moldau.broker.share.acknowledgements import Told, acknowledge, acknowledged_in, member_of
from moldau.broker.share.sessions import Part, ShareSession
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(79, versions=(1, 2))
async def share_acknowledge(
    node: Node, connection: Connection, request: m.ShareAcknowledgeRequest, version: int
) -> Answer:
    try:
        session = proceed(node, *member_of(node, request), request.share_session_epoch)
    except Refused as refused:
        return m.ShareAcknowledgeResponse(error_code=refused.error)
    told = await acknowledge(node, session, acknowledged_in(request), version, request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        node.share_partitions.end_session(session)
    lock_ms = node.share_partitions.limits(session.group).lock_ms
    return m.ShareAcknowledgeResponse(acquisition_lock_timeout_ms=lock_ms, responses=rows(told))


def proceed(node: Node, group: str, member: str, epoch: int) -> ShareSession:
    if epoch == INITIAL_EPOCH:
        raise Refused(Error.INVALID_SHARE_SESSION_EPOCH, "An acknowledgement opens no session.")
    if epoch == FINAL_EPOCH:
        return node.share_sessions.find(group, member)
    return node.share_sessions.proceed(group, member, epoch)


def rows(told: dict[Part, Told]) -> list[Any]:
    topics: dict[bytes, list[Any]] = {}
    for (topic_id, index), (error, message) in told.items():
        row = m.ShareAcknowledgeResponse_PartitionData(index, error, message)
        topics.setdefault(topic_id, []).append(row)
    return [m.ShareAcknowledgeResponse_ShareAcknowledgeTopicResponse(*topic) for topic in topics.items()]
