"""A compacted topic of several partitions that many write: followed, read up to now, and written to by key."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from moldau.admin import offsets
from moldau.client import Client, ClientError, Record, build
from moldau.topicstore import Follower, Reader, StoreError, append
from moldau.topicstore.store import NONSENSE, Replayed
from moldau.wire.numbers import murmur2

log = logging.getLogger(__name__)
T = TypeVar("T")
Pair = tuple[bytes, bytes | None]


class Mirror:
    """What the records of a topic say, kept by `replay` as they come. The client is closed with it."""

    def __init__(
        self, client: Client, topic: str, replay: Callable[[bytes, bytes | None], None], reset: Callable[[], None]
    ) -> None:
        self.topic = topic
        self._client, self._replay, self._reset = client, replay, reset
        self._reader = Reader(client, topic, self._open)
        self._follower = Follower(self._reader, patient=True)

    def start(self, timeout_s: float) -> None:
        """Read everything that is there; StoreError if that takes longer."""
        with suppress(ClientError):  # the follower tries again
            self._reader.read_to_end()
        self._follower.start()
        if not self._follower.wait_until(self._is_loaded, timeout_s):
            self._give_up(timeout_s)

    def sync(self, timeout_s: float) -> None:
        """Read everything that is there now, transactions that are still open included: StoreError if they take longer.

        What a fenced task has committed may stand after an open transaction of another one.
        """
        deadline = time.monotonic() + timeout_s
        places = [(self.topic, number) for number in self._reader.states]
        ends = offsets.list_offsets(self._client, dict.fromkeys(places, offsets.LATEST), committed=False)

        def is_read() -> bool:
            states = self._reader.states
            return all(n in states and states[n].position >= end for (_, n), end in ends.items())

        if not self._follower.wait_until(is_read, max(0.1, deadline - time.monotonic())):
            self._give_up(timeout_s)

    def look(self, at: Callable[[], T]) -> T:
        """Return what `at` finds while nothing is replayed."""
        with self._reader.lock:
            return at()

    def wait_until(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        return self._follower.wait_until(reached, timeout_s)

    def partition_of(self, key: bytes) -> int:
        """Return where Kafka's producer puts a key."""
        return murmur2(key) % max(1, len(self._reader.states))

    def write(self, rows: Sequence[Pair], timeout_s: float) -> None:
        """Append records, those of a partition as one batch."""
        now = time.time_ns() // 1_000_000
        parts: dict[int, list[Record]] = {}
        for key, value in rows:
            parts.setdefault(self.partition_of(key), []).append(Record(0, now, key, value))
        for partition, made in parts.items():
            append(self._client, self.topic, partition, build(made), timeout_s)

    def close(self) -> None:
        self._follower.close()
        self._follower.join()

    def _is_loaded(self) -> bool:
        states = self._reader.states
        return bool(states) and all(state.loaded for state in states.values())

    def _give_up(self, timeout_s: float) -> None:
        why = self._follower.failure or self._follower.trouble
        said = f" ({why.rstrip('.')})" if why else ""
        raise StoreError(f"Topic {self.topic} could not be read to its end within {timeout_s:.0f} s{said}.")

    def _open(self, partition: int, start: int) -> Replayed:
        if partition == 0:  # the first of all that are opened
            self._reset()
        return Replayed(start, self._apply)

    def _apply(self, record: Record) -> None:
        """Replay one record. What makes no sense is logged and left out: other programs may write to the topic."""
        try:
            self._replay(bytes(record.key or b""), None if record.value is None else bytes(record.value))
        except NONSENSE as error:
            log.warning("record %s of %s makes no sense: %r", record.offset, self.topic, error)
