"""Read a topic from its start and follow it: one reader for stores, views and the sink's markers.

A `Reader` fetches in the caller's thread and hands what it fetched to the state of each partition. A `Follower` keeps a
reader reading in a thread of its own and lets others wait for what it has read. A topic that was deleted and made
again is read again from its start, into a new state.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from moldau.client import Client, ClientError, Error, Fetched, Fetcher, Leader, check
from moldau.client import messages as m

log = logging.getLogger(__name__)

WAIT_MS = 500  # how long a broker holds a fetch that finds nothing new
ROUND_S = 5.0  # for one fetch with its retries; a topic that was made again is noticed only after it
PAUSE_S = 0.5
FETCH_BYTES = 4 << 20
EARLIEST, LATEST = -2, -1
NO_REPLICA = -1
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
BEGIN_ANEW = frozenset({Error.INCONSISTENT_TOPIC_ID, Error.UNKNOWN_TOPIC_ID, Error.OFFSET_OUT_OF_RANGE})


class StoreError(Exception):
    """The topic cannot serve as a store: one sentence that says what to do."""


class PartitionState(Protocol):
    """What the records of one partition have made so far. `position` is the next offset to read."""

    position: int

    def take(self, fetched: Fetched) -> None:
        """Replay what was fetched, and advance the position."""
        ...

    def skip_to(self, end: int) -> None:
        """Advance over offsets whose records compaction has removed."""
        ...


P = TypeVar("P", bound=PartitionState)


class Reader(Generic[P]):
    """The partitions of a topic, read in order. One thread at a time; `lock` is held while states change.

    `open_partition` makes the state of a partition from its number and first offset. `partitions` names those to read,
    all by default; it is asked again whenever reading begins anew.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        open_partition: Callable[[int, int], P],
        *,
        isolation_level: str = COMMITTED,
        partitions: Callable[[], Iterable[int]] | None = None,
    ) -> None:
        self.client, self.topic = client, topic
        self.lock = threading.Lock()
        self.states: dict[int, P] = {}
        self._open, self._level = open_partition, isolation_level
        self._numbers = partitions or (lambda: client.topic(topic).partitions)

    def begin(self) -> None:
        """Begin at the first offset of each partition, with new states."""
        starts = {number: offset_of(self.client, self.topic, number, EARLIEST) for number in sorted(self._numbers())}
        self._fetcher = Fetcher(self.client, isolation_level=self._level)
        with self.lock:
            self.states = {number: self._open(number, start) for number, start in starts.items()}

    def read(self, max_wait_ms: int = 0, timeout_s: float | None = None) -> dict[int, int]:
        """Fetch once and replay what came; return where the partitions end, or {} where reading began anew."""
        if not self.states:
            self.begin()
        offsets = {(self.topic, number): state.position for number, state in self.states.items()}
        try:
            found = self._fetcher.fetch(
                offsets, max_wait_ms=max_wait_ms, max_partition_bytes=FETCH_BYTES, timeout_s=timeout_s
            )
        except ClientError as error:
            if error.error not in BEGIN_ANEW:
                raise
            found = {place: Fetched(error.error) for place in offsets}
        errors = {fetched.error for fetched in found.values()} - {Error.NONE}
        if errors & BEGIN_ANEW:
            self.client.refresh([self.topic])
            self.begin()
            return {}
        good = {number: fetched for (_, number), fetched in found.items() if not fetched.error}
        final = next((error for error in errors if not good or not error.retriable), None)
        if final is not None:
            raise ClientError(final, f"{self.topic} cannot be read: {final.message}")
        return self._take(good)

    def read_to_end(self) -> None:
        """Replay everything up to where the partitions end now."""
        goals: dict[int, int] = {}
        while not goals or len(goals) < len(self.states):
            goals = self.read() | goals
        ends = goals
        while any(one.position < min(goals[n], ends.get(n, goals[n])) for n, one in self.states.items() if n in goals):
            ends = self.read()

    def ends(self) -> dict[int, int]:
        """Return where each partition ends now for readers of committed records."""
        return {number: offset_of(self.client, self.topic, number, LATEST) for number in self.states}

    def _take(self, good: dict[int, Fetched]) -> dict[int, int]:
        committed = self._level == COMMITTED
        ends = {n: one.last_stable_offset if committed else one.high_watermark for n, one in good.items()}
        with self.lock:
            for number, fetched in good.items():
                self.states[number].take(fetched)
            if len(good) == len(self.states) and not any(len(fetched.records) for fetched in good.values()):
                for number, end in ends.items():
                    self.states[number].skip_to(end)
        return ends


class Follower(Generic[P]):
    """A reader that reads in a thread until `close`.

    `trouble` says why the topic cannot be read just now. An error that retrying does not mend becomes `failure` and
    ends the thread, unless the follower is `patient`; so does a StoreError of a state or of `after_read`.
    """

    def __init__(
        self, reader: Reader[P], *, patient: bool = False, after_read: Callable[[], None] = lambda: None
    ) -> None:
        self.reader = reader
        self.trouble: str | None = None
        self.failure: str | None = None
        self.closed = False
        self._patient, self._after_read = patient, after_read
        self._changed = threading.Condition(reader.lock)
        self._thread = threading.Thread(target=self._run, name=f"follower of {reader.topic}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock while something else than a fetch changes the states, and wake those who wait."""
        with self._changed:
            yield
            self._changed.notify_all()

    def wait_until(self, reached: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until something has been read; False when the time is up or there is no more reading."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not reached():
                left = deadline - time.monotonic()
                if left <= 0 or self.failure is not None or self.closed:
                    return False
                self._changed.wait(left)
            return True

    def close(self) -> None:
        """End soon, and close the client; `join` waits for it."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self.reader.client.close()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self.closed and self.failure is None:
            try:
                self.reader.read(WAIT_MS, ROUND_S)
                self._after_read()
                self.trouble = None
            except ClientError as error:
                self._note(error)
            except StoreError as error:
                self.failure = str(error)
            except Exception as error:
                self.failure = f"replaying {self.reader.topic} failed: {error!r}"
                raise
            finally:
                with self._changed:
                    self._changed.notify_all()

    def _note(self, error: ClientError) -> None:
        if self.closed:
            return
        if not error.retriable and not self._patient:
            self.failure = str(error)
            return
        if self.trouble is None:
            log.warning("reading %s: %s", self.reader.topic, error)
        self.trouble = str(error)
        with self._changed:
            self._changed.wait_for(lambda: self.closed, PAUSE_S)


def offset_of(client: Client, topic: str, partition: int, when: int) -> int:
    """Return where a partition begins, or where it ends for readers of committed records."""
    wanted = m.ListOffsetsRequest_ListOffsetsPartition(partition_index=partition, timestamp=when)
    topics = [m.ListOffsetsRequest_ListOffsetsTopic(topic, [wanted])]
    request = m.ListOffsetsRequest(replica_id=NO_REPLICA, isolation_level=1, topics=topics)
    return check(client.send(request, to=Leader(topic, partition))).topics[0].partitions[0].offset
