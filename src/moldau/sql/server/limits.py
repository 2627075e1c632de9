"""What a server allows: how many queries, how often, how much, and which properties. The messages are ksqlDB's."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from moldau.sql.server.errors import BAD_REQUEST, TOO_MANY_PUSH_QUERIES, TOO_MANY_REQUESTS, ServerError
from moldau.sql.server.property_names import STREAMS

HOUR_S, MEGABYTE = 3_600.0, 1 << 20
UNLIMITED = (1 << 31) - 1
# Where the server itself connects and loads code from: a request that could say so would have it call any address.
FIXED = frozenset({"ksql.connect.url", "ksql.extension.dir", "ksql.schema.registry.url", "ksql.service.id"})


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of the limits."""

    push_queries: int = UNLIMITED
    pull_queries: int = UNLIMITED
    pull_rate: int = UNLIMITED
    pull_megabytes: int = UNLIMITED
    pull_rows: int = 1_000_000
    pull_memory_megabytes: int = 256
    slow_reader_s: float = 60.0
    statements: int = 1_000
    denied: frozenset[str] = FIXED
    allowed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Any) -> Limits:
        return cls(
            settings["ksql.max.push.queries"],
            settings["ksql.query.pull.max.concurrent.requests"],
            settings["ksql.query.pull.max.qps"],
            settings["ksql.query.pull.max.hourly.bandwidth.megabytes"],
            settings["ksql.query.pull.max.rows"],
            settings["ksql.query.pull.max.memory.megabytes"],
            settings["ksql.query.push.slow.reader.timeout.ms"] / 1000,
            settings["ksql.statements.max.per.request"],
            FIXED | _plain(settings["ksql.properties.overrides.denylist"]),
            _plain(settings["ksql.properties.overrides.allowlist"]),
        )

    def allows(self, name: str) -> bool:
        """Whether requests may set a property, named with the prefix of streams or without."""
        plain = name.removeprefix(STREAMS)
        return plain not in self.denied and (not self.allowed or plain in self.allowed)


def _plain(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(STREAMS) for name in names)


@dataclass(slots=True)
class Admission:
    """Counts what is under way, and refuses what is too much. Any thread may call."""

    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    pulls: int = 0
    begun: deque[float] = field(default_factory=deque)  # when the pull queries of the last second began
    sent: deque[tuple[float, int]] = field(default_factory=deque)  # bytes of the last hour, a row for each answer
    sent_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def push(self, running: int) -> None:
        """Admit a push query, or refuse it."""
        if running >= self.limits.push_queries:
            raise ServerError(
                TOO_MANY_PUSH_QUERIES,
                "Maximum number of push queries exceeded: there are "
                f"{self.limits.push_queries} already (ksql.max.push.queries).",
            )

    @contextmanager
    def pull(self) -> Iterator[None]:
        """Admit a pull query for as long as the context is open, or refuse it."""
        with self.lock:
            self._check_pull()
            self.pulls += 1
        try:
            yield
        finally:
            with self.lock:
                self.pulls -= 1

    def _check_pull(self) -> None:
        now, limits = self.clock(), self.limits
        while self.begun and self.begun[0] <= now - 1:
            self.begun.popleft()
        while self.sent and self.sent[0][0] <= now - HOUR_S:
            self.sent_bytes -= self.sent.popleft()[1]
        if len(self.begun) >= limits.pull_rate:
            raise _too_many(
                f"Host is at rate limit for pull queries. Currently set to {limits.pull_rate} queries per second."
            )
        if self.pulls >= limits.pull_queries:
            raise _too_many(
                "Host is at concurrency limit for pull queries. "
                f"Currently set to maximum {limits.pull_queries} concurrent requests."
            )
        if self.sent_bytes >= limits.pull_megabytes * MEGABYTE:
            raise _too_many("Host is at bandwidth rate limit for pull queries.")
        if limits.pull_rate < UNLIMITED:
            self.begun.append(now)

    def answered(self, size: int) -> None:
        """Count the bytes of an answer to a pull query."""
        if self.limits.pull_megabytes < UNLIMITED:
            with self.lock:
                self.sent.append((self.clock(), size))
                self.sent_bytes += size

    def check_statements(self, count: int) -> None:
        if count > self.limits.statements:
            raise ServerError(
                BAD_REQUEST,
                f"The request has {count} statements, at most {self.limits.statements} are allowed "
                "(ksql.statements.max.per.request).",
            )

    def check_properties(self, given: Mapping[str, Any] | Iterable[str]) -> None:
        """Refuse properties that requests may not set."""
        if refused := sorted(name for name in given if not self.limits.allows(name)):
            raise ServerError(
                BAD_REQUEST,
                "One or more properties overrides set locally are prohibited by the KSQL server "
                f"(use UNSET to reset their default value): [{', '.join(refused)}]",
            )


def _too_many(message: str) -> ServerError:
    return ServerError(TOO_MANY_REQUESTS, message)
