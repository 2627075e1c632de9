"""Reading with confluent-kafka's consumer as soon as there is something to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message


def take(consumer: Consumer, most: int, timeout_s: float) -> list[Message]:
    """Wait for a record, and return it with those that are there by then.

    The consumer's own `consume` waits until it has `most`, or for the whole time: few records are held up for many.
    """
    found = consumer.consume(1, timeout_s)
    return found + consumer.consume(most - 1, 0.0) if found and most > 1 else found
