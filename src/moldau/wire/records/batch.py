"""A batch as its parsed header over its bytes, and changes to a header in place."""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError

from moldau.wire.compression import Buffer, decompress
from moldau.wire.crc import crc32c
from moldau.wire.errors import WireError
from moldau.wire.records.layout import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_START,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
)

MAX_DECOMPRESSED = 1 << 27
"""The default limit for the decompressed records of one batch."""

_offset_length_epoch = Struct(">qii")
_crc = Struct(">I")
_attributes_at, _max_timestamp_at, _producer_at = 21, 35, 43
_identity = Struct(">qhi")
_short = Struct(">h")
_long = Struct(">q")


class Batch:
    """A parsed header. `view` is the whole batch, or as much of it as there is."""

    __slots__ = (
        "attributes", "base_offset", "base_sequence", "base_timestamp", "count", "crc", "last_offset_delta", "magic",
        "max_timestamp", "partition_leader_epoch", "producer_epoch", "producer_id", "size", "view",
    )  # fmt: skip

    def __init__(self, data: Buffer, position: int = 0) -> None:
        """Parse the header at `position`; WireError when there is none of format 2."""
        try:
            (
                self.base_offset, length, self.partition_leader_epoch, self.magic, self.crc, self.attributes,
                self.last_offset_delta, self.base_timestamp, self.max_timestamp,
                self.producer_id, self.producer_epoch, self.base_sequence, self.count,
            ) = HEADER.unpack_from(data, position)  # fmt: skip
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
        """Return the codec's number, which may be unknown."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """Return 0 for the producer's time, 1 for the time of the append."""
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
        """Return the sequence of the last record; sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF

    @property
    def delete_horizon(self) -> int | None:
        """Return when the tombstones or the marker of this batch may be deleted, if the cleaner has set it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def is_whole(self) -> bool:
        return len(self.view) == self.size

    def is_valid(self) -> bool:
        """Tell whether the batch is complete and its CRC is right."""
        return len(self.view) == self.size and crc32c(self.view[CRC_START:]) == self.crc

    def verify(self) -> None:
        """Raise WireError if the batch is torn or its CRC is wrong."""
        if not self.is_valid():
            raise WireError(f"record batch at offset {self.base_offset} is torn or has a wrong CRC")

    def body(self, limit: int = MAX_DECOMPRESSED) -> bytes:
        """Return the records as bytes, decompressed."""
        if len(self.view) != self.size:
            raise WireError(f"record batch of {self.size} bytes where {len(self.view)} are left")
        return decompress(self.attributes & CODEC_MASK, self.view[HEADER_SIZE:], limit)

    def __repr__(self) -> str:
        return f"Batch({self.base_offset}..{self.last_offset}, {self.count} records, {self.size} bytes)"


def starts(data: Buffer) -> Iterator[int]:
    """Find where batches begin, up to one that is cut off; WireError if a length is impossible."""
    at, end = 0, len(data)
    while end - at >= HEADER_SIZE:
        size = int.from_bytes(data[at + LENGTH_START - 4 : at + LENGTH_START], "big") + LENGTH_START
        if size < HEADER_SIZE:
            raise WireError(f"record batch of length {size - LENGTH_START}")
        if at + size > end:
            return
        yield at
        at += size


def batches(data: Buffer) -> Iterator[Batch]:
    """Yield the batches of `data`; WireError if one is torn or not a batch."""
    view, position, end = memoryview(data), 0, len(data)
    while position < end:
        batch = Batch(view, position)
        position += batch.size
        if position > end:
            raise WireError(f"record batch of {batch.size} bytes where {len(batch.view)} are left")
        yield batch


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
    """Set producer, epoch and first sequence of the batch at the start of a writable `view`."""
    flags = _short.unpack_from(view, _attributes_at)[0] & ~TRANSACTIONAL
    _short.pack_into(view, _attributes_at, flags | (TRANSACTIONAL if transactional else 0))
    _identity.pack_into(view, _producer_at, producer_id, epoch, sequence)
    seal(view)


def seal(view: memoryview) -> None:
    """Compute the CRC of a whole batch and set it."""
    _crc.pack_into(view, CRC_START - 4, crc32c(view[CRC_START:]))
