"""Guards of APIs that are refused as a whole: a table of what each asks, and how each says no.

Where an answer has a code of its own, that carries the refusal; where it has one for each item, every item does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from moldau.broker.api import Answer
from moldau.broker.authorization import DENIED, GUARDS, Call, Guard, refuse_all
from moldau.machines.metadata import acls
from moldau.wire import messages as m
from moldau.wire.errors import Error

SYNCS_WITH_PROTOCOL = 5  # the version of SyncGroup that names it
Refusal = Callable[[Call[Any], Error], Any]


class Ask(NamedTuple):
    """An operation on a resource; `field` of the request has its name."""

    operation: int
    resource_type: int = acls.CLUSTER
    field: str | None = None


def quietly(call: Call[Any], error: Error) -> Any:
    """Refuse by the answer's code."""
    return m.response_class(call.request.SCHEMA.key)(error_code=error)


def coded(call: Call[Any], error: Error) -> Any:
    """Refuse by the answer's code, and its message if it has one."""
    answer = quietly(call, error)
    if hasattr(answer, "error_message"):
        answer.error_message = error.message
    return answer


def each(items: str, rows: str) -> Refusal:
    """Refuse each of the request's `items` by one of the answer's `rows`."""

    def refusal(call: Call[Any], error: Error) -> Any:
        response = m.response_class(call.request.SCHEMA.key)
        return response(**{rows: refuse_all(response, rows, getattr(call.request, items), error)})

    return refusal


def join_group(call: Call[m.JoinGroupRequest], error: Error) -> Any:
    return m.JoinGroupResponse(error_code=error, protocol_name=None if call.version >= 7 else "")


def sync_group(call: Call[m.SyncGroupRequest], error: Error) -> Any:
    """Name a missing protocol before the missing right, as Kafka does."""
    lacks_protocol = call.request.protocol_type is None or call.request.protocol_name is None
    if call.version >= SYNCS_WITH_PROTOCOL and lacks_protocol:
        error = Error.INCONSISTENT_GROUP_PROTOCOL
    return m.SyncGroupResponse(error_code=error)


def alter_replica_log_dirs(call: Call[m.AlterReplicaLogDirsRequest], error: Error) -> Any:
    topics: dict[str, dict[int, None]] = {}
    for directory in call.request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
    row = m.AlterReplicaLogDirsResponse_AlterReplicaLogDirTopicResult
    part_row = m.AlterReplicaLogDirsResponse_AlterReplicaLogDirPartitionResult
    rows = [row(name, [part_row(index, error) for index in parts]) for name, parts in topics.items()]
    return m.AlterReplicaLogDirsResponse(results=rows)


def elect_leaders(call: Call[m.ElectLeadersRequest], error: Error) -> Any:
    rows = refuse_all(m.ElectLeadersResponse, "replica_election_results", call.request.topic_partitions or (), error)
    return m.ElectLeadersResponse(error_code=error if call.version >= 1 else 0, replica_election_results=rows)


def alter_reassignments(call: Call[m.AlterPartitionReassignmentsRequest], error: Error) -> Any:
    answer = coded(call, error)
    answer.responses = refuse_all(m.AlterPartitionReassignmentsResponse, "responses", call.request.topics, error)
    return answer


def describe_client_quotas(call: Call[m.DescribeClientQuotasRequest], error: Error) -> Any:
    return m.DescribeClientQuotasResponse(error_code=error, error_message=error.message, entries=None)


def alter_scram(call: Call[m.AlterUserScramCredentialsRequest], error: Error) -> Any:
    users = dict.fromkeys(one.name for one in (*call.request.deletions, *call.request.upsertions))
    return m.AlterUserScramCredentialsResponse(
        results=refuse_all(m.AlterUserScramCredentialsResponse, "results", users, error)
    )


JOIN_AS = Ask(acls.READ, acls.GROUP, "group_id")
WRITE_AS = Ask(acls.WRITE, acls.TRANSACTIONAL_ID, "transactional_id")

# What nodes ask of controllers.
OF_NODES = (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)

# What is asked before anything else, one after the other, and how it is refused.
ASKED: dict[int, tuple[tuple[Ask, ...], Refusal]] = {
    8: ((JOIN_AS,), each("topics", "topics")),
    11: ((JOIN_AS,), join_group),
    12: ((JOIN_AS,), quietly),
    13: ((JOIN_AS,), quietly),
    14: ((JOIN_AS,), sync_group),
    25: ((WRITE_AS, JOIN_AS), quietly),
    26: ((WRITE_AS,), quietly),
    28: ((WRITE_AS, JOIN_AS), each("topics", "topics")),
    29: ((Ask(acls.DESCRIBE),), coded),
    30: ((Ask(acls.ALTER),), each("creations", "results")),
    31: ((Ask(acls.ALTER),), each("filters", "filter_results")),
    34: ((Ask(acls.ALTER),), alter_replica_log_dirs),
    35: ((Ask(acls.DESCRIBE),), quietly),
    43: ((Ask(acls.ALTER),), elect_leaders),
    45: ((Ask(acls.ALTER),), alter_reassignments),
    46: ((Ask(acls.DESCRIBE),), coded),
    47: ((Ask(acls.DELETE, acls.GROUP, "group_id"),), quietly),
    48: ((Ask(acls.DESCRIBE_CONFIGS),), describe_client_quotas),
    49: ((Ask(acls.ALTER_CONFIGS),), each("entries", "entries")),
    50: ((Ask(acls.DESCRIBE),), coded),
    51: ((Ask(acls.ALTER),), alter_scram),
    55: ((Ask(acls.DESCRIBE),), coded),
    57: ((Ask(acls.ALTER),), coded),
    64: ((Ask(acls.ALTER),), coded),
    68: ((JOIN_AS,), quietly),
    74: ((Ask(acls.DESCRIBE_CONFIGS),), quietly),
    76: ((JOIN_AS,), quietly),
    78: ((JOIN_AS,), quietly),
    79: ((JOIN_AS,), quietly),
    80: ((Ask(acls.ALTER),), coded),
    81: ((Ask(acls.ALTER),), coded),
    **dict.fromkeys(OF_NODES, ((Ask(acls.CLUSTER_ACTION),), coded)),
    **dict.fromkeys(
        range(83, 88), ((Ask(acls.CLUSTER_ACTION),), each("topics", "results"))
    ),  # the state of share groups
    88: ((JOIN_AS,), quietly),
    91: ((JOIN_AS,), coded),
    92: ((Ask(acls.DELETE, acls.GROUP, "group_id"),), coded),
}
# Handshakes, and tokens, which have rules of their own.
FREE = (17, 18, 36, 38, 39, 40, 41, 71, 72)


def refusal(call: Call[Any], key: int) -> Any:
    """Return the answer that refuses a call as a whole; None lets it pass."""
    asks, refuse = ASKED[key]
    for ask in asks:
        name = acls.CLUSTER_NAME if ask.field is None else getattr(call.request, ask.field)
        if not call.may(ask.operation, ask.resource_type, name):
            return refuse(call, DENIED[ask.resource_type])
    return None


def guarded_whole(key: int, then: Guard, call: Call[Any]) -> Answer:
    refused = refusal(call, key)
    return then(call) if refused is None else refused


def guard(key: int) -> Callable[[Guard], Guard]:
    """Register the guard of an API. If the API has a row above, that is asked first."""

    def register(function: Guard) -> Guard:
        GUARDS[key] = partial(guarded_whole, key, function) if key in ASKED else function
        return function

    return register


for key in (*ASKED, *FREE):
    guard(key)(Call[Any].forward)
