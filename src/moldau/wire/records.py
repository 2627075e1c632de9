"""Record batches, format 2: the header of 61 bytes, the records behind it, and how both are made.

```
base_offset 8 | length 4 | leader_epoch 4 | magic 1 | crc 4 | attributes 2 | last_offset_delta 4
| base_timestamp 8 | max_timestamp 8 | producer_id 8 | producer_epoch 2 | base_sequence 4 | count 4 | records
```
`length` counts from the leader epoch on. The CRC-32C covers everything from the attributes on, so that a broker sets
base offset and leader epoch without a new one. The records alone are compressed.

A `Batch` is a parsed header over the bytes it stands in; nothing is copied before `records` is called. What a header
says is checked only as far as framing needs it (a broker has an error code of its own for each lie); `records` checks
the rest, and raises WireError and nothing else, in time and memory bounded by the batch and by `limit`.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, cast

from moldau.wire.compression import Buffer, Compression, compress, decompress
from moldau.wire.crc import crc32c
from moldau.wire.errors import WireError

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
LENGTH_START = 12  # what `length` counts begins here
CRC_START = 21  # what the CRC covers begins here
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40  # the base timestamp is the delete horizon (KIP-534)

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
MAX_DECOMPRESSED = 1 << 27
"""How large the records of one batch may become when nothing else is said."""

_offset_length_epoch = Struct(">qii")
_crc = Struct(">I")
_attributes_at, _max_timestamp_at, _producer_at = 21, 35, 43
_identity = Struct(">qhi")
_short = Struct(">h")
_long = Struct(">q")
_key_of_control = Struct(">hh")
_value_of_marker = Struct(">hi")

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record; the header keys are text (bytes that are no UTF-8 survive as surrogates)."""

    offset: int = 0
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


# A named tuple's own constructor is Python code and takes twice as long.
_new_tuple = cast(Callable[[type[Record], tuple[object, ...]], Record], tuple.__new__)  # pyright: ignore[reportUnknownMemberType]


class Batch:
    """A parsed header. `view` is the whole batch, or as much of it as there was."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "size",
        "view",
    )

    def __init__(self, data: Buffer, position: int = 0) -> None:
        """Parse the header at `position`; WireError when there is none of format 2."""
        try:
            (
                self.base_offset,
                length,
                self.partition_leader_epoch,
                self.magic,
                self.crc,
                self.attributes,
                self.last_offset_delta,
                self.base_timestamp,
                self.max_timestamp,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                self.count,
            ) = HEADER.unpack_from(data, position)
        except StructError:
            raise WireError(f"{len(data) - position} bytes are no record batch") from None
        if self.magic != MAGIC:
            raise WireError(f"record batch of magic {self.magic}, not {MAGIC}")
        self.size = size = length + LENGTH_START
        if size < HEADER_SIZE:
            raise WireError(f"record batch of length {length}")
        self.view = memoryview(data)[position : position + size]

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """The codec's number, which may be one that nobody knows."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """0: the producer's time, 1: the time of the append."""
        return (self.attributes & LOG_APPEND_TIME) >> 3

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def delete_horizon(self) -> int | None:
        """When the tombstones or the marker of this batch may go, once the cleaner has set it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def is_whole(self) -> bool:
        return len(self.view) == self.size

    def is_valid(self) -> bool:
        """Whether all of the batch is there and its CRC is right."""
        return len(self.view) == self.size and crc32c(self.view[CRC_START:]) == self.crc

    def verify(self) -> None:
        """WireError when the batch is torn or its CRC is wrong."""
        if not self.is_valid():
            raise WireError(f"record batch at offset {self.base_offset} is torn or has a wrong CRC")

    def body(self, limit: int = MAX_DECOMPRESSED) -> bytes:
        """The records as bytes, decompressed."""
        if len(self.view) != self.size:
            raise WireError(f"record batch of {self.size} bytes where {len(self.view)} are left")
        return decompress(self.attributes & CODEC_MASK, self.view[HEADER_SIZE:], limit)

    def __repr__(self) -> str:
        return f"Batch({self.base_offset}..{self.last_offset}, {self.count} records, {self.size} bytes)"


