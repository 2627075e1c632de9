"""The time line of a cluster, read from its metadata log as far as somebody looks at it. Bounded."""

from __future__ import annotations

import threading
from collections import deque

from moldau.admin import clusters, topics
from moldau.admin.metadata_log import MetadataLog
from moldau.client import Client
from moldau.console.model.timeline import Event, Teller

OFFSETS = 20_000  # read of the log at first; about three hours of a cluster in which nothing happens
EVENTS = 1000  # kept


class Timeline:
    """The events of a cluster, for all pages together."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._log = MetadataLog(client, OFFSETS)
        self._teller = Teller()
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._lock = threading.Lock()

    def read(self) -> list[Event]:
        """Read on, and return the events, the newest first; Mistake if the log cannot be had. With one broker nobody is
        elected and nobody else is in sync."""
        with self._lock:
            if len(clusters.described(self._client, fenced=True).brokers) < 2:
                return []
            if entries := self._log.read():
                names = {topic.id: topic.name for topic in topics.listed(self._client)}
                self._teller.names |= names
                self._events.extend(self._teller.tell(entries))
            return list(reversed(self._events))
