"""Appends that do not come from a client: several batches at once, of a coordinator of this node or of the leader."""

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING

from moldau.log.answers import Appended, Origin, new_appended
from moldau.log.config import LogConfig
from moldau.log.producers import Producers, marker_of
from moldau.log.rolling import must_roll
from moldau.wire.errors import Error, WireError
from moldau.wire.records import HEADER, HEADER_SIZE, LENGTH_START, MAGIC, Batch, batches, patch
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.log.log import Log
    from moldau.log.segment import Segment

PLACE = Struct(">qii")  # base offset, length, leader epoch


def append_batches(
    log: "Log", active: "Segment", view: memoryview, leader_epoch: int, now_ms: int, origin: Origin, txn_version: int
) -> Appended:
    """Batches of a coordinator get their offsets here; those of a leader have them."""
    if origin is Origin.COORDINATOR and (quick := append_own(log, active, view, leader_epoch, now_ms)):
        return quick
    incoming = whole_batches(view, log.config, origin)
    if origin is Origin.COORDINATOR:
        assign_offsets(incoming, log.end_offset, leader_epoch)
        for batch in incoming:
            check_producer(log.producer_state, batch, txn_version)
    else:
        check_offsets(incoming, log.end_offset)
    timestamp, last = max(batch.max_timestamp for batch in incoming), incoming[-1].last_offset
    try:
        if must_roll(log, active, len(view), timestamp, last, now_ms):
            active = log.roll(now_ms)
        position = active.write(view)
        log.end_offset, log.written = last + 1, True
        for batch in incoming:
            active.note(position, batch.size, batch.last_offset, batch.max_timestamp)
            position += batch.size
            log.epochs.assign_if_newer(batch.partition_leader_epoch, batch.base_offset)
            if aborted := log.producer_state.apply_batch(batch):
                active.txns.append(aborted)
    except OSError as error:
        raise log.write_failed(error) from error
    return Appended(incoming[0].base_offset, last, -1, log.start_offset, False)


def append_own(log: "Log", active: "Segment", view: memoryview, leader_epoch: int, now_ms: int) -> Appended | None:
    """One batch that this node has just made, outside of transactions: most are that. None for all others."""
    size = len(view)
    if size < HEADER_SIZE:
        return None
    head = HEADER.unpack_from(view)
    length, magic, delta, timestamp, producer = head[1], head[3], head[6], head[8], head[9]
    if length + LENGTH_START != size or magic != MAGIC or producer >= 0 or size > log.config.max_message_bytes:
        return None
    base = log.end_offset
    last = base + delta
    try:
        # As in Log.append: within the bounds there is no need to ask.
        if (
            active.size + size > active.roomy_size or timestamp > active.roomy_timestamp or last > active.roomy_offset
        ) and must_roll(log, active, size, timestamp, last, now_ms):
            active = log.roll(now_ms)
        PLACE.pack_into(view, 0, base, length, leader_epoch)
        active.append(view, last, timestamp)
    except OSError as error:
        raise log.write_failed(error) from error
    log.end_offset, log.written = last + 1, True
    if leader_epoch != log.epochs.latest:
        log.epochs.assign(leader_epoch, base)
    return new_appended(Appended, (base, last, -1, log.start_offset, False))


def whole_batches(view: memoryview, config: LogConfig, origin: Origin) -> list[Batch]:
    """Return the batches, each with a right CRC; a coordinator's must also respect the topic's largest size."""
    try:
        incoming = list(batches(view))
        for batch in incoming:
            batch.verify()
    except WireError as error:
        raise Refused(Error.CORRUPT_MESSAGE, f"{error}.") from None
    if not incoming:
        raise Refused(Error.INVALID_RECORD, "There is no record batch.")
    largest = max(batch.size for batch in incoming)
    if origin is Origin.COORDINATOR and largest > config.max_message_bytes:
        text = f"A batch has {largest} bytes; max.message.bytes is {config.max_message_bytes}."
        raise Refused(Error.MESSAGE_TOO_LARGE, text)
    return incoming


def assign_offsets(incoming: Sequence[Batch], offset: int, leader_epoch: int) -> None:
    """Number the batches of a coordinator, in place."""
    for batch in incoming:
        patch(batch.view, base_offset=offset, leader_epoch=leader_epoch)
        batch.base_offset, batch.partition_leader_epoch = offset, leader_epoch
        offset = batch.next_offset


def check_offsets(incoming: Sequence[Batch], offset: int) -> None:
    """The leader's batches must follow what is here, and one another."""
    for batch in incoming:
        if batch.base_offset < offset:
            text = f"The leader's batch at offset {batch.base_offset} does not follow offset {offset - 1}."
            raise Refused(Error.OFFSET_OUT_OF_RANGE, text)
        offset = batch.next_offset


def check_producer(producers: Producers, batch: Batch, transaction_version: int) -> None:
    if batch.producer_id < 0:
        return
    if not batch.is_control:
        sequences = batch.base_sequence, batch.last_sequence
        epoch, transactional = batch.producer_epoch, batch.is_transactional
        producers.check(batch.producer_id, epoch, *sequences, transactional, Origin.COORDINATOR)
    elif marker := marker_of(batch):
        producers.check_marker(batch.producer_id, batch.producer_epoch, marker, transaction_version)
