"""Fetch (key 1), v4-18: read record batches, waiting for them if there are none yet.

v4 read_committed.  v5 log start offset.  v7 sessions (KIP-227).  v9 leader epochs (KIP-320).  v11 rack (KIP-392).
v12 truncation hints (KIP-595).  v13 topic ids (KIP-516).  v15 replica state.  v16 node endpoints (KIP-951).
A consumer may read from a follower, up to its high watermark. With Kafka's rack-aware selector as
`replica.selector.class` the leader sends it to a replica in its own rack; other selectors are not known.
Deviates: less than 0 bytes count as 0, and an isolation level that does not exist as read_committed; Kafka fails with
both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.fetch_sessions import Context, Key, Replica, Session, Wanted
from moldau.broker.leader_hints import with_hints
from moldau.broker.node import Node
from moldau.broker.partition import Partition
from moldau.broker.replicas import Table
from moldau.broker.wait import Wait, finish
from moldau.log.log import Isolation
from moldau.machines.metadata.acls import CLUSTER_ACTION, READ, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_ID = bytes(16)
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
Row = tuple[Wanted, m.FetchResponse_PartitionData]


@api(1, versions=(4, 18))
def fetch(node: Node, connection: Connection, request: m.FetchRequest, version: int) -> Answer:
    now = node.clock.monotonic_ms()
    by_id = version >= 13
    try:
        context = open_context(node, request, version, now)
    except Refused as refused:
        return m.FetchResponse(error_code=refused.error)
    isolation = Isolation.COMMITTED if request.isolation_level else Isolation.HIGH_WATERMARK
    if (replica := replica_of(request)) is not None:
        isolation = Isolation.LOG_END
    session = context.session
    if session is not None:
        session.begin(isolation, replica, now)
    if node.authorizer is not None:
        context.denied = unreadable(node, connection, replica, context.topics)
        if session is not None:
            session.deny(context.denied)
    if replica is not None:
        note_replica(node, replica, [one for one in context.wanted if one.topic not in context.denied], by_id)
    elif request.rack_id and node.settings["replica.selector.class"] == RACK_AWARE:
        choose_replicas(node, connection, request.rack_id, context.wanted, by_id)
    max_bytes = min(request.max_bytes, node.settings["fetch.max.bytes"])
    known = node.replicas.table(by_id)
    poll = partial(attempt, known, context, request.min_bytes, max_bytes, isolation, by_id)
    outcome = poll(request.max_wait_ms <= 0)
    if outcome is None and session is not None:
        outcome = session.wait = Wait(now + request.max_wait_ms, poll)
    elif outcome is None:
        outcome = Wait(now + request.max_wait_ms, poll, tuple(known[w.topic][w.index] for w in context.wanted))
    if replica is not None and (node.replication.reassigning or node.replication.sending.is_on()):
        outcome = finish(outcome, partial(count_sent, node, replica[0], known))
    return with_hints(node, connection, outcome, version, endpoints=replica is None)


def open_context(node: Node, request: m.FetchRequest, version: int, now: float) -> Context:
    """Turn the request's rows into what is wanted, folded into a session if there is one."""
    wanted, by_id, anywhere = [], version >= 13, version >= 11 and replica_of(request) is None
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for p in topic.partitions:
            place = p.current_leader_epoch, p.last_fetched_epoch, p.log_start_offset
            one = Wanted(name, p.partition, p.fetch_offset, p.partition_max_bytes, *place, anywhere=anywhere)
            wanted.append(one)
    if len(wanted) > 1:  # of a partition that is named twice, the last counts
        wanted = list({(one.topic, one.index): one for one in wanted}.values())
    if request.session_epoch == -1 and not request.session_id:
        return Context(None, False, wanted)
    forgotten = [(t.topic_id if by_id else t.topic, i) for t in request.forgotten_topics_data for i in t.partitions]
    return node.fetch_sessions.open(request.session_id, request.session_epoch, wanted, forgotten, by_id=by_id, now=now)


def replica_of(request: m.FetchRequest) -> Replica | None:
    """Return id and epoch of the broker that fetches as a follower; None of a client."""
    state = request.replica_state
    replica = (request.replica_id, -1) if state is None else (state.replica_id, state.replica_epoch)
    return replica if replica[0] >= 0 else None


def note_replica(node: Node, replica: Replica, wanted: Sequence[Wanted], by_id: bool) -> None:
    """Let the partitions know how far a follower is; it is told where it is none, by `strange`."""
    known = node.replicas.table(by_id)
    for one in wanted:
        partition = known.get(one.topic, {}).get(one.index)
        if partition is None or partition.leader_error(one.leader_epoch):
            continue
        try:
            if one.last_fetched_epoch < 0 or find_fork(partition, one) is None:
                one.strange = not node.replication.heard_of(partition, *replica, one.offset, one.start_offset)
        except Refused:
            continue
        one.held = is_held(node, partition, replica[0], one)


