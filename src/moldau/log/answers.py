"""What goes into a log and what comes out of it: origins, isolation levels and results."""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from moldau.log.disk import Span
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


class Origin(IntEnum):
    """Who appends, which decides what is checked."""

    CLIENT = 0  # everything, and exactly one batch
    COORDINATOR = 1  # a part of this node: control batches and batches without sequences are fine
    REPLICATION = 2  # the leader has checked; offsets and epochs are taken as they are


class Isolation(IntEnum):
    """How far a read may go."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    COMMITTED = 2


class Appended(NamedTuple):
    """Offsets of the appended batches (or, for a duplicate, of the batch that is already there)."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


# three times as fast as calling the named tuple
new_appended: Callable[[type[Appended], tuple[int, int, int, int, bool]], Appended]
new_appended = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


class Read(NamedTuple):
    """`span` is None when there is nothing to read; `aborted` (producer id, first offset) is None unless COMMITTED."""

    span: Span | None
    aborted: list[tuple[int, int]] | None


class Found(NamedTuple):
    """A look-up by time: -1 in each field when there is no such record."""

    offset: int
    timestamp: int
    leader_epoch: int


NOT_FOUND = Found(-1, -1, -1)


def no_room(path: str) -> Refused:
    """Return the refusal of a write to a full disk: nothing was changed, and it can be tried again."""
    return Refused(Error.KAFKA_STORAGE_ERROR, f"The disk of {path} is full.")
