"""What a cluster promises, each property in a sentence. A broken one is raised with what was seen."""

from __future__ import annotations

from enum import Enum


class Property(Enum):
    """The promises that clients and audits check."""

    ONE_HISTORY = "An offset below a high watermark holds the same record on every node, for ever."
    ACKNOWLEDGED_STAYS = "What was acknowledged is in the log when all faults are over."
    IN_SYNC = "Every replica that is in sync has all that is committed."
    AS_PROMISED = "A record stands at the offset that its producer was told."
    ONCE = "A record of an idempotent producer stands in the log at most once."
    IN_ORDER = "The records of a producer stand in the log in the order in which they were sent."
    SEQUENCE = "A producer that keeps to its sequence is not refused for it."
    NEVER_BACK = "The high watermark of a leader, and the latest offset that a client is told, never go back."
    READABLE = "What was read once can be read again."
    ONE_LEADER = "An epoch of a partition has one leader."
    ONE_CONTROLLER = "An epoch of the quorum has one leader and one active controller."
    VOTE_STAYS = "A vote is on the disk before anybody hears of it."
    MAJORITY = "What is committed in the metadata is on the disks of a majority of voters, synced."
    COMPLETE = "A new leader of the quorum has all that is committed."
    SAME_IMAGE = "The metadata of all nodes is the same at the same offset."
    METADATA_STAYS = "A change of the metadata that was acknowledged is there when all faults are over."
    ANSWERS = "Every request gets an answer of the protocol that fits it."
    COMES_UP = "A node always starts again."
    GOES_ON = "When all faults are over, every partition is led, in sync on all replicas and takes records."
    COMMIT_STAYS = "A group is where it was last committed to be."
    SETTLED = "What a share group was told to have accepted is not delivered again."
    ATOMIC = "Of a transaction all is seen, or nothing."


class Broken(AssertionError):
    """A property does not hold."""

    def __init__(self, which: Property, seen: str) -> None:
        super().__init__(f"{which.name}: {which.value}\n  {seen}")
        self.which = which
