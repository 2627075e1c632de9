"""DeleteTopics (key 20), v1-6: remove topics by name, since v6 also by id.

v5 error messages.  v6 topic ids (KIP-516).
Deviates: nothing known.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.metadata import Proposal
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_ID = bytes(16)


@api(20, versions=(1, 6))
async def delete_topics(node: Node, connection: Connection, request: m.DeleteTopicsRequest, version: int) -> Answer:
    asked = [(topic.name, topic.topic_id) for topic in request.topics] + [(n, NO_ID) for n in request.topic_names]
    if not node.settings["delete.topic.enable"]:
        off = Error.TOPIC_DELETION_DISABLED if version >= 3 else Error.INVALID_REQUEST
        rows = [row_of(name, topic_id, Refused(off, "delete.topic.enable is false")) for name, topic_id in asked]
        return m.DeleteTopicsResponse(responses=rows)
    counts, proposal = Counter(asked), node.metadata.propose()
    by_id = (proposal.image.topic(None, topic_id) for name, topic_id in counts if name is None)
    both = [topic for topic in by_id if topic and counts[topic.name, NO_ID]]
    twice = Refused(Error.INVALID_REQUEST, "The request names this topic and gives its id.")
    rows = [row_of(topic.name, topic.id, twice) for topic in both]
    for topic in both:
        del counts[topic.name, NO_ID], counts[None, topic.id]
    rows += [delete(proposal, *key, count) for key, count in counts.items()]
    return await proposal.answer(m.DeleteTopicsResponse(responses=rows), rows)


def delete(proposal: Proposal, name: str | None, topic_id: bytes, count: int) -> Any:
    try:
        if count > 1:
            raise Refused(Error.INVALID_REQUEST, "The request names this topic more than once.")
        if (name is None) == (topic_id == NO_ID):
            raise Refused(Error.INVALID_REQUEST, "A topic is deleted by its name or by its id: give one of them.")
        topic = proposal.image.topic(name, topic_id)
        if topic is None:
            error = Error.UNKNOWN_TOPIC_ID if name is None else Error.UNKNOWN_TOPIC_OR_PARTITION
            raise Refused(error, "There is no such topic.")
    except Refused as refused:
        return row_of(name, topic_id, refused)
    proposal.add([m.RemoveTopicRecord(topic.id)])
    return m.DeleteTopicsResponse_DeletableTopicResult(topic.name, topic.id)


def row_of(name: str | None, topic_id: bytes, refused: Refused) -> Any:
    return m.DeleteTopicsResponse_DeletableTopicResult(name, topic_id, refused.error, refused.message)
