"""What workers say of the queries that run on Spark."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from moldau.admin import groups
from moldau.client import Client, Record
from moldau.flows import states
from moldau.flows.assignment import GROUP
from moldau.flows.states import FlowState
from moldau.topicstore import Follower, Reader, exists
from moldau.topicstore.store import NONSENSE, Replayed

LOOK_S = 1.0  # between two looks for the topic, which the first worker makes
READ_S = 10.0


def living(members: Sequence[tuple[bytes, bytes]], before: frozenset[str] | None) -> frozenset[str] | None:
    """Return the names of workers by what members of their group say of themselves; `before` while the group is about
    to agree on a new round, when brokers do not tell that.
    """
    if any(not metadata for metadata, _ in members):
        return before
    return frozenset(str(json.loads(metadata)["worker"]) for metadata, _ in members)


class States(Protocol):
    """The states of flows by their names."""

    def of(self, name: str) -> FlowState | None:
        """Return what was said of a flow last; None if no worker has had it, or it was removed."""
        ...

    def lives(self, worker: str) -> bool:
        """Whether a worker is a member of the workers' group."""
        ...


class NoStates:
    """The states of a service without workers."""

    def of(self, name: str) -> FlowState | None:
        return None

    def lives(self, worker: str) -> bool:
        return False


class WorkerStates:
    """Follows the topic of states from the time on at which somebody asks and the topic is there."""

    def __init__(self, client: Client) -> None:
        self._client, self._lock = client, threading.Lock()
        self._known: dict[str, FlowState] = {}
        self._follower: Follower[Replayed] | None = None
        self._look_at = self._count_at = 0.0
        self._living: frozenset[str] | None = None

    def of(self, name: str) -> FlowState | None:
        self._follow()
        return self._known.get(name)

    def lives(self, worker: str) -> bool:
        with self._lock:
            if time.monotonic() >= self._count_at:
                self._living = living(groups.raw_members(self._client, GROUP), self._living)
                self._count_at = time.monotonic() + LOOK_S
            return self._living is None or worker in self._living

    def _follow(self) -> None:
        with self._lock:
            if self._follower is not None or time.monotonic() < self._look_at:
                return
            self._look_at = time.monotonic() + LOOK_S
            if not exists(self._client, states.TOPIC):
                return
            reader = Reader(self._client.sibling(), states.TOPIC, self._open, partitions=lambda: (0,))
            self._follower = Follower(reader, patient=True)
            self._follower.start()
            self._follower.wait_until(lambda: any(one.loaded for one in reader.states.values()), READ_S)

    def _open(self, partition: int, start: int) -> Replayed:
        self._known.clear()
        return Replayed(start, self._take)

    def _take(self, record: Record) -> None:
        try:
            name = bytes(record.key or b"").decode()
            found = None if record.value is None else states.decode(record)
        except NONSENSE:  # figures of workers, or of a later release
            return
        if found is None:
            self._known.pop(name, None)
        else:
            self._known[name] = found

    def close(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower.join()
