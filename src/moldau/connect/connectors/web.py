"""What the HTTP connectors share: settings, authentication, and which answers are worth another try."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from moldau.connect.config_def import Kind, between, key, one_of
from moldau.connect.errors import ConfigError, ConnectError, RetriableError, invalid

NONE, BASIC, BEARER = "NONE", "BASIC", "BEARER"


def an_http_url(name: str, value: Any) -> None:
    if not str(value or "").startswith(("http://", "https://")):
        raise invalid(name, value, "a URL begins with http:// or https://")


def status_codes(name: str, value: Any) -> None:
    codes(value)


KEYS = (
    key("auth.type", NONE, "How to authenticate.", validator=one_of(NONE, BASIC, BEARER)),
    key("connection.user", None, "The user, for BASIC."),
    key("connection.password", None, "The user's password, for BASIC.", Kind.PASSWORD),
    key("auth.token", None, "The token, for BEARER.", Kind.PASSWORD),
    key("http.connect.timeout.ms", 30_000, "How long to wait for a connection.", Kind.INT, validator=between(1)),
    key("http.request.timeout.ms", 30_000, "How long to wait for an answer.", Kind.INT, validator=between(1)),
    key("retry.on.status.codes", "429,500-", "Answers after which to try again.", validator=status_codes),
    key("max.retries", 10, "How often a request is tried again.", Kind.INT, validator=between(0)),
    key("retry.backoff.ms", 3000, "How long to wait before that.", Kind.INT, validator=between(0)),
    key("rate.limit", 0.0, "The most requests per second; 0 for any number.", Kind.DOUBLE, validator=between(0)),
)


class Refused(ConnectError):
    """An answer that no other try would change."""


def codes(text: str) -> list[tuple[int, int]]:
    """Read `400,500-599,900-` as ranges; ConfigError if it is none."""
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        low, dash, high = part.partition("-")
        try:
            found.append((int(low), int(high) if high else 999 if dash else int(low)))
        except ValueError:
            raise ConfigError(f"Invalid value {text} for configuration retry.on.status.codes") from None
    return found


def headers_of(text: str, separator: str = "|") -> dict[str, str]:
    """Read `Name:value|Other:value`."""
    pairs = [one.partition(":") for one in text.split(separator) if one.strip()]
    for name, colon, _ in pairs:
        if not colon or not name.strip():
            raise ConfigError(f"The header {name!r} is not written as Name:value.")
    return {name.strip(): value.strip() for name, _, value in pairs}


class Web:
    """Requests of one task. `send` returns an answer, or raises RetriableError or Refused."""

    def __init__(self, config: Mapping[str, Any], wait: Callable[[float], bool], headers: Mapping[str, str]) -> None:
        self._wait, self._most, self._left = wait, config["max.retries"], config["max.retries"]
        self._pause_s = config["retry.backoff.ms"] / 1000
        self._again = codes(config["retry.on.status.codes"])
        self._between_s = 1 / config["rate.limit"] if config["rate.limit"] else 0.0
        self._next = 0.0
        given, auth = dict(headers), None
        secret = config["auth.token"] if config["auth.type"] == BEARER else config["connection.password"]
        if config["auth.type"] == BEARER:
            given["Authorization"] = f"Bearer {secret.value if secret else ''}"
        elif config["auth.type"] == BASIC:
            auth = httpx.BasicAuth(config["connection.user"] or "", secret.value if secret else "")
        timeout = httpx.Timeout(
            config["http.request.timeout.ms"] / 1000, connect=config["http.connect.timeout.ms"] / 1000
        )
        self._client = httpx.Client(auth=auth, headers=given, timeout=timeout, follow_redirects=True)

    def send(self, method: str, url: str, body: bytes | None = None, **headers: str) -> httpx.Response:
        self._keep_rate()
        try:
            answer = self._client.request(method, url, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
                raise Refused(f"{url} cannot be asked: {error}") from error
            raise self._retriable(f"{method} {url}: {error or type(error).__name__}", None) from error
        if answer.status_code < 400:
            self._left = self._most
            return answer
        said = f"{method} {url} was answered {answer.status_code}: {answer.text[:200]}"
        if any(low <= answer.status_code <= high for low, high in self._again):
            raise self._retriable(said, answer.headers.get("retry-after"))
        raise Refused(said)

    def _keep_rate(self) -> None:
        now = time.monotonic()
        if self._between_s and now < self._next:
            self._wait(self._next - now)
        self._next = max(now, self._next) + self._between_s

    def _retriable(self, said: str, after: str | None) -> ConnectError:
        """Wait, and let the caller try again; fail when that was done often enough."""
        if self._left <= 0:
            return ConnectError(f"{said}; also after {self._most} retries")
        self._left -= 1
        self._wait(min(float(after), 300.0) if after and after.isdigit() else self._pause_s)
        return RetriableError(said)

    def close(self) -> None:
        self._client.close()
