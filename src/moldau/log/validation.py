"""What a client's batch must be before it is appended, in the order in which Kafka checks it.

The append looks only at the header and finds in one condition that all is well. When it is not, or when the topic wants
something of the records themselves, `examine` says what is wrong, or returns the batch as the topic wants it.

Records are decoded only where the topic asks for it: a limit to the age of timestamps, a compression of its own. Those
of a compacted topic are looked through for keys, as compaction will. Everywhere else the header is believed.
"""

from collections.abc import Iterator

from moldau.log.config import FOREVER, LogConfig
from moldau.wire.compression import Compression
from moldau.wire.errors import Error, WireError
from moldau.wire.records import LENGTH_START, LOG_APPEND_TIME, MAGIC, Batch, Record, build, patch, records, seal
from moldau.wire.records.scan import Scan
from moldau.wire.refusal import Refused

CODECS = {codec.name.lower(): codec for codec in Compression} | {"uncompressed": Compression.NONE}
SHOWN_ERRORS = 100
MAGIC_AT = 16


def wants_records(config: LogConfig) -> bool:
    """Return whether this topic's batches must be examined one by one even if their headers are fine."""
    return (
        config.compacted
        or config.compression_type != "producer"
        or config.message_timestamp_type == "LogAppendTime"
        or config.message_timestamp_before_max_ms != FOREVER
    )


def examine(view: memoryview, config: LogConfig, now_ms: int) -> tuple[memoryview, int]:
    """Return the batch to append and its append time (-1 for the producer's time); raises Refused."""
    batch = _only_batch(view)
    _check_header(batch, config)
    append_time = now_ms if config.message_timestamp_type == "LogAppendTime" else -1
    _check_records(batch, config, now_ms)
    view = _recompressed(batch, config)
    if append_time >= 0:
        patch(view, append_time=append_time)
    elif batch.timestamp_type:
        _set_create_time(view)
    if len(view) > config.max_message_bytes:
        raise _too_large(len(view), config)
    return view, append_time


def no_batch(size: int) -> Refused:
    return Refused(Error.INVALID_RECORD, f"{size} bytes are no record batch.")


def _only_batch(view: memoryview) -> Batch:
    if view[MAGIC_AT] != MAGIC:
        raise Refused(Error.INVALID_RECORD, f"Record batches must have magic 2, not {view[MAGIC_AT]}.")
    try:
        batch = Batch(view)
    except WireError as error:
        raise Refused(Error.CORRUPT_MESSAGE, f"There is no record batch: {error}.") from None
    if not batch.is_whole:
        raise Refused(Error.INVALID_RECORD, "The record batch is cut off.")
    rest = len(view) - batch.size
    if rest > LENGTH_START and int.from_bytes(view[batch.size + 8 : batch.size + 12]) + LENGTH_START <= rest:
        raise Refused(Error.INVALID_RECORD, "A produce request holds exactly one record batch for a partition.")
    return batch


def _check_header(batch: Batch, config: LogConfig) -> None:
    if batch.base_offset:
        raise Refused(Error.INVALID_RECORD, f"The base offset of a new batch must be 0, not {batch.base_offset}.")
    if batch.size > config.max_message_bytes:
        raise _too_large(batch.size, config)
    if not batch.is_valid():
        raise Refused(Error.CORRUPT_MESSAGE, "The CRC of the record batch is wrong.")
    if batch.compression not in Compression._value2member_map_:
        raise Refused(Error.INVALID_RECORD, f"Compression codec {batch.compression} is not known.")
    if batch.count < 1 or batch.last_offset_delta != batch.count - 1:
        raise Refused(
            Error.INVALID_RECORD,
            f"The batch says that it has {batch.count} records and a last offset delta of {batch.last_offset_delta}.",
        )
    if batch.is_control:
        raise Refused(Error.INVALID_RECORD, "A client must not write control records.")
    if batch.has_producer_id and batch.base_sequence < 0:
        raise Refused(Error.INVALID_RECORD, f"A batch with a producer id has sequence {batch.base_sequence}.")


def _too_large(size: int, config: LogConfig) -> Refused:
    return Refused(
        Error.MESSAGE_TOO_LARGE, f"The batch has {size} bytes; max.message.bytes is {config.max_message_bytes}."
    )


def too_large_for_segment(size: int, config: LogConfig) -> Refused:
    return Refused(Error.RECORD_LIST_TOO_LARGE, f"The batch has {size} bytes; segment.bytes is {config.segment_bytes}.")


def _check_records(batch: Batch, config: LogConfig, now_ms: int) -> None:
    append_time = config.message_timestamp_type == "LogAppendTime"
    if append_time and batch.timestamp_type:
        raise Refused(Error.INVALID_TIMESTAMP, "A producer must not set the timestamp type to LogAppendTime.")
    oldest, newest = now_ms - config.message_timestamp_before_max_ms, now_ms + config.message_timestamp_after_max_ms
    limited = config.message_timestamp_before_max_ms != FOREVER or batch.max_timestamp > newest
    times = (oldest, newest) if limited and not append_time else None
    if times or (config.compacted and _has_null_key(batch)):
        _refuse_records(list(_faults(decode_records(batch), times, config.compacted)))


def _has_null_key(batch: Batch) -> bool:
    """Looks at no more than compaction will."""
    scan = Scan()
    try:
        body = batch.body()
        scan.extend(body, batch.count, 0)
        scan.finish(body)
    except WireError as error:
        raise _unreadable(error) from None
    return None in scan.keys


def decode_records(batch: Batch) -> Iterator[Record]:
    """Yield the records of a client's batch; one that does not parse is refused."""
    try:
        yield from records(batch)
    except WireError as error:
        raise _unreadable(error) from None


def _unreadable(why: WireError) -> Refused:
    return Refused(Error.INVALID_RECORD, f"The records of the batch do not parse: {why}.")


def _faults(
    items: Iterator[Record], times: tuple[int, int] | None, needs_key: bool
) -> Iterator[tuple[int, str, Error]]:
    for index, record in enumerate(items):
        if needs_key and record.key is None:
            yield index, "A compacted topic takes no record without a key.", Error.INVALID_RECORD
        elif times and record.timestamp != -1 and not times[0] <= record.timestamp <= times[1]:
            text = f"Timestamp {record.timestamp} is not within [{times[0]}, {times[1]}]."
            yield index, text, Error.INVALID_TIMESTAMP


def _refuse_records(faults: list[tuple[int, str, Error]]) -> None:
    if faults:
        late = any(error is Error.INVALID_TIMESTAMP for _, _, error in faults)
        kind = Error.INVALID_TIMESTAMP if late else Error.INVALID_RECORD
        shown = tuple((index, text) for index, text, _ in faults[:SHOWN_ERRORS])
        raise Refused(kind, f"{len(faults)} of the batch's records are refused: {faults[0][1]}", shown)


def _recompressed(batch: Batch, config: LogConfig) -> memoryview:
    codec = CODECS.get(config.compression_type, batch.compression)
    if codec == batch.compression:
        return batch.view
    levels = {
        Compression.GZIP: config.compression_gzip_level,
        Compression.LZ4: config.compression_lz4_level,
        Compression.ZSTD: config.compression_zstd_level,
    }
    return memoryview(
        build(
            decode_records(batch),
            compression=codec,
            level=levels.get(Compression(codec)),
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.is_transactional,
        )
    )


def _set_create_time(view: memoryview) -> None:
    """Mark the timestamps as the producer's, which the topic keeps."""
    view[22] &= ~LOG_APPEND_TIME
    seal(view)