def batches(data: Buffer) -> Iterator[Batch]:
    """The batches that `data` consists of; WireError where it is torn or no batch."""
    view, position, end = memoryview(data), 0, len(data)
    while position < end:
        batch = Batch(view, position)
        position += batch.size
        if position > end:
            raise WireError(f"record batch of {batch.size} bytes where {len(batch.view)} are left")
        yield batch


def records(batch: Batch, limit: int = MAX_DECOMPRESSED) -> Iterator[Record]:
    """The records of a batch, one by one. A damage is noticed when it is reached, perhaps after good records."""
    if batch.count < 0:
        raise WireError(f"record batch with {batch.count} records")
    append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else None
    return _records(batch.body(limit), batch.count, batch.base_offset, batch.base_timestamp, append_time)


# The loop is long and repeats itself because a call per field would halve its speed. A varint of one byte is decoded
# in place, and one of two bytes where such are usual. No field is checked against the end of its record: all of them
# only ever move `at` forward, so that one comparison behind the last one finds every wrong length, and a read beyond
# the data raises IndexError. In `data[at : (at := ...)]` the start is taken before `at` moves.
def _records(
    data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> Iterator[Record]:
    new, record, total, at = _new_tuple, Record, len(data), 0
    headers: Headers
    try:
        for _ in range(count):
            n = data[at]
            at += 1
            if n > 127:
                if (high := data[at]) < 128:
                    n += (high << 7) - 128
                    at += 1
                else:
                    n, at = varint(data, at - 1)
            end = at + (n >> 1)
            if n & 1 or end > total:
                raise WireError(f"a record of {(n >> 1) ^ -(n & 1)} bytes where {total - at} are left")
            n = data[at + 1]  # behind the attributes, which have no meaning yet
            at += 2
            if n > 127:
                n, at = varlong(data, at - 1)
            timestamp = base_timestamp + ((n >> 1) ^ -(n & 1)) if append_time is None else append_time
            n = data[at]
            at += 1
            if n > 127:
                if (high := data[at]) < 128:
                    n += (high << 7) - 128
                    at += 1
                else:
                    n, at = varint(data, at - 1)
            offset = base_offset + ((n >> 1) ^ -(n & 1))
            n = data[at]
            at += 1
            if n > 127:
                n, at = varint(data, at - 1)
            key = None if n & 1 else data[at : (at := at + (n >> 1))]
            n = data[at]
            at += 1
            if n > 127:
                if (high := data[at]) < 128:
                    n += (high << 7) - 128
                    at += 1
                else:
                    n, at = varint(data, at - 1)
            value = None if n & 1 else data[at : (at := at + (n >> 1))]
            headers, at = _headers(data, at) if data[at] else ((), at + 1)
            if at != end:
                raise WireError(f"the fields of a record end at {at}, the record at {end}")
            yield new(record, (offset, timestamp, key, value, headers))
    except IndexError:
        raise WireError("a record ends after its batch") from None
    if at != total:
        raise WireError(f"{total - at} bytes behind the last record")


def _headers(data: bytes, at: int) -> tuple[Headers, int]:
    n, at = varint(data, at)
    if n & 1 or n >> 1 > len(data) - at:
        raise WireError("a record with an impossible number of headers")
    found: list[tuple[str, bytes | None]] = []
    for _ in range(n >> 1):
        n, at = varint(data, at)
        if n & 1:
            raise WireError("a header without a key")
        key = data[at : at + (n >> 1)].decode(errors="surrogateescape")
        n, at = varint(data, at + (n >> 1))
        value = None if n & 1 else data[at : at + (n >> 1)]
        at += 0 if n & 1 else n >> 1
        found.append((key, value))
    return tuple(found), at


def varint(data: Buffer, at: int) -> tuple[int, int]:
    """A varint of at most 32 bits before its zigzag is undone, and the position behind it."""
    n, at = varlong(data, at)
    if n >> 32:
        raise WireError("a varint of more than 32 bits")
    return n, at


def varlong(data: Buffer, at: int) -> tuple[int, int]:
    """The same with 64 bits."""
    first = data[at]
    if first < 128:
        return first, at + 1
    second = data[at + 1]
    if second < 128:
        return first - 128 | second << 7, at + 2
    n = first & 127 | (second & 127) << 7
    for place in range(2, 10):
        byte = data[at + place]
        n |= (byte & 127) << 7 * place
        if byte < 128:
            if n >> 64:
                break
            return n, at + place + 1
    raise WireError("a varint of more than 64 bits")


def unsigned(n: int) -> bytes:
    """An unsigned varint."""
    if n < 128:
        return _ONE_BYTE[n]
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n: int) -> bytes:
    """A signed varint, of 32 or of 64 bits."""
    return unsigned(n << 1 if n >= 0 else ~(n << 1))