def is_held(node: Node, partition: Partition, replica: int, one: Wanted) -> bool:
    """Tell whether a follower that is not in sync must wait, for others have been sent too much (KIP-73)."""
    led, throttle = partition.led, node.replication.sending
    is_behind = led is not None and replica not in led.isr
    return is_behind and throttle.holds((one.topic, one.index), node.clock.monotonic_ms())


def count_sent(node: Node, replica: int, known: Table, response: m.FetchResponse) -> m.FetchResponse:
    """Count what a follower is sent, for throttles; and what a new replica is sent, for metrics."""
    now, throttle = node.clock.monotonic_ms(), node.replication.sending
    for topic in response.responses:
        name = topic.topic or topic.topic_id
        for row in topic.partitions:
            throttle.count((name, row.partition_index), len(row.records), now)
            partition = known.get(name, {}).get(row.partition_index)
            if partition is not None and replica in partition.placement.adding:
                node.cluster_counters.reassignment_bytes_out += len(row.records)
    return response


def choose_replicas(node: Node, connection: Connection, rack: str, wanted: Sequence[Wanted], by_id: bool) -> None:
    """Send a consumer to replicas in its own rack (KIP-392)."""
    racks = {broker: where for broker, _, _, where in node.brokers(connection.listener)}
    known = node.replicas.table(by_id)
    for one in wanted:
        partition = known.get(one.topic, {}).get(one.index)
        led = None if partition is None else partition.led
        found = None if led is None else led.nearest(rack, racks, one.offset)
        one.preferred = -1 if found is None else found


def attempt(
    known: Table,
    context: Context,
    min_bytes: int,
    max_bytes: int,
    isolation: Isolation,
    by_id: bool,
    expired: bool,
) -> m.FetchResponse | None:
    """Read all that is wanted; None where it is too little and there is time left."""
    session = context.session
    if session is not None and (fresh := context.fresh()) and not expired:  # is it enough, with what was there before?
        rows, _, urgent = read_rows(known, context, fresh, max_bytes, isolation, by_id)
        session.sizes |= sizes_of(rows)
        if not urgent and sum(session.sizes.values()) < min_bytes:
            return None
    rows, size, urgent = read_rows(known, context, context.wanted, max_bytes, isolation, by_id)
    if size < min_bytes and not urgent and not expired and (context.incremental or context.named):
        response = None
    else:
        response = respond(context, rows, by_id)
    if session is not None:
        session.sizes = sizes_of(rows)
        let_rest(session, rows, isolation)
    return response


def read_rows(
    known: Table, context: Context, some: Sequence[Wanted], max_bytes: int, isolation: Isolation, by_id: bool
) -> tuple[list[Row], int, bool]:
    """Read some partitions, up to a size; tells also how much it is, and whether there is news that cannot wait."""
    rows: list[Row] = []
    session, size, urgent, left = context.session, 0, False, max_bytes
    for wanted in some:
        if wanted.topic in context.denied:
            row = denied_row(wanted)
        else:
            row = read(known, wanted, left, size == 0, isolation, by_id)
        if session is not None:
            session.watch(wanted, known.get(wanted.topic, {}).get(wanted.index))
        rows.append((wanted, row))
        if row.error_code or row.diverging_epoch is not None or wanted.preferred >= 0:
            urgent = True
        count = len(row.records)
        if count:
            size += count
            left = max(0, left - count)
    return rows, size, urgent


def sizes_of(rows: list[Row]) -> dict[Key, int]:
    return {wanted.key: len(row.records) for wanted, row in rows if row.records}


def let_rest(session: Session, rows: list[Row], isolation: Isolation) -> None:
    """Leave alone what the client has all of, and knows all about, until it changes."""
    for wanted, row in rows:
        if not is_news(wanted, row) and wanted.is_level(isolation, session.replica):
            session.rest(wanted)


def unreadable(
    node: Node, connection: Connection, replica: Replica | None, topics: set[bytes | str]
) -> Collection[bytes | str]:
    """Return the topics that the client may not read: replicas act for the cluster, others read topics.

    Not a guard, since a session wants partitions that the request does not name. Of an id that does not exist the
    reading tells.
    """
    if replica is not None:
        return set() if node.may(connection, CLUSTER_ACTION) else topics
    names = {topic: name_of(node, topic) for topic in topics}
    return {topic for topic, name in names.items() if name and not node.may(connection, READ, TOPIC, name)}


def name_of(node: Node, topic: bytes | str) -> str | None:
    """Return a topic's name, also where the client has its id; None where nobody has that id."""
    if isinstance(topic, str):
        return topic
    known = node.cluster.topics_by_id.get(topic)
    return None if known is None else known.name


