"""ShareFetch (key 78), v1-2: a member of a share group acquires records, waiting for them if there are none (KIP-932).

v1 the first.  v2 acquiring by the record (KIP-1206), renewing locks (KIP-1222).
Deviates: a topic id that nobody has is UNKNOWN_TOPIC_ID for its partitions, and an acquire mode that does not exist
INVALID_REQUEST; Kafka fails with both. Where a group begins in a partition is written down when it is decided.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from moldau.broker.node import Node
from moldau.broker.share.acknowledgements import RENEWS_FROM, Told, acknowledge, acknowledged_in, member_of
from moldau.broker.share.partitions import Shared
from moldau.broker.share.reading import read_shared
from moldau.broker.share.sessions import Part, ShareSession
from moldau.broker.wait import Wait
from moldau.machines.share.partition import Wanted
from moldau.machines.share.state import Key
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

BATCHES, RECORDS = 0, 1  # the acquire modes
FRUITLESS = 16  # reads of a partition in one attempt that may find nothing but aborted records


@api(78, versions=(1, 2))
async def share_fetch(node: Node, connection: Connection, request: m.ShareFetchRequest, version: int) -> Answer:
    said = acknowledged_in(request)
    try:
        group, member = member_of(node, request)
        check_fields(request, version)
        session = find_session(node, connection, group, member, request, bool(said))
    except Refused as refused:
        response = m.ShareFetchResponse(error_code=refused.error)
        if refused.error is Error.SHARE_SESSION_LIMIT_REACHED:  # lest the member comes again at once
            deadline = node.clock.monotonic_ms() + max(0, request.max_wait_ms)
            return Wait(deadline, lambda expired: response if expired else None)
        return response
    told = await acknowledge(node, session, said, version, request.is_renew_ack)
    poll = Poll(node, session, request, told)
    if request.share_session_epoch == FINAL_EPOCH:
        node.share_partitions.end_session(session)
        return poll.respond({})
    now = node.clock.monotonic_ms()
    ready = poll.attempt(request.max_wait_ms <= 0)
    return Wait(now + request.max_wait_ms, poll.attempt, poll.watches()) if ready is None else ready


def check_fields(request: m.ShareFetchRequest, version: int) -> None:
    """Refuse a request that renews locks and asks for records, or that has an unknown acquire mode."""
    asks = request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms
    nonsense = version >= RENEWS_FROM and request.is_renew_ack and any(asks)
    if nonsense or request.share_acquire_mode not in (BATCHES, RECORDS):
        raise Refused(Error.INVALID_REQUEST, "")


def find_session(
    node: Node, connection: Connection, group: str, member: str, request: m.ShareFetchRequest, acknowledges: bool
) -> ShareSession:
    """Return the session that a request opens, goes on with or closes; raises Refused."""
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return node.share_sessions.find(group, member)
    added = [(bytes(topic.topic_id), part.partition_index) for topic in request.topics for part in topic.partitions]
    if epoch == INITIAL_EPOCH:
        if acknowledges:
            raise Refused(Error.INVALID_REQUEST, "Nothing was delivered yet that could be acknowledged.")
        return node.share_sessions.open(group, member, connection.id, added)
    session = node.share_sessions.proceed(group, member, epoch)
    session.parts.update(dict.fromkeys(added))
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.parts.pop((bytes(topic.topic_id), index), None)
    return session


class Poll:
    """One fetch: tried at once, and again when a partition has records or records are available again."""

    def __init__(self, node: Node, session: ShareSession, request: m.ShareFetchRequest, told: dict[Part, Told]) -> None:
        self.node = node
        self.request = request
        self.told = told
        self.group, self.member = session.group, session.member
        self.is_first = request.share_session_epoch == INITIAL_EPOCH
        parts = list(session.parts)
        turn = request.share_session_epoch % len(parts) if parts else 0
        self.parts = parts[turn:] + parts[:turn]  # so that each is the first now and then
        self.isolation = node.share_partitions.isolation(self.group)
        self.max_bytes = min(request.max_bytes, node.settings["fetch.max.bytes"])
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.wanted = Wanted(request.max_records, request.batch_size, request.share_acquire_mode == RECORDS)

    def watches(self) -> tuple[object, ...]:
        """Return the logs, and the share partitions by their keys."""
        homes = [self.node.replicas.by_id.get(topic_id, {}).get(index) for topic_id, index in self.parts]
        return *(home for home in homes if home is not None), *(Key(self.group, *part) for part in self.parts)

    def attempt(self, expired: bool) -> Any:
        """Acquire what there is; None where it is too little and there is time left."""
        if not self.parts or self.max_bytes <= 0 or self.wanted.records <= 0:
            return self.respond({})
        rows: dict[Part, Any] = {}
        ready: dict[Part, Shared] = {}
        for part in self.parts:
            try:
                if (shared := self.open(part)) is not None and shared.machine.has_room():
                    ready[part] = shared
            except Refused as refused:
                rows[part] = self.row(part, refused.error)
        if not expired and len(rows) < len(self.parts) and not self.is_enough(ready):
            return None
        self.acquire(ready, rows)
        return self.respond(rows)

    def open(self, part: Part) -> Shared | None:
        """Return a share partition; None while its state is being loaded. Raises Refused."""
        topic_id, index = part
        partitions = self.node.replicas.by_id.get(topic_id)
        if partitions is None:
            raise Refused(Error.UNKNOWN_TOPIC_ID, "")
        if index not in partitions:
            raise Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, "")
        home = partitions[index]
        if error := home.leader_error(-1):
            raise Refused(error, "")
        try:
            return self.node.share_partitions.open(Key(self.group, *part), home)
        except Refused as refused:
            if refused.error is Error.COORDINATOR_LOAD_IN_PROGRESS:
                return None
            raise

    def is_enough(self, ready: dict[Part, Shared]) -> bool:
        """Tell whether enough bytes could be acquired; what cannot be read is reported at once."""
        if not ready:
            return False
        size = 0
        for shared in ready.values():
            if shared.home.log.offline is None:
                try:
                    size += shared.home.log.readable_bytes(shared.machine.fetch_offset(), self.isolation)
                except Refused:
                    return True
        return size >= self.min_bytes

    def acquire(self, ready: dict[Part, Shared], rows: dict[Part, Any]) -> None:
        """Share out the bytes evenly, and the records as they come."""
        wanted = self.wanted
        for part, shared in ready.items():
            if wanted.records <= 0:
                break
            try:
                row, count = self.take(part, shared, wanted, self.max_bytes // len(ready))
            except Refused as refused:
                row, count = self.row(part, refused.error), 0
            rows[part] = row
            wanted = wanted._replace(records=wanted.records - count)

    def take(self, part: Part, shared: Shared, wanted: Wanted, max_bytes: int) -> tuple[Any, int]:
        """Read and acquire; batches of aborted transactions are passed over. Returns a row and how many records."""
        machine, row = shared.machine, self.row(part, Error.NONE)
        for _ in range(FRUITLESS):
            offset = machine.fetch_offset()
            enough = max(machine.next, offset) + wanted.records
            fetched = read_shared(shared.home.log, offset, enough, max_bytes, self.isolation)
            if fetched is None:
                break
            now = self.node.clock.monotonic_ms()
            taken = machine.acquire(self.member, fetched.ranges, wanted, now, fetched.aborted)
            if taken:
                self.node.share_partitions.note_deadline(shared)
                row.records = fetched.slice(taken)
                acquired = m.ShareFetchResponse_AcquiredRecords
                row.acquired_records = [acquired(run.first, run.last, run.deliveries) for run in taken]
                return row, sum(run.records for run in taken)
            if machine.fetch_offset() == offset:
                break
        return row, 0

    def row(self, part: Part, error: Error) -> Any:
        return m.ShareFetchResponse_PartitionData(part[1], error, records=b"")

    def respond(self, rows: dict[Part, Any]) -> Any:
        """Make the response. A session hears of partitions only if there is something new, except at first."""
        rows = {part: row for part, row in rows.items() if self.is_first or row.error_code or row.acquired_records}
        for part, (error, message) in self.told.items():
            row = rows.setdefault(part, self.row(part, Error.NONE))
            row.acknowledge_error_code, row.acknowledge_error_message = error, message
        topics: dict[bytes, list[Any]] = {}
        for (topic_id, _), row in rows.items():
            topics.setdefault(topic_id, []).append(row)
        return m.ShareFetchResponse(
            acquisition_lock_timeout_ms=self.node.share_partitions.limits(self.group).lock_ms,
            responses=[m.ShareFetchResponse_ShareFetchableTopicResponse(*topic) for topic in topics.items()],
        )
