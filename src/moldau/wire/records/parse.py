"""The records of a batch, one by one."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from moldau.wire.errors import WireError
from moldau.wire.numbers import varint, varlong
from moldau.wire.records.batch import MAX_DECOMPRESSED, Batch
from moldau.wire.records.layout import LOG_APPEND_TIME, NO_TIMESTAMP

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


def records(batch: Batch, limit: int = MAX_DECOMPRESSED) -> Iterator[Record]:
    """Yield the records of a batch. Damage is noticed when it is reached, perhaps after good records."""
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
