"""Connections to known brokers and those of `bootstrap.servers`, with a back-off after failures."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from moldau.client.config import Address, Config
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline, pause_s
from moldau.client.errors import ClientError
from moldau.client.pool import Pool


class Brokers:
    """Connections by address, with a growing pause before one that failed is tried again."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pool = Pool(config)
        self._failed: dict[Address, tuple[int, float]] = {}  # failures in a row, when it may be tried again
        self._stop = threading.Event()

    @property
    def closed(self) -> bool:
        return self._pool.closed

    def close(self) -> None:
        self._stop.set()
        self._pool.close()

    def sleep(self, seconds: float) -> None:
        """Wait, unless the client is closed meanwhile."""
        self._stop.wait(seconds)
        self._pool.check()

    def choose(self, known: Iterable[Address]) -> Address:
        """Choose any address whose last connection succeeded; otherwise the one that may be tried again first."""
        every = list(dict.fromkeys((*known, *self._config.bootstrap)))
        ready = [address for address in every if address not in self._failed]
        return random.choice(ready) if ready else min(every, key=lambda address: self._failed.get(address, (0, 0.0))[1])

    @contextmanager
    def connection(self, address: Address, deadline: Deadline) -> Iterator[Connection]:
        """Lend a connection for the length of a `with`."""
        taken = self.take(address, deadline)
        try:
            yield taken
        finally:
            self.give_back(taken)

    def take(self, address: Address, deadline: Deadline) -> Connection:
        """Return a connection that is the caller's until it is given back."""
        count, again = self._failed.get(address, (0, 0.0))
        if (wait := again - time.monotonic()) > 0:
            self.sleep(min(wait, deadline.left))
        try:
            taken = self._pool.take(address, deadline)
        except ClientError:
            first, most = self._config["reconnect.backoff.ms"], self._config["reconnect.backoff.max.ms"]
            self._failed[address] = (count + 1, time.monotonic() + pause_s(count, first, most))
            raise
        self._failed.pop(address, None)
        return taken

    def give_back(self, taken: Connection) -> None:
        self._pool.give_back(taken)
