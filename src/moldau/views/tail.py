"""The reader of a changelog: a thread that fetches what is committed and lets the partitions of a view take it in.

A cluster that is away is waited for, while look-ups go on with what is there. A topic that was deleted and made again
is read anew.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from moldau.client import Client, ClientError, Error, Fetched, Fetcher

from .errors import Stale, ViewError
from .offsets import EARLIEST, ends_of, offset_of
from .partition import Partition

WAIT_MS = 500
PAUSE_S = 0.5
ROUND_S = 5.0  # for one fetch: a topic that is another now is told only when its time is up
FETCH_BYTES = 4 << 20
BEGIN_ANEW = frozenset({Error.INCONSISTENT_TOPIC_ID, Error.UNKNOWN_TOPIC_ID, Error.OFFSET_OUT_OF_RANGE})

Make = Callable[[int, int], Partition]  # by number and first offset


class Tail:
    """All partitions of one topic. `max_bytes` is what they may hold together."""

    def __init__(self, client: Client, topic: str, make: Make, max_bytes: int) -> None:
        self.topic = topic
        self._client, self._make, self._max_bytes = client, make, max_bytes
        self._changed = threading.Condition()
        self._closed = False
        self._failure: str | None = None  # for good
        self.trouble: str | None = None  # that may pass
        self.partitions: list[Partition] = []
        self._begin()
        self._thread = threading.Thread(target=self._run, name=f"view of {topic}", daemon=True)
        self._thread.start()

    def wait_until(self, reached: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Looks again after each fetch; Stale when the time is up, ViewError when the view has failed."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                self.check()
                if reached():
                    return
                left = deadline - time.monotonic()
                if left <= 0:
                    trouble = f" ({self.trouble})" if self.trouble else ""
                    raise Stale(f"the view of {self.topic} has not reached {what} in {timeout_s:g} s{trouble}")
                self._changed.wait(min(left, WAIT_MS / 1000))

    def check(self) -> None:
        if self._failure is not None:
            raise ViewError(self._failure)
        if self._closed:
            raise ViewError(f"the view of {self.topic} is closed")

    def ends(self) -> dict[int, int]:
        """Where each partition ends now."""
        return ends_of(self._client, self.topic, range(len(self.partitions)))

    def close(self) -> None:
        """Ends soon; `join` waits for it."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._client.close()

    def join(self) -> None:
        self._thread.join()

    def _begin(self) -> None:
        numbers = sorted(self._client.topic(self.topic).partitions)
        starts = {number: offset_of(self._client, self.topic, number, EARLIEST) for number in numbers}
        self._fetcher = Fetcher(self._client, isolation_level="read_committed")
        self.partitions = [self._make(number, start) for number, start in starts.items()]

    def _run(self) -> None:
        while not self._closed:
            try:
                self._round()
                self.trouble = None
            except ClientError as error:
                self.trouble = str(error)
                if not error.retriable and not self._closed:
                    return self._fail(f"the view of {self.topic} ended: {error}")
                with self._changed:
                    self._changed.wait(PAUSE_S)
            except ViewError as error:
                return self._fail(str(error))
        return None

    def _round(self) -> None:
        offsets = {(self.topic, one.number): one.position for one in self.partitions}
        try:
            found = self._fetcher.fetch(
                offsets, max_wait_ms=WAIT_MS, max_partition_bytes=FETCH_BYTES, timeout_s=ROUND_S
            )
        except ClientError as error:
            if error.error not in BEGIN_ANEW:
                raise
            found = {place: Fetched(error.error) for place in offsets}
        by_number = {number: fetched for (_, number), fetched in found.items()}
        errors = {fetched.error for fetched in by_number.values()} - {Error.NONE}
        if errors & BEGIN_ANEW:
            self._client.refresh([self.topic])
            self._begin()
            return
        final = next((error for error in errors if not error.retriable), None)
        if final is not None:
            raise ClientError(final, f"{self.topic} cannot be read: {final.message}")
        self._take(by_number)

    def _take(self, found: Mapping[int, Fetched]) -> None:
        good = {number: fetched for number, fetched in found.items() if not fetched.error}
        for one in self.partitions:
            if one.number in good:
                one.take(good[one.number])
        if len(good) == len(self.partitions) and not any(len(fetched.records) for fetched in good.values()):
            for one in self.partitions:
                one.skip_to_end()
        if sum(one.content.size for one in self.partitions) > self._max_bytes:
            raise ViewError(
                f"the view of {self.topic} holds more than {self._max_bytes} bytes: let it take more "
                "(views.max.bytes), or look the keys up in fewer partitions by a consumer of your own"
            )
        with self._changed:
            self._changed.notify_all()

    def _fail(self, sentence: str) -> None:
        self._failure = sentence
        with self._changed:
            self._changed.notify_all()
