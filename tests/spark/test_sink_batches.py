"""Arrow columns become record batches: every row once, in order, where it belongs, within the limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.spark.sink.batches import Batches, TopicLimits, content_of
from moldau.spark.sink.rows import Rows, rows_of
from moldau.wire.compression import Compression
from moldau.wire.records import Batch, Record, records

LIMITS = TopicLimits("orders", 3, 400, 5_000)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.string()),
        ("partition", pa.int32()),
        ("headers", HEADERS),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)
Row = tuple[bytes | None, str | None, int | None, list[tuple[str, bytes | None]] | None, int]

row = st.tuples(
    st.none() | st.binary(max_size=40),
    st.none() | st.text(max_size=200),
    st.none() | st.integers(0, 2),
    st.none() | st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    st.integers(0, 4_000_000_000_000),
)


def table(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "key": key,
                "value": value,
                "partition": partition,
                "headers": None if headers is None else [{"key": k, "value": v} for k, v in headers],
                "timestamp": datetime.fromtimestamp(ms / 1000, UTC),
            }
            for key, value, partition, headers, ms in rows
        ],
        SCHEMA,
    )


def columns(batch: pa.RecordBatch) -> Rows:
    return rows_of(batch, batch.column("key"), batch.column("value"), True)


def written(chunks: list[list[Row]], compression: int = Compression.NONE) -> dict[int, list[Record]]:
    out: dict[int, list[Record]] = {}

    def send(topic: str, partition: int, data: bytearray) -> None:
        batch = Batch(data)
        batch.verify()
        assert topic == "orders"
        assert len(data) <= LIMITS.batch_bytes or batch.count == 1
        found = list(records(batch))
        assert batch.max_timestamp == max(record.timestamp for record in found)
        out.setdefault(partition, []).extend(found)

    batches = Batches(send, compression)
    for chunk in chunks:
        batches.add(LIMITS, columns(table(chunk)))
    batches.finish()
    return out


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(row, max_size=30), max_size=4), st.sampled_from(list(Compression)))
def test_every_row_is_in_one_batch_as_it_was_and_in_order(chunks: list[list[Row]], codec: int) -> None:
    found = written(chunks, codec)
    rows = [one for chunk in chunks for one in chunk]
    for partition, got in found.items():
        kept = iter(rows)
        for record in got:  # a subsequence of the rows
            assert any(fits(one, record, partition) for one in kept)
    assert sum(map(len, found.values())) == len(rows)


def fits(given: Row, record: Record, partition: int) -> bool:
    key, value, wanted, headers, ms = given
    value_bytes = None if value is None else value.encode()
    times = {int(datetime.fromtimestamp(ms / 1000, UTC).timestamp() * 1000) + nudge for nudge in (-1, 0, 1)}
    same = (record.key, record.value, record.headers) == (key, value_bytes, tuple(headers or ()))
    return same and record.timestamp in times and wanted in (None, partition)


@settings(max_examples=40, deadline=None)
@given(st.lists(row, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_content_of_rows_does_not_depend_on_their_order(rows: list[Row], random: Any) -> None:
    shuffled = rows[:]
    random.shuffle(shuffled)
    assert content_of(columns(table(rows))) == content_of(columns(table(shuffled)))
    other = [(b"another", *rows[0][1:]), *rows[1:]]
    if rows[0][0] != b"another":
        assert content_of(columns(table(rows))) != content_of(columns(table(other)))


def test_rows_with_the_same_key_share_a_partition_and_rows_without_take_turns() -> None:
    found = written([[(b"k", str(number), None, None, 0) for number in range(50)]])
    assert len(found) == 1
    chunks: list[list[Row]] = [[(None, str(number), None, None, 0)] for number in range(6)]
    assert sorted(written(chunks)) == [0, 1, 2]


def test_a_record_over_the_limit_is_refused_with_topic_and_size() -> None:
    with pytest.raises(ValueError, match=r"topic orders has 6\d\d\d bytes, and 5000 is the limit.*max.request.size"):
        written([[(None, "x" * 6000, None, None, 0)]])


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="partition 3 of topic orders, which has 3 partitions"):
        written([[(b"k", "v", 3, None, 0)]])
    with pytest.raises(ValueError, match="partition -1: partitions are counted from 0"):
        written([[(b"k", "v", -1, None, 0)]])


def test_a_record_larger_than_a_batch_travels_alone() -> None:
    found = written([[(b"k", "x" * 1000, 0, None, 0), (b"k", "y", 0, None, 0), (b"k", "z" * 1000, 0, None, 0)]])
    assert [len(record.value or b"") for record in found[0]] == [1000, 1, 1000]
