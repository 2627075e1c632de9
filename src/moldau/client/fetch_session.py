"""Fetch sessions (KIP-227): a broker remembers what was asked for, so that only changes need to be said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NO_SESSION = -1  # the epoch of a request that wants none
MOST = 0x7FFFFFFF


class Key(NamedTuple):
    """A partition of a topic that may have been made anew under its name."""

    topic: str
    topic_id: bytes
    partition: int


class Want(NamedTuple):
    """What is asked for of a partition."""

    offset: int
    leader_epoch: int
    most_bytes: int


class FetchSession:
    """A session with one broker. A response names its partitions only where there is something new."""

    __slots__ = ("_known", "epoch", "id")

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        self._known: dict[Key, Want] = {}

    def changes(self, wanted: Mapping[Key, Want]) -> tuple[dict[Key, Want], list[Key]]:
        """What must be said of partitions this time, and which the broker shall forget."""
        if self.epoch == 0:
            self._known = dict(wanted)
            return dict(wanted), []
        changed = {key: want for key, want in wanted.items() if self._known.get(key) != want}
        forgotten = [key for key in self._known if key not in wanted]
        self._known = dict(wanted)
        return changed, forgotten

    def answered(self, session_id: int) -> None:
        """A broker that has no room for a session gives it the id 0: then all is said each time."""
        self.id = session_id
        self.epoch = 0 if session_id == 0 else 1 if self.epoch == MOST else self.epoch + 1

    def begin_anew(self, *, unknown: bool) -> None:
        """Say all again. The broker ends the old session, unless it does not know it any more."""
        self.epoch = 0
        if unknown:
            self.id = 0
