"""What confluent-kafka's consumer does not offer by itself: to take what is there, and to say which member it is."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

MEMBER = b"CGMDv2:"  # what librdkafka writes before it says which member of a group a consumer is
GENERATION = struct.Struct("@i")


class GroupMember(NamedTuple):
    """A member of a group, as transactions name it that commit the group's offsets."""

    group: str
    generation: int
    id: str
    instance: str | None


def take(consumer: Consumer, most: int, timeout_s: float) -> list[Message]:
    """Wait for a record, and return it with those that are there by then.

    The consumer's own `consume` waits until it has `most`, or for the whole time: few records are held up for many.
    """
    found = consumer.consume(1, timeout_s)
    return found + consumer.consume(most - 1, 0.0) if found and most > 1 else found


def member_of(consumer: Consumer) -> GroupMember:
    """Return which member of its group a consumer is.

    Only the client itself is to read what it says of that; it is read here for clients in other processes.
    """
    told: bytes = consumer.consumer_group_metadata()
    if not told.startswith(MEMBER):
        raise ValueError(f"This librdkafka writes members of groups in a way that is not known: {told[:16]!r}.")
    (generation,) = GENERATION.unpack_from(told, len(MEMBER))
    group, member, rest = told[len(MEMBER) + GENERATION.size :].split(b"\0", 2)
    instance = None if rest.startswith(b"\1") else rest[1:-1].decode()
    return GroupMember(group.decode(), generation, member.decode(), instance)
