"""Checkpoints of the metadata: the bytes of a snapshot of its log, and of the `bootstrap.checkpoint` of a new cluster.

A checkpoint has a header, control records (the level of kraft.version, and the voters if they are dynamic, KIP-853),
metadata records and a footer. Kafka reads every control record in version 0, whatever version the record names, and one
that it cannot read ends its process: so they are written in version 0 alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.machines.metadata import records as metadata_records
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import WireError
from moldau.wire.records import ControlType, Record, batches, build, control_record, control_type, records

BATCH_RECORDS = 1000
CONTROL_VERSION = 0
DYNAMIC_VOTERS = 1  # the level of kraft.version since which the log names the voters
KINDS: dict[int, type[Any]] = {
    ControlType.SNAPSHOT_HEADER: m.SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: m.SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: m.KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: m.VotersRecord,
}
TYPES = {cls: ControlType(kind) for kind, cls in KINDS.items()}


@dataclass(slots=True)
class Checkpoint:
    """What a checkpoint says: metadata records, and who votes if its log names the voters."""

    records: list[Any] = field(default_factory=list[Any])
    voters: m.VotersRecord | None = None
    kraft_version: int = 0


def checkpoint(
    controls: Sequence[Record],
    values: Sequence[Record],
    wall_ms: int,
    epoch: int,
    *,
    contained_ms: int | None = None,
) -> bytes:
    """Build a checkpoint. `contained_ms` is the time of the last record that it stands for, by default now."""
    header = m.SnapshotHeaderRecord(CONTROL_VERSION, wall_ms if contained_ms is None else contained_ms)
    groups = [(True, [control(header, wall_ms), *controls])]
    for first in range(0, len(values), BATCH_RECORDS):
        groups.append((False, list(values[first : first + BATCH_RECORDS])))
    groups.append((True, [control(m.SnapshotFooterRecord(CONTROL_VERSION), wall_ms)]))
    parts: list[bytearray] = []
    offset = 0
    for is_control, some in groups:
        parts.append(build(some, base_offset=offset, control=is_control, partition_leader_epoch=epoch))
        offset += len(some)
    return b"".join(parts)


def control(message: Any, wall_ms: int) -> Record:
    """Make the control record of a message, such as KRaftVersionRecord or VotersRecord."""
    return control_record(TYPES[type(message)], codec.encode(message, CONTROL_VERSION), wall_ms)


def voter_controls(voters: m.VotersRecord, wall_ms: int) -> list[Record]:
    """Make the control records by which a log has dynamic voters."""
    return [control(m.KRaftVersionRecord(CONTROL_VERSION, DYNAMIC_VOTERS), wall_ms), control(voters, wall_ms)]


def metadata_values(changes: Iterable[Any], wall_ms: int) -> list[Record]:
    """Make the log records of metadata records."""
    return [Record(0, wall_ms, None, metadata_records.encode(change)) for change in changes]


def read_checkpoint(data: bytes | memoryview) -> Checkpoint:
    """Read a checkpoint; WireError if it is damaged, cut short or makes no sense."""
    found = Checkpoint()
    is_open = is_complete = False
    for kind, message in _messages(data):
        if is_complete or is_open == (kind == ControlType.SNAPSHOT_HEADER):
            raise WireError(f"a checkpoint with a {message.SCHEMA.name} outside of its header and footer")
        is_open, is_complete = True, kind == ControlType.SNAPSHOT_FOOTER
        if kind is None:
            found.records.append(message)
        elif kind == ControlType.KRAFT_VERSION:
            found.kraft_version = message.k_raft_version
        elif kind == ControlType.KRAFT_VOTERS:
            found.voters = message
    if not is_complete:
        raise WireError("a checkpoint without a footer")
    _check_voters(found)
    return found


def _messages(data: bytes | memoryview) -> Iterator[tuple[int | None, Any]]:
    """Yield the records in order; control records with their type."""
    expected = 0
    for batch in batches(data):
        batch.verify()
        if batch.base_offset != expected:
            raise WireError(f"a checkpoint with offset {batch.base_offset} where {expected} is due")
        expected = batch.next_offset
        for record in records(batch):
            if batch.is_control:
                yield _control(record)
            else:
                yield None, metadata_records.decode(record.value or b"")


def _control(record: Record) -> tuple[int, Any]:
    kind = control_type(record.key)
    if kind not in KINDS:
        raise WireError(f"a checkpoint with a control record of type {kind}")
    message = codec.decode(KINDS[kind], CONTROL_VERSION, record.value or b"")
    if message.version != CONTROL_VERSION:
        raise WireError(f"{message.SCHEMA.name} of version {message.version}, not {CONTROL_VERSION}")
    return kind, message


def _check_voters(found: Checkpoint) -> None:
    """Refuse voters that could not vote: none, one twice, or some at a level of kraft.version that has none."""
    if found.voters is None:
        return
    ids = [voter.voter_id for voter in found.voters.voters]
    if not ids or len(set(ids)) < len(ids) or found.kraft_version < DYNAMIC_VOTERS:
        raise WireError(f"a checkpoint with the voters {ids} at kraft.version {found.kraft_version}")
