"""The topic of the keys: opened with the first request for keys, for most registries never see one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from moldau.registry.keys.records import Record
from moldau.topicstore import Store as TopicStore


class KeyTopic:
    """A topic store that is opened on demand, and taken over by whom the registries elect."""

    def __init__(self, opened: Callable[[], TopicStore[Record]], leads: Callable[[], bool]) -> None:
        self._open, self._leads, self._lock = opened, leads, threading.Lock()
        self._topic: TopicStore[Record] | None = None

    def get(self) -> TopicStore[Record]:
        """Return the topic, read to its end. ClientError or ServeError where that cannot be done."""
        with self._lock:
            if self._topic is None:
                topic = self._open()
                try:
                    if self._leads():
                        topic.take_over()
                except BaseException:
                    topic.close()
                    raise
                self._topic = topic
            return self._topic

    def take_over(self) -> None:
        """Become the writer, if the topic is open; else `get` will."""
        with self._lock:
            if self._topic is not None:
                self._topic.take_over()

    def close(self) -> None:
        with self._lock:
            if self._topic is not None:
                self._topic.close()