_ONE_BYTE = [bytes((n,)) for n in range(128)]
_NULL = zigzag(-1)


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
    body = b"".join(encode_record(r, delta, base_timestamp) for r, delta in zip(kept, deltas, strict=True))
    if last_offset_delta is None:
        last_offset_delta = max(deltas, default=0)
    attributes = (
        compression
        | (LOG_APPEND_TIME if timestamp_type else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (0 if delete_horizon is None else DELETE_HORIZON)
    )
    max_timestamp = max((record.timestamp for record in kept), default=NO_TIMESTAMP)
    head = (partition_leader_epoch, attributes, last_offset_delta, base_timestamp, max_timestamp)
    producer = (producer_id, producer_epoch, base_sequence)
    return assemble(base_offset, *head, *producer, len(kept), compress(compression, body, level))


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
    """A batch of a header's fields and records that are already encoded and compressed; length and CRC are computed."""
    out = bytearray(HEADER_SIZE + len(body))
    length = len(out) - LENGTH_START
    first = (
        base_offset,
        length,
        partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
    )
    HEADER.pack_into(out, 0, *first, producer_id, producer_epoch, base_sequence, count)
    out[HEADER_SIZE:] = body
    seal(memoryview(out))
    return out


def encode_record(record: Record, offset_delta: int, base_timestamp: int) -> bytes:
    """One record with its length in front."""
    parts = [b"\x00", zigzag(record.timestamp - base_timestamp), zigzag(offset_delta)]
    _put(parts, record.key)
    _put(parts, record.value)
    parts.append(zigzag(len(record.headers)))
    for key, value in record.headers:
        _put(parts, key.encode(errors="surrogateescape"))
        _put(parts, value)
    body = b"".join(parts)
    return zigzag(len(body)) + body


def _put(parts: list[bytes], data: bytes | None) -> None:
    if data is None:
        parts.append(_NULL)
    else:
        parts.append(zigzag(len(data)))
        parts.append(data)


def patch(
    view: memoryview,
    *,
    base_offset: int | None = None,
    leader_epoch: int | None = None,
    append_time: int | None = None,
) -> None:
    """Change the batch at the start of a writable `view`. Only `append_time` (for all its records) needs a new CRC."""
    offset, length, epoch = _offset_length_epoch.unpack_from(view, 0)
    if base_offset is not None:
        offset = base_offset
    _offset_length_epoch.pack_into(view, 0, offset, length, epoch if leader_epoch is None else leader_epoch)
    if append_time is not None:
        _short.pack_into(view, _attributes_at, _short.unpack_from(view, _attributes_at)[0] | LOG_APPEND_TIME)
        _long.pack_into(view, _max_timestamp_at, append_time)
        seal(view[: length + LENGTH_START])


def identify(view: memoryview, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> None:
    """Say in the batch at the start of a writable `view` whose it is: producer, epoch and its first sequence."""
    flags = _short.unpack_from(view, _attributes_at)[0] & ~TRANSACTIONAL
    _short.pack_into(view, _attributes_at, flags | (TRANSACTIONAL if transactional else 0))
    _identity.pack_into(view, _producer_at, producer_id, epoch, sequence)
    seal(view)


def seal(view: memoryview) -> None:
    """Compute the CRC of a whole batch and set it."""
    _crc.pack_into(view, CRC_START - 4, crc32c(view[CRC_START:]))


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
    """A control record with a value that is already encoded."""
    return Record(0, timestamp, _key_of_control.pack(0, kind), value)


def control_type(key: bytes | None) -> int:
    """The type of a control record, which may be one that is not known here."""
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
    """The batch that ends a producer's transaction in a partition."""
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
    """The coordinator's epoch in the value of an end transaction marker."""
    try:
        return _value_of_marker.unpack_from(record.value or b"")[1]
    except StructError:
        raise WireError("an end transaction marker with a value of less than 6 bytes") from None
