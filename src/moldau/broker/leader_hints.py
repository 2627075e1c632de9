"""Who leads instead: what a client is told that has asked the wrong broker (KIP-951).

Only in a cluster: a node that is alone leads everything that it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.broker.connection import Connection
from moldau.broker.wait import finish
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.broker.node import Node

PRODUCE_HINTS, FETCH_HINTS = 10, 16  # versions of the answers that have room for hints
MOVED = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH})

Row = tuple[bytes | str, int, Any]


def with_hints(node: Node, connection: Connection, outcome: Any, version: int, *, endpoints: bool = True) -> Any:
    """Let the answer to a Produce or Fetch say who leads, now or after a wait."""
    return outcome if node.membership is None else finish(outcome, partial(hint, node, connection, version, endpoints))


def hint(node: Node, connection: Connection, version: int, endpoints: bool, response: Any) -> Any:
    """Correct the errors of partitions that are led elsewhere. Another broker needs no `endpoints`: it knows them."""
    is_fetch = isinstance(response, m.FetchResponse)
    leaders: set[int] = set()
    for topic, index, row in fetched(response) if is_fetch else produced(response):
        if row.error_code:
            placement = node.placement_of(topic, index)
            if row.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION and placement is not None:
                row.error_code = Error.NOT_LEADER_OR_FOLLOWER  # it is there, but not on this broker
            leader, epoch = (-1, -1) if placement is None else (placement.leader, placement.leader_epoch)
            if row.error_code in MOVED and version >= (FETCH_HINTS if is_fetch else PRODUCE_HINTS):
                kind = m.FetchResponse_LeaderIdAndEpoch if is_fetch else m.ProduceResponse_LeaderIdAndEpoch
                row.current_leader = kind(leader, epoch)
                leaders.add(leader)
    if leaders and endpoints:
        kind = m.FetchResponse_NodeEndpoint if is_fetch else m.ProduceResponse_NodeEndpoint
        response.node_endpoints = [kind(*one) for one in node.brokers(connection.listener) if one[0] in leaders]
    return response


def fetched(response: Any) -> Iterable[Row]:
    return ((t.topic or t.topic_id, row.partition_index, row) for t in response.responses for row in t.partitions)


def produced(response: Any) -> Iterable[Row]:
    return ((t.name or t.topic_id, row.index, row) for t in response.responses for row in t.partition_responses)
