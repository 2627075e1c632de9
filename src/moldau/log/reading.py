"""Reading from the segments of a partition: where the bytes are, and which transactions in them were aborted."""

from moldau.log.answers import Read
from moldau.log.disk import Span
from moldau.log.segments import Segments
from moldau.wire.errors import WireError
from moldau.wire.records import Batch, starts

CHECK_BYTES = 1 << 20  # as much as a follower asks for
EMPTY, EMPTY_COMMITTED = Read(None, None), Read(None, [])


def read(
    segments: Segments, offset: int, max_bytes: int, min_one: bool, bound: int, end_offset: int, committed: bool
) -> Read:
    """Bytes from the batch that holds `offset` on, out of one segment, before the offset `bound`."""
    items = segments.items
    slot = len(items) - 1
    if offset < items[slot].base_offset:
        slot = segments.slot_of(offset)
    place = items[slot].locate(offset)
    while place is None and slot + 1 < len(items):  # compaction has taken the end of that segment
        slot += 1
        place = items[slot].locate(offset)
    if place is not None:
        position, first_size = place
        size = min(max(max_bytes, first_size), end_position(segments, slot, bound, end_offset) - position)
        if size > 0 and (min_one or first_size <= max_bytes):
            span = Span(items[slot].open_file(), position, size)
            return Read(span, aborted(segments, slot, offset, position + size, end_offset) if committed else None)
    return EMPTY_COMMITTED if committed else EMPTY


def end_position(segments: Segments, slot: int, bound: int, end_offset: int) -> int:
    """Return where a reader of this segment must stop."""
    segment = segments.items[slot]
    if bound >= segments.end_of(slot, end_offset):
        return segment.look()
    place = segment.locate(bound)
    return place[0] if place else segment.look()


def aborted(segments: Segments, slot: int, offset: int, end_position: int, end_offset: int) -> list[tuple[int, int]]:
    """Return the aborted transactions that reach into what is read; a few more than needed do no harm."""
    upper = segments.items[slot].offset_behind(end_position)
    if upper is None:
        upper = segments.end_of(slot, end_offset)
    transactions: list[tuple[int, int]] = []
    for segment in segments.items[slot:]:
        for entry in segment.txns:
            if entry.last_offset >= offset and entry.first_offset < upper:
                transactions.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= upper:
                return transactions
    return transactions


def readable_bytes(segments: Segments, offset: int) -> int:
    """Return about how many bytes lie behind `offset`: exact in the active segment, whole segments before it."""
    active = segments.items[-1]
    if offset < active.base_offset:
        return sum(segment.look() for segment in segments.items[segments.slot_of(offset) :])
    place = active.locate(offset)
    return active.size - place[0] if place else 0


def damage_in(span: Span | None) -> str | None:
    """Say what is wrong with the batches that were read; None if nothing is."""
    data = memoryview(b"" if span is None else span.read())
    try:
        for at in (0, *starts(data)) if data else ():
            Batch(data, at).verify()
    except WireError as error:
        return str(error)
    return None
