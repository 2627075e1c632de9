"""A service that acts as those who call it, so that Kafka's ACLs decide what they may.

The service gets a delegation token for the caller (KIP-373), for which it needs the operation CreateTokens on the user,
and makes clients that log in by it. They are kept until the token ends, and only so many of them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from moldau.admin import tokens
from moldau.client import Client

T = TypeVar("T")
SHARE = 0.8  # of a token's life, after which another one is made
GRACE_S = 60.0  # what is replaced or crowded out is closed after this: requests may still use it


def token_settings(token: tokens.Token, mechanism: str) -> dict[str, str]:
    """Return the settings with which a client logs in by a token."""
    return {
        "sasl.mechanism": mechanism,
        "sasl.username": token.id,
        "sasl.password": token.password,
        "sasl.scram.tokenauth": "true",
    }


@dataclass(slots=True)
class _Held(Generic[T]):
    thing: T
    until: float  # monotonic


class Acting(Generic[T]):
    """What works with Kafka in the name of callers, made by `make` from settings of clients and ended by `close`."""

    def __init__(
        self,
        client: Client,
        mechanism: str,
        make: Callable[[dict[str, str]], T],
        close: Callable[[T], None],
        most: int,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._mechanism, self._make, self._close, self._most = client, mechanism, make, close, most
        self._now = now
        self._held: OrderedDict[str, _Held[T]] = OrderedDict()
        self._leaving: list[_Held[T]] = []
        self._lock = threading.Lock()

    def find(self, name: str) -> T | None:
        """Return what acts for a caller if it is there; it never waits."""
        with self._lock:
            held = self._held.get(name)
            if held is None or held.until < self._now():
                return None
            self._held.move_to_end(name)
            return held.thing

    def of(self, name: str) -> T:
        """Return what acts for a caller; ClientError if the service may not, or Kafka does not answer."""
        found = self.find(name)
        if found is not None:
            return found
        token = tokens.create(self._client, f"User:{name}")
        life_s = max(0, token.expires_ms - token.issued_ms) / 1000
        made = _Held(self._make(token_settings(token, self._mechanism)), self._now() + SHARE * life_s)
        with self._lock:
            old = self._held.pop(name, None)
            self._held[name] = made
            gone = [old] if old else []
            while len(self._held) > self._most:
                gone.append(self._held.popitem(last=False)[1])
            self._leave(gone)
        return made.thing

    def all(self) -> list[T]:
        with self._lock:
            return [held.thing for held in self._held.values()]

    def _leave(self, gone: list[_Held[T]]) -> None:
        now = self._now()
        for held in gone:
            held.until = now + GRACE_S
        self._leaving += gone
        over = [held for held in self._leaving if held.until <= now]
        self._leaving = [held for held in self._leaving if held.until > now]
        for held in over:
            self._close(held.thing)

    def close(self) -> None:
        for held in (*self._held.values(), *self._leaving):
            self._close(held.thing)
        self._held.clear()
        self._leaving.clear()
