"""Batches made of records."""

from collections.abc import Iterable, Sequence

from moldau.wire.compression import Buffer, Compression, compress
from moldau.wire.numbers import KEPT, ZIGZAGS, zigzag
from moldau.wire.records.batch import seal
from moldau.wire.records.layout import (
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_START,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from moldau.wire.records.parse import Headers, Record

NULL = zigzag(-1)
NO_HEADERS = zigzag(0)
NO_PRODUCER = (NO_PRODUCER_ID, -1)
AT_BASE_TIMESTAMP = b"\0\0"


def build(
    items: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: int = Compression.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = 0,
    partition_leader_epoch: int = -1,
    sparse: bool = False,
    last_offset_delta: int | None = None,
    delete_horizon: int | None = None,
) -> bytearray:
    """Make a batch. The records are numbered from `base_offset` on; if `sparse`, they keep their own offsets.

    With `timestamp_type` 1 the largest timestamp stands for all. `delete_horizon` is what the cleaner sets.
    """
    kept = list(items)
    base_timestamp = kept[0].timestamp if kept else NO_TIMESTAMP
    if delete_horizon is not None:
        base_timestamp = delete_horizon
    deltas = [record.offset - base_offset for record in kept] if sparse else range(len(kept))
    starts = {stamp: b"\0" + zigzag(stamp - base_timestamp) for stamp in {record.timestamp for record in kept}}
    rows = zip(deltas, kept, strict=True)
    body = b"".join([encode_record(delta, r.key, r.value, r.headers, starts[r.timestamp]) for delta, r in rows])
    if last_offset_delta is None:
        last_offset_delta = max(deltas, default=0)
    attributes = (
        compression
        | (LOG_APPEND_TIME if timestamp_type else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (0 if delete_horizon is None else DELETE_HORIZON)
    )
    max_timestamp = max(starts, default=NO_TIMESTAMP)
    head = (partition_leader_epoch, attributes, last_offset_delta, base_timestamp, max_timestamp)
    producer = (producer_id, producer_epoch, base_sequence)
    return assemble(base_offset, *head, *producer, len(kept), compress(compression, body, level))


def build_pairs(
    pairs: Sequence[tuple[bytes | None, bytes | None]],
    timestamp: int,
    producer: tuple[int, int] | None = None,
    compression: int = Compression.NONE,
) -> bytearray:
    """Make a batch of keys and values with one timestamp, of a transaction if there is a producer (id and epoch)."""
    body = b"".join([encode_record(delta, key, value) for delta, (key, value) in enumerate(pairs)])
    return build_encoded(body, len(pairs), timestamp, compression, producer=producer)


def build_encoded(
    body: bytes,
    count: int,
    timestamp: int,
    compression: int = Compression.NONE,
    level: int | None = None,
    producer: tuple[int, int] | None = None,
) -> bytearray:
    """Make a batch of encoded records with one timestamp."""
    attributes, (id, epoch) = (0, NO_PRODUCER) if producer is None else (TRANSACTIONAL, producer)
    if compression:
        attributes, body = attributes | compression, compress(compression, body, level)
    return assemble(0, -1, attributes, count - 1, timestamp, timestamp, id, epoch, -1, count, body)


def assemble(
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    count: int,
    body: Buffer,
) -> bytearray:
    """Make a batch of header fields and encoded, compressed records; compute length and CRC."""
    out = bytearray(HEADER_SIZE + len(body))
    length = len(out) - LENGTH_START
    first = (base_offset, length, partition_leader_epoch, MAGIC, 0, attributes, last_offset_delta)
    producer = (producer_id, producer_epoch, base_sequence)
    HEADER.pack_into(out, 0, *first, base_timestamp, max_timestamp, *producer, count)
    out[HEADER_SIZE:] = body
    seal(memoryview(out))
    return out


# Varints are looked up in place: calls would take half of the time.
def encode_record(
    offset_delta: int, key: bytes | None, value: bytes | None, headers: Headers = (), start: bytes = AT_BASE_TIMESTAMP
) -> bytes:
    """Encode a record with its length in front; `start` is its attributes and its time since the base timestamp."""
    place = ZIGZAGS[offset_delta] if 0 <= offset_delta < KEPT else zigzag(offset_delta)
    if key is None:
        key_size, key = NULL, b""
    else:
        n = len(key)
        key_size = ZIGZAGS[n] if n < KEPT else zigzag(n)
    if value is None:
        value_size, value = NULL, b""
    else:
        n = len(value)
        value_size = ZIGZAGS[n] if n < KEPT else zigzag(n)
    more = _headers(headers) if headers else NO_HEADERS
    body = b"%b%b%b%b%b%b%b" % (start, place, key_size, key, value_size, value, more)
    n = len(body)
    return (ZIGZAGS[n] if n < KEPT else zigzag(n)) + body


def _headers(headers: Headers) -> bytes:
    parts = [zigzag(len(headers))]
    for name, value in headers:
        data = name.encode(errors="surrogateescape")
        parts.append(zigzag(len(data)) + data)
        parts.append(NULL if value is None else zigzag(len(value)) + value)
    return b"".join(parts)
