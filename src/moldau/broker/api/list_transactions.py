"""ListTransactions (key 66), v0-2: the transactional ids of this coordinator, filtered (KIP-664).

v1 by how long a transaction has been open (KIP-994).  v2 by a regular expression (KIP-1152), in RE2's syntax as in
Kafka, which bounds the time that a pattern can take.
Deviates: nothing known.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.consumer.subscriptions import compiled
from moldau.machines.transactions import STATES, Transaction
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(66, versions=(0, 2), reads="transactions")
def list_transactions(node: Node, connection: Connection, request: m.ListTransactionsRequest, version: int) -> Answer:
    try:
        wanted = make_filter(request, node.clock.wall_ms())
        found = [one for _, machine in node.transactions.all() for one in machine.by_id.values() if wanted(one)]
    except Refused as refused:
        return m.ListTransactionsResponse(error_code=refused.error)
    return m.ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in STATES],
        transaction_states=[
            m.ListTransactionsResponse_TransactionState(one.id, one.producer_id, one.state.title) for one in found
        ],
    )


def make_filter(request: m.ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    """Make a function that tells whether a transaction passes all filters; raises Refused."""
    producers, states = set(request.producer_id_filters), {STATES.get(name) for name in request.state_filters}
    longer_than, text = request.duration_filter, request.transactional_id_pattern
    matches = compiled(text).fullmatch if text else None

    def wanted(one: Transaction) -> bool:
        return bool(
            (not producers or one.producer_id in producers)
            and (not states or one.state in states)
            and (longer_than < 0 or now_ms - one.start_ms > longer_than)
            and (matches is None or matches(one.id))
        )

    return wanted
