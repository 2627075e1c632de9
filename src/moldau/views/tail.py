"""The reader of a changelog, which keeps the partitions of a view up to date.

While the cluster is away, look-ups go on with what was read before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moldau.client import Client
from moldau.topicstore import Follower, Reader

from .errors import Stale, ViewError
from .partition import Partition


class Tail:
    """All partitions of one topic. `max_bytes` is what they may hold together; the client is closed with it."""

    def __init__(self, client: Client, topic: str, make: Callable[[int, int], Partition], max_bytes: int) -> None:
        self.topic, self._max_bytes = topic, max_bytes
        self._reader = Reader(client, topic, make)
        self._reader.begin()
        self._follower = Follower(self._reader, after_read=self._check_size)
        self._follower.start()
        self.ends, self.close, self.join = self._reader.ends, self._follower.close, self._follower.join

    @property
    def partitions(self) -> Mapping[int, Partition]:
        """By number; another mapping when the topic was made again."""
        return self._reader.states

    @property
    def trouble(self) -> str | None:
        return self._follower.trouble

    def wait_until(self, reached: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait for something to be read; Stale when the time is up, ViewError when the view has failed."""
        self.check()
        if not self._follower.wait_until(reached, timeout_s):
            self.check()
            trouble = f" ({self.trouble})" if self.trouble else ""
            raise Stale(f"the view of {self.topic} has not reached {what} in {timeout_s:g} s{trouble}")

    def check(self) -> None:
        if self._follower.failure is not None:
            raise ViewError(f"the view of {self.topic} ended: {self._follower.failure}")
        if self._follower.closed:
            raise ViewError(f"the view of {self.topic} is closed")

    def _check_size(self) -> None:
        if sum(one.content.size for one in self.partitions.values()) > self._max_bytes:
            raise ViewError(
                f"it holds more than {self._max_bytes} bytes: let it take more (views.max.bytes), or look the keys up "
                "in fewer partitions by a consumer of your own"
            )
