"""A thread that samples the cluster every few seconds for all pages: ends of topics, offsets of groups.

It samples often while somebody watches and rarely otherwise, and spends at most a tenth of the time on it, however many
topics there are. It keeps the last error and goes on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from moldau.admin import TopicPartition, clusters, groups, offsets, topics
from moldau.client import Client, ClientError
from moldau.console.model.history import History, Sample, reads

WATCHED_S, UNWATCHED_S = 2.0, 15.0
WATCHING_S = 30.0  # after a page was last updated
SHARE = 10  # a round of one second is followed by ten seconds of rest
GROUPS = 200  # whose lag is sampled; a round asks each of them
# A broker that hangs must not hold up a round for a minute, or the pages would show what was before it.
PATIENCE = {"socket.timeout.ms": 3_000, "default.api.timeout.ms": 9_000}


class Sampler:
    """The thread. `history` is what it has seen, `error` the error of the last round, if any."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.time) -> None:
        self.history = History()
        self.error: ClientError | None = None
        self._client, self._clock = client.sibling(**PATIENCE), clock
        self._woken, self._ended = threading.Event(), threading.Event()
        self._watched_until = 0.0
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._woken.set()
        self._client.close()

    def watch(self) -> None:
        """Sample often for a while, because somebody watches."""
        sleeps = self._watched_until < time.monotonic()
        self._watched_until = time.monotonic() + WATCHING_S
        if sleeps:
            self._woken.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            began, rest_s = time.monotonic(), 0.0
            try:
                self.history.add(sample(self._client, self._clock))
                self.error, rest_s = None, (time.monotonic() - began) * SHARE
            except ClientError as error:  # it may have waited for a broker that has gone; the next round knows
                self.error = error
            self._rest(rest_s)

    def _rest(self, least_s: float) -> None:
        self._woken.clear()
        if self._watched_until > time.monotonic():
            self._ended.wait(max(WATCHED_S, least_s))
        else:
            self._woken.wait(max(UNWATCHED_S, least_s))


def sample(client: Client, clock: Callable[[], float]) -> Sample:
    """Return the state of the cluster now."""
    cluster, listed = clusters.described(client, fenced=True), topics.listed(client)
    places = [(topic.name, part.index) for topic in listed for part in topic.partitions if part.leader >= 0]
    known = ends(client, places)
    read = reads(groups.commits(client, groups.listed(client, partial=True), GROUPS), known)
    by_topic, lags = Counter[str](), Counter[str]()
    for (topic, _), end in known.items():
        by_topic[topic] += end
    for (group, _), one in read.items():
        lags[group] += one.lag
    return Sample(clock(), cluster, tuple(listed), by_topic, lags, read)


def ends(client: Client, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the next offsets of partitions, without those that have an error."""
    latest = offsets.at(client, dict.fromkeys(places, offsets.LATEST))
    return {place: one.offset for place, one in latest.items() if not one.error}
