"""A pool of connections by address. A user takes one and gives it back; the latest given back is taken first.

A broker has as many connections as it had users at the same time, so a long poll never delays a heartbeat. Idle ones
are closed after `connections.max.idle.ms`.
"""

from __future__ import annotations

import threading
import time

from moldau.client import tls
from moldau.client.config import Address, Config
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline
from moldau.client.errors import ClientError
from moldau.wire.errors import Error


class Pool:
    """The pool of a client, for any number of threads; a connection belongs to one thread at a time."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._context = tls.context(config) if config.uses_tls else None
        self._lock = threading.Lock()
        self._idle: dict[Address, list[Connection]] = {}
        self._used: set[Connection] = set()
        self.closed = False

    def take(self, address: Address, deadline: Deadline) -> Connection:
        while (idle := self._pop(address)) is not None:
            if idle.is_fresh():
                return self._register(idle)
            idle.close()
        return self._register(Connection(address, self._config, self._context, deadline))

    def give_back(self, taken: Connection) -> None:
        """Keep a connection for the next user, and close the least recently used one if it is old."""
        unwanted: Connection | None = taken
        with self._lock:
            self._used.discard(taken)
            if taken.is_open and not taken.in_flight and not self.closed:
                taken.idle_since = time.monotonic()
                some = self._idle.setdefault(taken.address, [])
                some.append(taken)
                unwanted = some.pop(0) if some[0].is_stale() else None
        if unwanted is not None:
            unwanted.close()

    def close(self) -> None:
        """Close idle connections, and interrupt those in use."""
        with self._lock:
            self.closed = True
            idle = [connection for some in self._idle.values() for connection in some]
            self._idle.clear()
            used = list(self._used)
        for connection in idle:
            connection.close()
        for connection in used:
            connection.interrupt()

    def check(self) -> None:
        """Raise ClientError if the pool is closed."""
        if self.closed:
            raise ClientError(Error.NETWORK_EXCEPTION, "The client is closed.", retriable=False)

    def _pop(self, address: Address) -> Connection | None:
        self.check()
        with self._lock:
            some = self._idle.get(address)
            return some.pop() if some else None

    def _register(self, connection: Connection) -> Connection:
        with self._lock:
            if not self.closed:
                self._used.add(connection)
                return connection
        connection.close()
        self.check()
        raise AssertionError("unreachable")
