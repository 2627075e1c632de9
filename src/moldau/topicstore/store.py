"""A store: a state that follows one partition of a topic, and the way to change it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from moldau.client import Client, ClientError, Error, Fetched, Record, records

from .reader import Follower, Reader, StoreError
from .writer import Row, Writer

log = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")
REST_S = 0.05  # between fetches that would return only what this process has appended
NONSENSE = (ValueError, KeyError, TypeError, AttributeError)


class Codec(NamedTuple, Generic[R]):
    """How a record of the store becomes bytes, and bytes a record; `decode` raises ValueError for what is none."""

    encode: Callable[[R], Row]
    decode: Callable[[Record], R]


class State(Generic[R]):
    """What a store keeps. `replay` takes in one record, `reset` forgets everything because the topic was made again."""

    __slots__ = ("replay", "reset")

    def __init__(self, replay: Callable[[R], None], reset: Callable[[], None]) -> None:
        self.replay, self.reset = replay, reset


class Replayed:
    """One partition, replayed record by record. `goal` is where it ended when it was first read."""

    def __init__(self, start: int, apply: Callable[[Record], None]) -> None:
        self.position, self.goal = start, -1
        self._apply = apply

    @property
    def loaded(self) -> bool:
        return 0 <= self.goal <= self.position

    def take(self, fetched: Fetched) -> None:
        first = self.position
        if self.goal < 0:
            self.goal = fetched.last_stable_offset
        for batch in fetched.committed():
            for record in records(batch):
                if record.offset >= first:
                    self._apply(record)
        self.position = fetched.next_offset(first)

    def skip_to(self, end: int) -> None:
        self.position = max(self.position, end)


class Store(Generic[R]):
    """Partition 0 of a topic as a state. The package's docstring says what is promised.

    `noop` is a record that changes nothing; it marks the point at which a writer took over. `timeout_s` bounds a write
    from the wait for earlier ones until it has been read back. The client is closed with the store.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        codec: Codec[R],
        state: State[R],
        *,
        noop: R,
        transactional_id: str | None,
        timeout_s: float,
    ) -> None:
        self._topic, self._codec, self._state, self._noop, self._timeout_s = topic, codec, state, noop, timeout_s
        reader = Reader(client, topic, self._open, partitions=lambda: (0,))
        self._follower = Follower(reader, patient=True, after_read=self._rest)
        self._replayed_own, self._fetch_now = False, threading.Event()
        self._writer = Writer(client, topic, transactional_id)
        self._request_s = client.config.seconds("request.timeout.ms")
        self._turn = threading.Lock()

    def start(self, timeout_s: float) -> None:
        """Read everything that is there; StoreError if that takes longer."""
        with suppress(ClientError):  # at once; the follower tries again, and then waits for more
            self._follower.reader.read(timeout_s=timeout_s)
        self._follower.start()
        if not self._follower.wait_until(lambda: self._replayed is not None and self._replayed.loaded, timeout_s):
            why = self._follower.failure or self._follower.trouble
            said = f" ({why.rstrip('.')})" if why else ""
            raise StoreError(f"Topic {self._topic} could not be read to its end within {timeout_s:.0f} s{said}.")

    def close(self) -> None:
        self._follower.close()
        self._follower.join()

    def snapshot(self, copy: Callable[[], T]) -> tuple[int, T]:
        """Return the position and a copy of the state there; no record is replayed meanwhile."""
        with self._follower.reader.lock:
            return self.position, copy()

    def take_over(self) -> None:
        """Become the writer: fence the one before, and read everything that it has written. ClientError otherwise."""
        with self._turn:
            self._writer.take_over(self._request_s)
            self._write([self._noop], time.monotonic() + self._timeout_s)

    def update(self, decide: Callable[[], tuple[Sequence[R], T]]) -> T:
        """Change the state. `decide` reads it and returns records and an answer; the answer is returned when the
        records have been written and replayed. One call at a time decides, and sees what all before it have done.

        ClientError: REQUEST_TIMED_OUT where something took too long, a code of FENCED where another writer took over,
        and what the broker says of records that it refuses. What `decide` raises comes out, with nothing written.
        """
        deadline = time.monotonic() + self._timeout_s
        if not self._turn.acquire(timeout=self._timeout_s):
            raise _late("Waiting for earlier writes")
        try:
            if not self._writer.is_certain:
                self._settle(deadline)
            rows, answer = decide()
            if rows:
                self._write(rows, deadline)
            return answer
        finally:
            self._turn.release()

    def _settle(self, deadline: float) -> None:
        """Find out what became of a write that was not answered: after this it is read, or can never arrive."""
        try:
            self._writer.renew(deadline - time.monotonic())
        except ClientError as error:
            raise _late("The write to the topic") if error.retriable else error from error
        self._write([self._noop], deadline)

    def _write(self, rows: Sequence[R], deadline: float) -> None:
        encoded = [self._codec.encode(row) for row in rows]
        try:
            appended = self._writer.append(encoded, max(0.1, deadline - time.monotonic()))
        except ClientError as error:
            raise _late("The write to the topic") if error.retriable else error from error
        if self._replay_own(appended):
            return
        self._fetch_now.set()
        if not self.wait_for(appended[-1].offset + 1, max(0.1, deadline - time.monotonic())):
            self._writer.in_doubt = True  # the next decision must not be made without it
            raise _late("Reading back what was written")

    def _replay_own(self, appended: Sequence[Record]) -> bool:
        """Replay what was just appended without fetching it, if everything before it has been replayed."""
        with self._follower.changing():
            state = self._replayed
            if state is None or state.position != appended[0].offset or not _are_contiguous(appended):
                return False
            for record in appended:
                self._apply(record)
            state.position = appended[-1].offset + 1
        self._replayed_own = True
        return True

    def _rest(self) -> None:
        """Let own changes gather that need no fetch."""
        if self._replayed_own:
            self._replayed_own = False
            self._fetch_now.wait(REST_S)
            self._fetch_now.clear()

    def wait_for(self, position: int, timeout_s: float | None = None) -> bool:
        """Wait until all records before a position have been replayed; False if that takes too long."""
        limit = self._timeout_s if timeout_s is None else timeout_s
        return self._follower.wait_until(lambda: self.position >= position, limit)

    @property
    def position(self) -> int:
        """The offset up to which the state has been replayed."""
        return 0 if self._replayed is None else self._replayed.position

    @property
    def _replayed(self) -> Replayed | None:
        return self._follower.reader.states.get(0)

    def _open(self, _: int, start: int) -> Replayed:
        self._state.reset()
        return Replayed(start, self._apply)

    def _apply(self, record: Record) -> None:
        """Replay one record. What makes no sense is logged and left out: other programs may write to the topic."""
        try:
            self._state.replay(self._codec.decode(record))
        except NONSENSE as error:
            log.warning("record %s of %s makes no sense: %r", record.offset, self._topic, error)


def _are_contiguous(appended: Sequence[Record]) -> bool:
    return appended[-1].offset - appended[0].offset == len(appended) - 1


def _late(what: str) -> ClientError:
    return ClientError(Error.REQUEST_TIMED_OUT, f"{what} took too long.")