def denied_row(wanted: Wanted) -> Any:
    error = Error.TOPIC_AUTHORIZATION_FAILED
    return m.FetchResponse_PartitionData(wanted.index, error, -1, aborted_transactions=(), records=b"")


def read(known: Table, wanted: Wanted, max_bytes: int, min_one: bool, isolation: Isolation, by_id: bool) -> Any:
    """Return what one partition has for the client, or why it has nothing."""
    row = m.FetchResponse_PartitionData(wanted.index, Error.NONE, -1, aborted_transactions=None, records=b"")
    partitions = known.get(wanted.topic)
    partition = partitions.get(wanted.index) if partitions else None
    if partition is None:
        unknown_id = by_id and partitions is None
        row.error_code = Error.UNKNOWN_TOPIC_ID if unknown_id else Error.UNKNOWN_TOPIC_OR_PARTITION
        row.aborted_transactions = ()
        return row
    row.error_code = partition.leader_error(wanted.leader_epoch)
    if wanted.anywhere and row.error_code is Error.NOT_LEADER_OR_FOLLOWER:
        row.error_code = partition.epoch_error(wanted.leader_epoch)
    if wanted.strange and not row.error_code:  # whoever names the epoch may have heard of more than this leader has
        row.error_code = Error.NOT_LEADER_OR_FOLLOWER if wanted.leader_epoch < 0 else Error.UNKNOWN_LEADER_EPOCH
    if not row.error_code:
        try:
            fill(row, partition, wanted, max_bytes, min_one, isolation)
        except Refused as refused:
            row.error_code = refused.error
    return row


def fill(row: Any, partition: Partition, wanted: Wanted, max_bytes: int, min_one: bool, isolation: Isolation) -> None:
    """Read the partition's log into its row, or say where the client's history leaves the log's."""
    log = partition.log
    if wanted.preferred >= 0:
        row.preferred_read_replica = wanted.preferred
    elif wanted.last_fetched_epoch >= 0 and (fork := find_fork(partition, wanted)) is not None:
        row.diverging_epoch = fork
    elif not wanted.held:
        found = log.read(wanted.offset, min(max_bytes, wanted.max_bytes), min_one=min_one, isolation=isolation)
        if found.span is not None:
            row.records = found.span
            partition.note_read(wanted.offset)
        if isolation is Isolation.COMMITTED:
            row.aborted_transactions = [m.FetchResponse_AbortedTransaction(*pair) for pair in found.aborted or ()]
    row.high_watermark, row.last_stable_offset = log.high_watermark, log.last_stable_offset
    row.log_start_offset = log.start_offset


def find_fork(partition: Partition, wanted: Wanted) -> Any:
    """Return where the epoch that the client last fetched ended, if that is before the offset it asks for (KIP-595)."""
    if partition.leads:
        partition.begin_epoch()
    epoch, end_offset = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0:
        raise Refused(Error.OFFSET_OUT_OF_RANGE, "the last fetched epoch is not in the log")
    if wanted.offset < partition.log.start_offset:
        raise Refused(Error.OFFSET_OUT_OF_RANGE, "the log begins after this offset")
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.offset:
        return m.FetchResponse_EpochEndOffset(epoch, end_offset)
    return None


def respond(context: Context, rows: list[Row], by_id: bool) -> Any:
    """Group the rows by topic; a session is told only what is new to it."""
    if context.incremental and context.session is not None:
        rows = [row for row in rows if is_news(*row)]
        for wanted, row in rows:
            if row.records and wanted.key in context.session.changed:  # it goes to the end: each gets its turn
                context.session.changed.move_to_end(wanted.key)
    topics: dict[Any, list[Any]] = {}
    for wanted, row in rows:
        topics.setdefault(wanted.topic, []).append(row)
        if context.session is not None:
            wanted.told = told(row)
    topic_row = m.FetchResponse_FetchableTopicResponse
    responses = [
        topic_row("", topic, parts) if by_id else topic_row(topic, NO_ID, parts) for topic, parts in topics.items()
    ]
    return m.FetchResponse(0, Error.NONE, context.session_id, responses)


def told(row: Any) -> tuple[int, int, int] | None:
    """Return what a session remembers of an answer. Nothing of an error, nor of one that makes a follower truncate:
    it takes over nothing else of it.
    """
    if row.error_code or row.diverging_epoch is not None:
        return None
    return row.high_watermark, row.last_stable_offset, row.log_start_offset


def is_news(wanted: Wanted, row: Any) -> bool:
    is_sent_on = row.diverging_epoch is not None or wanted.preferred >= 0
    return bool(len(row.records) or row.error_code or is_sent_on or wanted.told != told(row))
