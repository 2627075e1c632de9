"""What must hold, each property in a sentence. A broken one is raised with what was seen, and ends the world."""

from __future__ import annotations

from enum import Enum


class Property(Enum):
    """The promises that the clients and the audits check."""

    NEVER_INVENTED = "Nothing appears in a partition that was not sent to it."
    AS_SENT = "A record is read as it was sent: key, value, time, and its neighbours in the batch."
    OFFSET_KEEPS_RECORD = "An offset, once promised or read, always holds the same record."
    ONCE = "A record of an idempotent producer stands in the log at most once."
    AT_MOST_AS_SENT = "A record of a plain producer stands in the log at most as often as it was sent."
    IN_ORDER = "The records of a producer stand in the log in the order in which they were sent."
    NO_GAP = "Offsets follow each other without a gap, from the log start to the high watermark."
    PROCESS_CRASH_LOSES_NOTHING = "What was acknowledged survives the crash of the process."
    SYNCED_SURVIVES = "What was acknowledged under flush.messages, or lay there at the last start, survives lost power."
    FLUSH_MS = "What was acknowledged longer ago than flush.ms, and a little, survives lost power."
    NEVER_BACK = "High watermark and log start offset do not run backwards, except by a loss of power."
    READABLE = "What was acknowledged can be read at once, by everyone."
    SEQUENCE = "A producer that keeps to its sequence is not refused for it."
    RETENTION = "Records leave a log only by retention that they fall under, or by a DeleteRecords that covers them."
    LAST_VALUE = "A compacted log keeps the last record of each key."
    LOOK_UP = "A look-up by time finds the first record that is not older, and its timestamp."
    METADATA = "Topics, partitions and settings that were acknowledged survive every crash."
    ROT_IS_NOTICED = "A flipped bit is noticed: by the CRC, by a partition that is offline, by a start that is refused."
    SOUND_STAYS_ONLINE = "A partition is offline only if its own disk failed."
    COMES_UP = "The node always starts again, or says in a sentence why it cannot."
    ANSWERS = "The node answers every request with an answer of the protocol; it never raises."
    GOES_ON = "When all faults are over, every sound partition takes and gives records."
    ONE_OWNER = "A partition has one owner in a group: in a generation, and until its owner gives it up or is given up."
    FENCED = "Whoever was replaced, in a group or under a transactional id, can do nothing any more."
    EPOCHS = "The epoch of a member never runs backwards."
    COMMIT_STAYS = "A group is where it was last committed to be; it goes back only if that is asked for."
    AT_LEAST_ONCE = "Every record of a topic is delivered to each group that reads it."
    ONE_LOCK = "A record of a share group has one holder, until it is released, its lock ends or its holder is gone."
    SETTLED = "A record that a share group has settled is settled once, and never delivered again."
    DELIVERIES = "A record is delivered to a share group no more often than the group allows."
    SHARED_ONCE = "A share group is done with a record only if a member has settled it, or it was delivered too often."
    COMMITTED_ONLY = "A reader of committed records sees what was committed, always, and nothing else."
    EXACTLY_ONCE = "A copy in transactions has each record of the input once, in its order."
    ATOMIC = "Of a transaction all is seen, or nothing."
    ALL_ENDS = "Every transaction ends: its producer ends it, or its time is up."
    REPLAYED = "A coordinator that is loaded again is the coordinator that was."
    CALM = "A full disk, once there is room again, has done no lasting harm."


class Broken(AssertionError):
    """A property does not hold."""

    def __init__(self, which: Property, seen: str) -> None:
        super().__init__(f"{which.name}: {which.value}\n  {seen}")
        self.which = which


def must(holds: object, which: Property, seen: str) -> None:
    """`seen` is formatted by the caller: pass a constant, or call `broken` yourself where it is costly."""
    if not holds:
        raise Broken(which, seen)
