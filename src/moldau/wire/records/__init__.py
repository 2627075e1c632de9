"""Record batches: all that reads and writes their bytes.

A `Batch` is a parsed header over the bytes it stands in; nothing is copied before `records` is called. What a header
says is checked only as far as framing needs it (a broker has an error code of its own for each lie); `records` checks
the rest, and raises WireError and nothing else, in time and memory bounded by the batch and by `limit`.
"""

from moldau.wire.records.batch import MAX_DECOMPRESSED, Batch, batches, identify, patch, seal, starts
from moldau.wire.records.build import assemble, build, build_encoded, build_pairs, encode_record
from moldau.wire.records.control import ControlType, control_record, control_type, coordinator_epoch, end_txn_marker
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
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from moldau.wire.records.parse import Headers, Record, records

__all__ = [
    "CODEC_MASK", "CONTROL", "CRC_START", "DELETE_HORIZON", "HEADER", "HEADER_SIZE", "LENGTH_START", "LOG_APPEND_TIME",
    "MAGIC", "MAX_DECOMPRESSED", "NO_PRODUCER_ID", "NO_TIMESTAMP", "TRANSACTIONAL",
    "Batch", "ControlType", "Headers", "Record",
    "assemble", "batches", "build", "build_encoded", "build_pairs", "control_record", "control_type",
    "coordinator_epoch", "encode_record", "end_txn_marker", "identify", "patch", "records", "seal", "starts",
]  # fmt: skip
