"""Tokens of an OAuth server by client credentials (KIP-768): asked for when needed, and used until they end."""

from __future__ import annotations

import json
import threading
import time

from moldau.client.config import Config
from moldau.client.errors import ClientError
from moldau.tokens.fetching import Bounds, FetchError, TooLarge, fetch
from moldau.wire.errors import Error

MOST_BYTES = 1 << 16
OK, FAULT = 200, 500
USED_SHARE = 0.8  # of a token's life
KEPT = 64  # tokens that are remembered

_lock = threading.Lock()
_tokens: dict[tuple[str, ...], tuple[str, float]] = {}


def fetch_token(config: Config) -> str:
    """Return a token that is still good for a while; ClientError if the server does not give one."""
    names = ("token.endpoint.url", "client.id", "client.secret", "scope")
    url, client, secret, scope = key = tuple(config[f"sasl.oauthbearer.{name}"] or "" for name in names)
    with _lock:
        token, until = _tokens.get(key, ("", 0.0))
        if time.monotonic() < until:
            return token
        token, life_s = _ask(url, client, secret, scope, config.seconds("socket.connection.setup.timeout.ms"))
        if len(_tokens) >= KEPT:
            _tokens.pop(next(iter(_tokens)))
        _tokens[key] = token, time.monotonic() + USED_SHARE * life_s
        return token


def _ask(url: str, client: str, secret: str, scope: str, timeout_s: float) -> tuple[str, float]:
    form = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    try:
        status, found = fetch("POST", url, Bounds(timeout_s, MOST_BYTES), data=form, auth=(client, secret))
        content = json.loads(found) if status == OK else None
    except FetchError as error:
        raise _failure(url, str(error), retriable=not isinstance(error, TooLarge)) from None
    except ValueError:
        raise _failure(url, "its answer is not JSON") from None
    if status != OK:
        raise _failure(url, f"it answers {status}", retriable=status >= FAULT)
    token, life_s = (
        content.get(name) if isinstance(content, dict) else None for name in ("access_token", "expires_in")
    )
    if not isinstance(token, str) or not token:
        raise _failure(url, "its answer has no access_token")
    return token, float(life_s) if isinstance(life_s, int | float) else 0.0


def _failure(url: str, why: str, *, retriable: bool = False) -> ClientError:
    sentence = f"No token from {url}: {why}."
    return ClientError(Error.SASL_AUTHENTICATION_FAILED, sentence, retriable=retriable)
