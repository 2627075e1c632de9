"""Fetch sessions (KIP-227): a broker remembers what was requested, so that requests carry only changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NO_SESSION = -1  # the epoch of a request that wants none
MOST = 0x7FFFFFFF


class Key(NamedTuple):
    """A partition of a topic; the id tells topics of the same name apart."""

    topic: str
    topic_id: bytes
    partition: int


class Want(NamedTuple):
    """What is requested of a partition."""

    offset: int
    leader_epoch: int
    most_bytes: int


class FetchSession:
    """A session with one broker. Responses have only partitions with news."""

    __slots__ = ("_known", "epoch", "id")

    def __init__(self) -> None:
        self.id = 0
        self.epoch = 0
        self._known: dict[Key, Want] = {}

    def changes(self, wanted: Mapping[Key, Want]) -> tuple[dict[Key, Want], list[Key]]:
        """Return what the next request must carry, and which partitions the broker shall forget."""
        if self.epoch == 0:
            self._known = dict(wanted)
            return dict(wanted), []
        changed = {key: want for key, want in wanted.items() if self._known.get(key) != want}
        forgotten = [key for key in self._known if key not in wanted]
        self._known = dict(wanted)
        return changed, forgotten

    def answered(self, session_id: int) -> None:
        """Note the id of the session; a broker without room gives 0, and then every request carries everything."""
        self.id = session_id
        self.epoch = 0 if session_id == 0 else 1 if self.epoch == MOST else self.epoch + 1

    def begin_anew(self, *, unknown: bool) -> None:
        """Start a new session. The broker ends the old one, unless it no longer knows it."""
        self.epoch = 0
        if unknown:
            self.id = 0
