"""Control records: markers that end transactions, and those of the metadata log."""

from enum import IntEnum
from struct import Struct
from struct import error as StructError

from moldau.wire.errors import WireError
from moldau.wire.records.build import build
from moldau.wire.records.parse import Record

_key_of_control = Struct(">hh")
_value_of_marker = Struct(">hi")


class ControlType(IntEnum):
    """What a control record says; it stands in the record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_record(kind: ControlType, value: bytes, timestamp: int) -> Record:
    """Make a control record with an encoded value."""
    return Record(0, timestamp, _key_of_control.pack(0, kind), value)


def control_type(key: bytes | None) -> int:
    """Return the type of a control record, which may be unknown here."""
    try:
        return _key_of_control.unpack_from(key or b"")[1]
    except StructError:
        raise WireError("a control record with a key of less than 4 bytes") from None


def end_txn_marker(
    commit: bool,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    partition_leader_epoch: int = -1,
    base_offset: int = 0,
) -> bytearray:
    """Make the batch that ends a producer's transaction in a partition."""
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return build(
        [control_record(kind, _value_of_marker.pack(0, coordinator_epoch), timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def coordinator_epoch(record: Record) -> int:
    """Return the coordinator's epoch in the value of an end transaction marker."""
    try:
        return _value_of_marker.unpack_from(record.value or b"")[1]
    except StructError:
        raise WireError("an end transaction marker with a value of less than 6 bytes") from None
