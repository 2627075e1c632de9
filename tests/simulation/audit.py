"""The audit after each start: everything is read, over the protocol and without a network, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.broker.connection import Connection
from moldau.wire import codec, frames
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from tests.simulation.admin import TOPIC_RESOURCE, Described, Image
from tests.simulation.copies.output import Side, decided
from tests.simulation.copies.spectator import fetch_request
from tests.simulation.ledger import FOREVER, WEEK_MS, Ledger, Seen
from tests.simulation.plan import CHANGELOG, OUTPUT
from tests.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.simulation.world import World

FETCH_VERSION = 12
TOPIC_CONFIG = 1
FLUSH_TIMER_MS = 1100
"""The timer that looks for due flushes runs each second."""
WAITING_JOBS = 30
"""So many other jobs may be before a flush."""


SHARE_STATE = "__share_group_state"
INTERNAL = ("__consumer_offsets", "__transaction_state")
HIDDEN = (*INTERNAL, SHARE_STATE, OUTPUT)
"""Topics that are not the administrator's."""


class Auditor:
    """Calls the node directly."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.connection = Connection(0, peer="auditor")

    def call(self, request: Any, version: int) -> Any:
        connection = self.connection
        frame = frames.request_frame(request, version, 7, "auditor")
        self.world.node.receive(connection, memoryview(bytearray(frame))[4:])
        while connection.wait is not None and self.world.background.hurry():
            pass
        assert connection.wait is None and connection.closing is None, "the auditor does not wait"
        data = b"".join(part if isinstance(part, bytes) else bytes(part.read()) for part in connection.out)
        connection.out.clear()
        key = request.SCHEMA.key
        _, position = frames.response_header(key, version, data[4:])
        return codec.decode(m.response_class(key), version, memoryview(data)[4:], position)

    def image(self) -> Image:
        """Topics, partitions and settings, as the node describes them."""
        topics = self.call(m.MetadataRequest(topics=None), 12).topics
        resources = [m.DescribeConfigsRequest_DescribeConfigsResource(TOPIC_RESOURCE, t.name, None) for t in topics]
        described = self.call(m.DescribeConfigsRequest(resources), 4).results
        configs = {
            result.resource_name: {row.name: row.value for row in result.configs if row.config_source == TOPIC_CONFIG}
            for result in described
        }
        found = {t.name: Described(t.topic_id, len(t.partitions), configs[t.name]) for t in topics}
        if self.world.sides and OUTPUT not in found:
            raise Broken(Property.METADATA, f"there is no topic {OUTPUT} any more")
        return {name: topic for name, topic in found.items() if name not in HIDDEN and not name.endswith(CHANGELOG)}

    def audit_metadata(self) -> None:
        """After a start: what was in doubt is decided, and all else is as it was."""
        image = self.image()
        self.world.admin.resolve(image, restarted=True)
        ours = {t.name: Described(t.id, len(t.ledgers), t.configs) for t in self.world.topics.values()}
        if image != ours:
            raise Broken(Property.METADATA, f"the node says {image}, it promised {ours}")

    def fetch(self, ledger: Ledger, offset: int) -> Any:
        wanted = m.FetchRequest_FetchPartition(
            partition=ledger.index, fetch_offset=offset, partition_max_bytes=self.world.random.choice((1, 500, 1 << 20))
        )
        topics = [m.FetchRequest_FetchTopic(topic=ledger.topic.name, partitions=[wanted])]
        answer = self.call(m.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 22, topics=topics), FETCH_VERSION)
        return answer.responses[0].partitions[0]

    def earliest(self, ledger: Ledger) -> Any:
        part = m.ListOffsetsRequest_ListOffsetsPartition(partition_index=ledger.index, timestamp=-2)
        topics = [m.ListOffsetsRequest_ListOffsetsTopic(ledger.topic.name, [part])]
        return self.call(m.ListOffsetsRequest(-1, 0, topics), 5).topics[0].partitions[0]

    def read_all(self, ledger: Ledger) -> tuple[int, int, list[Seen]] | None:
        """Log start, high watermark and all batches; None if the partition is offline, as it may be."""
        first = self.earliest(ledger)
        if first.error_code:
            self.world.check_refusal(ledger, Error(first.error_code))
            return None
        start = offset = first.offset
        seen: list[Seen] = []
        while True:
            part = self.fetch(ledger, offset)
            if part.error_code:
                self.world.check_refusal(ledger, Error(part.error_code))
                return None
            high = part.high_watermark
            if offset >= high:
                return start, high, seen
            found = ledger.read(part.records, self.world.clock.wall_ms())
            if not found:
                if ledger.topic.compacted:
                    return start, high, seen  # compaction may have taken the last records
                raise ledger.broken(Property.READABLE, f"nothing at offset {offset}, high watermark {high}")
            seen += found
            offset = found[-1].last_offset + 1

    # Groups and copies.

    def audit_groups(self) -> None:
        """Every group is where it was committed to be."""
        for roster in self.world.rosters:
            indexes = {topic: [ledger.index for ledger in topic.ledgers] for topic in roster.topics}
            rows = [m.OffsetFetchRequest_OffsetFetchRequestTopics(t.name, t.id, at) for t, at in indexes.items()]
            asked = m.OffsetFetchRequest_OffsetFetchRequestGroup(roster.name, topics=rows)
            (group,) = self.call(m.OffsetFetchRequest(groups=[asked], require_stable=True), 9).groups
            for topic, row in zip(indexes, group.topics, strict=False):
                for part in row.partitions:
                    if part.error_code == 0:
                        ledger = topic.ledgers[part.partition_index]
                        floor, now = roster.floors.get(ledger, -1), self.world.clock.now
                        roster.found(ledger, part.committed_offset, floor, now)

    def audit_copies(self) -> None:
        """Read all copies from the beginning."""
        for side in self.world.sides:
            offset, values = 0, []
            while True:
                part = self.fetch_committed(side, offset)
                if part.error_code:
                    self.world.check_output(side, Error(part.error_code))
                    break
                side.high, side.stable = part.high_watermark, part.last_stable_offset
                if offset >= part.last_stable_offset:
                    side.read_again(values, offset)
                    break
                before, (offset, found) = offset, decided(str(side), offset, part)
                assert offset > before, f"{side}: nothing at {offset}, the last stable offset is {side.stable}"
                values += found

    def share_state(self, group: str, ledger: Ledger) -> Any:
        """What the share coordinator knows of a partition; None if there is nothing, or nobody to ask."""
        part = m.ReadShareGroupStateRequest_PartitionData(ledger.index, -1)
        topic = m.ReadShareGroupStateRequest_ReadStateData(ledger.topic.id, [part])
        row = self.call(m.ReadShareGroupStateRequest(group, [topic]), 0).results[0].partitions[0]
        return None if row.error_code else row

    def transactions(self) -> list[Any]:
        """Those that have not ended."""
        asked = m.ListTransactionsRequest(["Ongoing", "PrepareCommit", "PrepareAbort"])
        answer = self.call(asked, 1)
        assert answer.error_code == 0, Error(answer.error_code).name
        return answer.transaction_states

    def internal_ends(self) -> list[tuple[str, int, int]]:
        """Partitions of internal topics in which something is not decided: how far it is, and where they end."""
        known = self.world.node.cluster.topics
        places = [(name, index) for name in INTERNAL if name in known for index in known[name].partitions]
        ends = [(f"{name}-{index}", self.latest(name, index, 1), self.latest(name, index, 0)) for name, index in places]
        return [end for end in ends if end[1] < end[2]]

    def latest(self, topic: str, index: int, isolation: int) -> int:
        part = m.ListOffsetsRequest_ListOffsetsPartition(partition_index=index, timestamp=-1)
        request = m.ListOffsetsRequest(-1, isolation, [m.ListOffsetsRequest_ListOffsetsTopic(topic, [part])])
        return self.call(request, 5).topics[0].partitions[0].offset

    def fetch_committed(self, side: Side, offset: int) -> Any:
        request = fetch_request(self.world, side, offset)
        request.max_wait_ms = request.min_bytes = 0
        return self.call(request, FETCH_VERSION).responses[0].partitions[0]

    # Ledgers.

    def audit(self, ledger: Ledger) -> None:
        """Read a partition from its start to its end, and hold it against the ledger."""
        try:
            read = self.read_all(ledger)
        except WireError:
            self.world.counts["rot noticed by the CRC"] += 1
            if ledger.unsure:  # what the power took cannot be told any more
                ledger.lose_from(0)
                ledger.unsure = False
            return
        if read is None:
            return
        start, high, seen = read
        self.world.events.note(f"audit {ledger} {start}..{high}, {sum(len(s.names) for s in seen)} records")
        sure = ledger.safe if ledger.unsure else ledger.high
        buried = ledger.tombstones()
        check_bounds(self.world, ledger, start, high)
        if ledger.topic.compacted:
            check_last_values(ledger, start, sure, buried, seen)
        else:
            check_gaps(ledger, start, high, seen)
        check_start(self.world, ledger, start, seen)
        check_order(ledger, seen)
        ledger.start = max(ledger.start, start)
        ledger.high = max(ledger.high, high)
        ledger.unsure = False


def check_bounds(world: World, ledger: Ledger, start: int, high: int) -> None:
    if not ledger.unsure:
        if high < ledger.high:
            which = Property.PROCESS_CRASH_LOSES_NOTHING if ledger.acked > high else Property.NEVER_BACK
            raise ledger.broken(which, f"ends at {high}; promised or read to {ledger.high}, acked {ledger.acked}")
        if start < ledger.start:
            raise ledger.broken(Property.NEVER_BACK, f"begins at {start}, after {ledger.start}")
        return
    if high < ledger.safe:
        raise ledger.broken(Property.SYNCED_SURVIVES, f"ends at {high}, {ledger.safe} records were promised for good")
    slack = FLUSH_TIMER_MS + WAITING_JOBS * world.plan.sync_ms
    due = world.down_ms - ledger.topic.flush_ms - slack
    flushed = max((end for when, end in ledger.acks if when < due), default=0)
    if high < flushed and not ledger.faulty and world.uptime_ms > slack:
        raise ledger.broken(Property.FLUSH_MS, f"ends at {high}, flush.ms should have kept {flushed} records")
    ledger.start = min(start, ledger.start)  # names that were removed may be back
    for session in ledger.lose_from(high):
        session.lossy = True


def check_gaps(ledger: Ledger, start: int, high: int, seen: list[Seen]) -> None:
    offset = seen[0].base_offset if seen else high
    if offset > start or (not seen and start != high):
        raise ledger.broken(Property.NO_GAP, f"begins at {start}, but the first batch at {offset}")
    for batch in seen:
        if batch.base_offset != offset:
            raise ledger.broken(Property.NO_GAP, f"offset {offset} is followed by {batch.base_offset}")
        offset = batch.last_offset + 1


def check_last_values(ledger: Ledger, start: int, sure: int, buried: dict[bytes, int], seen: list[Seen]) -> None:
    """Of the records before `sure`, the newest of each key is there, or a newer one, unless a tombstone took it.

    After a loss of power the records behind may be missing anywhere: compaction leaves gaps, so a gap proves nothing.
    """
    offsets = [offset for batch in seen for offset in batch.offsets]
    if offsets != sorted(set(offsets)):
        raise ledger.broken(Property.NO_GAP, f"offsets do not ascend: {offsets}")
    there: dict[bytes, int] = {}
    for offset in offsets:
        there[ledger.key_at(offset)] = offset
    known = sorted(offset for offset in ledger.known if start <= offset < sure)
    for key, offset in {ledger.key_at(offset): offset for offset in known}.items():
        if there.get(key, -1) < offset and buried.get(key, -1) < offset:
            raise ledger.broken(Property.LAST_VALUE, f"{key!r} at {offset} is gone")
    if ledger.unsure:
        for session in ledger.lose(
            [offset for offset in ledger.known if offset >= sure and offset not in set(offsets)]
        ):
            session.lossy = True


def check_start(world: World, ledger: Ledger, start: int, seen: list[Seen]) -> None:
    """Whatever has gone from the beginning of the log since the last audit was deleted for a reason."""
    topic, first = ledger.topic, max(ledger.cut_to, ledger.accounted)
    ledger.accounted = max(ledger.accounted, start)
    by_size, by_time = topic.smallest_retention_bytes < FOREVER, topic.shortest_retention_ms < WEEK_MS
    if topic.compacted or (by_size and (by_time or ledger.unsure)):
        return  # of what was kept when it went, some may have gone since; compaction takes what it likes
    kept, now = sum(batch.size for batch in seen), world.clock.wall_ms()
    for name in [ledger.known[offset] for offset in range(first, start) if offset in ledger.known]:
        sent, at = ledger.sent[name]
        age = now - (sent.sent_ms if topic.append_time else sent.items[at].timestamp)
        if age <= topic.shortest_retention_ms and kept < topic.smallest_retention_bytes:
            raise ledger.broken(Property.RETENTION, f"{name!r} is gone, {age} ms old; {kept} B are left")


def check_order(ledger: Ledger, seen: list[Seen]) -> None:
    """Of each session: first occurrences ascend; with idempotence they follow each other without a gap."""
    last: dict[int, int] = {}
    met: set[bytes] = set()
    whole = not ledger.start and not ledger.topic.compacted
    for name in (name for batch in seen for name in batch.names):
        sent, at = ledger.sent[name]
        number, session = sent.number + at, sent.session
        before = last.get(id(session), number - 1)
        backwards = number <= before and (session.idempotent or (whole and session.answered and name not in met))
        skipped = number > before + 1 and session.idempotent and not ledger.topic.compacted
        if backwards or skipped:
            raise ledger.broken(Property.IN_ORDER, f"{name!r} follows record {before} of its session")
        last[id(session)] = max(number, before)
        met.add(name)
