"""Records of many batches to columns, by compiled code: no Python object for a record.

The first pass finds where keys, values and headers stand; the others copy them. Everything read is checked against the
end of its batch: bytes that lie raise an error and read nothing beyond.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moldau.serdes.arrow.kernel import compiled

NULL = -1
DAMAGED = -1
MICROS = 1000  # in a millisecond, Kafka's unit of time

# Columns of the table of batches.
START, END, COUNT, BASE_OFFSET, BASE_TIME, APPEND_TIME, TIME_TYPE = range(7)
# Rows of the table of records, which has a column for each record: so each row is what Arrow wants.
OFFSET, TIME, TYPE, KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS, RECORD_END = range(10)
FIELDS = 10
# Rows of the table of headers, of the same kind.
NAME_AT, NAME_SIZE, CONTENT_AT, CONTENT_SIZE = range(4)


@compiled
def varint(data: Any, at: Any, end: Any) -> Any:
    """A number and the position behind it, which is -1 where it does not end in time."""
    value = np.int64(0)
    shift = 0
    while at < end and shift < 70:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    return np.int64(0), DAMAGED


@compiled
def find_records(data: Any, batches: Any, first: Any, last: Any, records: Any) -> Any:
    """Fill `records` with those of first <= offset < last. How many they are, or -1 - the batch that is damaged."""
    found = 0
    for number in range(batches.shape[0]):
        at, limit = batches[number, START], batches[number, END]
        for _ in range(batches[number, COUNT]):
            size, at = varint(data, at, limit)
            end = at + size
            if at < 0 or size < 1 or end > limit:
                return -1 - number
            delta, at = varint(data, at + 1, end)  # behind the attributes, which have no meaning yet
            if at < 0:
                return -1 - number
            place, at = varint(data, at, end)
            if at < 0:
                return -1 - number
            key_size, key_at = varint(data, at, end)
            if key_at < 0 or key_size < NULL or key_size > end - key_at:
                return -1 - number
            value_size, value_at = varint(data, key_at + max(key_size, 0), end)
            if value_at < 0 or value_size < NULL or value_size > end - value_at:
                return -1 - number
            headers, headers_at = varint(data, value_at + max(value_size, 0), end)
            if headers_at < 0 or headers < 0 or headers > end - headers_at:
                return -1 - number
            offset = batches[number, BASE_OFFSET] + place
            if first <= offset < last:
                records[OFFSET, found] = offset
                if batches[number, TIME_TYPE] == 1:
                    records[TIME, found] = batches[number, APPEND_TIME] * MICROS
                else:
                    records[TIME, found] = (batches[number, BASE_TIME] + delta) * MICROS
                records[TYPE, found] = batches[number, TIME_TYPE]
                records[KEY_AT, found], records[KEY_SIZE, found] = key_at, key_size
                records[VALUE_AT, found], records[VALUE_SIZE, found] = value_at, value_size
                records[HEADERS_AT, found], records[HEADERS, found] = headers_at, headers
                records[RECORD_END, found] = end
                found += 1
            at = end
        if at != limit:
            return -1 - number
    return found


@compiled
def find_headers(data: Any, records: Any, rows: Any, found: Any) -> Any:
    """Fill `found` with the headers of all records. How many they are, or -1 - the record that is damaged."""
    count = 0
    for row in range(rows):
        at, limit = records[HEADERS_AT, row], records[RECORD_END, row]
        for _ in range(records[HEADERS, row]):
            name_size, name_at = varint(data, at, limit)
            if name_at < 0 or name_size < 0 or name_size > limit - name_at:
                return -1 - row
            size, content_at = varint(data, name_at + name_size, limit)
            if content_at < 0 or size < NULL or size > limit - content_at:
                return -1 - row
            found[NAME_AT, count], found[NAME_SIZE, count] = name_at, name_size
            found[CONTENT_AT, count], found[CONTENT_SIZE, count] = content_at, size
            at = content_at + max(size, 0)
            count += 1
        if at != limit:
            return -1 - row
    return count


@compiled
def gather(data: Any, starts: Any, sizes: Any, offsets: Any, out: Any) -> None:
    """Copy what stands at `starts`, one behind the other, and fill Arrow's offsets."""
    total = 0
    offsets[0] = 0
    for row in range(len(starts)):
        start, size = starts[row], sizes[row]
        if size > 0:
            out[total : total + size] = data[start : start + size]
            total += size
        offsets[row + 1] = total
