"""Records of many batches to columns, by compiled code: no Python object for a record.

The first pass finds where keys, values and headers stand; the others copy them. Everything read is checked against the
end of its batch: bytes that lie raise an error and read nothing beyond.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moldau.wire.kernel import compiled, read_long
from moldau.wire.records.layout import CRC_START, HEADER_SIZE, LENGTH_START, LOG_APPEND_TIME, MAGIC

BUILT_ON = "9b4110665d4b"  # numba knows this file only: tests/wire/test_kernel.py

NULL = -1
MICROS = 1000  # in a millisecond, Kafka's unit of time

# Columns of the table of batches, as their headers say; START and END are where the records stand.
(POSITION, SIZE, BASE_OFFSET, LAST_OFFSET, COUNT, ATTRIBUTES, BASE_TIME, MAX_TIME, START, END) = range(10)
BATCH_COLUMNS = 10
# Rows of the table of records, which has a column for each record: so each row is what Arrow wants.
OFFSET, TIME, TYPE, KEY_AT, KEY_SIZE, VALUE_AT, VALUE_SIZE, HEADERS_AT, HEADERS, RECORD_END = range(10)
FIELDS = 10
# Rows of the table of headers, of the same kind.
NAME_AT, NAME_SIZE, CONTENT_AT, CONTENT_SIZE = range(4)


@compiled
def number(data: Any, at: Any, width: Any) -> Any:
    """Read a big-endian number of so many bytes, signed if it has eight."""
    value = np.int64(0)
    for place in range(width):
        value = value << 8 | np.int64(data[at + place])
    return value


@compiled
def count_batches(data: Any, end: Any) -> Any:
    """Count the complete batches before one that is cut off or not of format 2."""
    at, count = 0, 0
    while end - at >= HEADER_SIZE:
        size = number(data, at + LENGTH_START - 4, 4) + LENGTH_START
        if size < HEADER_SIZE or size > end - at or data[at + 16] != MAGIC:
            break
        at += size
        count += 1
    return count


@compiled
def find_batches(data: Any, table: Any) -> None:
    """Fill a row for each complete batch."""
    at = 0
    for row in range(table.shape[0]):
        size = number(data, at + LENGTH_START - 4, 4) + LENGTH_START
        table[row, POSITION], table[row, SIZE] = at, size
        table[row, BASE_OFFSET] = number(data, at, 8)
        table[row, LAST_OFFSET] = number(data, at, 8) + number(data, at + 23, 4)
        table[row, COUNT] = number(data, at + 57, 4)
        table[row, ATTRIBUTES] = number(data, at + 21, 2)
        table[row, BASE_TIME] = number(data, at + 27, 8)
        table[row, MAX_TIME] = number(data, at + 35, 8)
        table[row, START], table[row, END] = at + HEADER_SIZE, at + size
        at += size


@compiled
def first_damaged(data: Any, table: Any, rows: Any, largest: Any, sums: Any) -> Any:
    """Return the first of these batches, up to `largest` bytes each, whose CRC-32C is wrong, or -1."""
    for row in rows:
        at, size = table[row, POSITION], table[row, SIZE]
        if size <= largest:
            crc = np.uint32(0xFFFFFFFF)
            for place in range(at + CRC_START, at + size):
                crc = sums[(crc ^ data[place]) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
            if np.int64(crc ^ np.uint32(0xFFFFFFFF)) != number(data, at + CRC_START - 4, 4):
                return row
    return -1


@compiled
def find_records(data: Any, batches: Any, first: Any, last: Any, records: Any) -> Any:
    """Fill `records` with those of first <= offset < last; return how many, or -1 - the damaged batch."""
    found = 0
    for row in range(batches.shape[0]):
        at, limit = batches[row, START], batches[row, END]
        for _ in range(batches[row, COUNT]):
            size, at = read_long(data, at, limit)
            end = at + size
            if at < 0 or size < 1 or end > limit:
                return -1 - row
            delta, at = read_long(data, at + 1, end)  # behind the attributes, which have no meaning yet
            if at < 0:
                return -1 - row
            place, at = read_long(data, at, end)
            if at < 0:
                return -1 - row
            key_size, key_at = read_long(data, at, end)
            if key_at < 0 or key_size < NULL or key_size > end - key_at:
                return -1 - row
            value_size, value_at = read_long(data, key_at + max(key_size, 0), end)
            if value_at < 0 or value_size < NULL or value_size > end - value_at:
                return -1 - row
            headers, headers_at = read_long(data, value_at + max(value_size, 0), end)
            if headers_at < 0 or headers < 0 or headers > end - headers_at:
                return -1 - row
            offset = batches[row, BASE_OFFSET] + place
            if first <= offset < last:
                records[OFFSET, found] = offset
                if batches[row, ATTRIBUTES] & LOG_APPEND_TIME:
                    records[TIME, found], records[TYPE, found] = batches[row, MAX_TIME] * MICROS, 1
                else:
                    records[TIME, found], records[TYPE, found] = (batches[row, BASE_TIME] + delta) * MICROS, 0
                records[KEY_AT, found], records[KEY_SIZE, found] = key_at, key_size
                records[VALUE_AT, found], records[VALUE_SIZE, found] = value_at, value_size
                records[HEADERS_AT, found], records[HEADERS, found] = headers_at, headers
                records[RECORD_END, found] = end
                found += 1
            at = end
        if at != limit:
            return -1 - row
    return found


@compiled
def find_headers(data: Any, records: Any, rows: Any, found: Any) -> Any:
    """Fill `found` with the headers of all records; return how many, or -1 - the damaged record."""
    count = 0
    for row in range(rows):
        at, limit = records[HEADERS_AT, row], records[RECORD_END, row]
        for _ in range(records[HEADERS, row]):
            name_size, name_at = read_long(data, at, limit)
            if name_at < 0 or name_size < 0 or name_size > limit - name_at:
                return -1 - row
            size, content_at = read_long(data, name_at + name_size, limit)
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
    """Copy the values at `starts` one after the other, and fill Arrow's offsets."""
    total = 0
    offsets[0] = 0
    for row in range(len(starts)):
        start, size = starts[row], sizes[row]
        if size > 0:
            out[total : total + size] = data[start : start + size]
            total += size
        offsets[row + 1] = total
