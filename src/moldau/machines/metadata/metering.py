"""Quotas as they are measured: which limit counts for whom, rates over windows, and buckets (KIP-13, KIP-599).

All of it is pure: time is passed in, in milliseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from moldau.machines.metadata.cluster import QuotaEntity

CLIENT_ID, USER, IP = "client-id", "user", "ip"


class Limit(NamedTuple):
    """A limit, and who shares it: a user, a client id or both; None where it does not matter."""

    value: float
    user: str | None
    client_id: str | None


def find_limit(quotas: Mapping[QuotaEntity, Mapping[str, float]], key: str, user: str, client_id: str) -> Limit | None:
    """Return the limit for a user and a client id: the first that is set, from the most special on."""
    for user_name, client_name in (
        (user, client_id),
        (user, None),
        (user, ...),
        (None, client_id),
        (None, None),
        (None, ...),
        (..., client_id),
        (..., None),
    ):
        parts = ((CLIENT_ID, client_name), (USER, user_name))
        entity = tuple((kind, name) for kind, name in parts if name is not ...)
        value = quotas.get(entity, {}).get(key)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if value is not None:
            return Limit(value, None if user_name is ... else user, None if client_name is ... else client_id)
    return None


class Rate:
    """What was used in the last windows, per second. A rate that has just begun counts as if all but one had passed."""

    __slots__ = ("_samples", "_total", "count", "window_ms")

    def __init__(self, count: int, window_ms: float) -> None:
        self.count, self.window_ms = count, window_ms
        self._samples: deque[list[float]] = deque()  # when it began, how much
        self._total = 0.0  # of all samples

    def record(self, value: float, now_ms: float) -> float:
        """Count something; returns what all windows have had."""
        samples = self._samples
        if not samples or now_ms - samples[-1][0] >= self.window_ms:
            samples.append([now_ms, 0.0])
            if len(samples) > self.count:
                self._total -= samples.popleft()[1]
        samples[-1][1] += value
        self._total += value
        return self._total

    def safe_total(self, limit: float) -> float:
        """Return the total that is below a limit for sure: no windows are shorter than all but one."""
        return limit * max(self.count - 1, 1) * self.window_ms / 1000

    def measure(self, now_ms: float) -> tuple[float, float]:
        """Return the rate, and the length of the windows that it is of."""
        samples = self._samples
        while samples and now_ms - samples[0][0] >= self.count * self.window_ms:
            self._total -= samples.popleft()[1]
        elapsed = now_ms - samples[0][0] if samples else 0.0
        missing = self.count - 1 - int(elapsed // self.window_ms)
        length = elapsed + max(missing, 0) * self.window_ms
        length = max(length, self.window_ms)
        return self._total / length * 1000, length

    def throttle_ms(self, limit: float, now_ms: float) -> float:
        """Return for how long nothing may follow, so that the rate comes down to its limit."""
        rate, length = self.measure(now_ms)
        return max(0.0, (rate - limit) / limit * length)


class Bucket:
    """Tokens that come back at a rate, up to a burst. The last one may be overdrawn, and then nobody gets any."""

    __slots__ = ("_at_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens: float | None = None
        self._at_ms = 0.0

    def fill(self, rate: float, burst: float, now_ms: float) -> float:
        """Return the tokens that are there now."""
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + (now_ms - self._at_ms) / 1000 * rate)
        self._at_ms = now_ms
        return self._tokens

    def take(self, count: float) -> None:
        assert self._tokens is not None
        self._tokens -= count

    def throttle_ms(self, rate: float) -> float:
        return max(0.0, -(self._tokens or 0.0) / rate * 1000)
