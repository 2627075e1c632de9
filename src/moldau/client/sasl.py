"""SASL mechanisms as generators: each yields what to send and takes what came back. They do no I/O."""

from __future__ import annotations

import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Generator, Mapping

from moldau.client.config import TOKEN_CALLBACK, Config
from moldau.client.errors import ClientError
from moldau.client.scram import scram
from moldau.settings import SettingError
from moldau.wire.errors import Error

Exchange = Generator[bytes, bytes, None]
SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LIFE_SECONDS = 3600


def exchange(config: Config) -> Exchange:
    """Return a new exchange of the mechanism in the settings."""
    mechanism = config["sasl.mechanism"]
    if mechanism == "OAUTHBEARER":
        return oauthbearer(config)
    user, password = config["sasl.username"], config["sasl.password"]
    if mechanism == "PLAIN":
        return plain(user, password)
    return scram(SCRAM[mechanism], user, password, secrets.token_urlsafe(24))


def plain(user: str, password: str) -> Exchange:
    """PLAIN (RFC 4616): the name and the password, so it belongs inside TLS."""
    if "\0" in user + password:
        raise SettingError("sasl.username", None, "PLAIN cannot carry a NUL in a user or password")
    yield f"\0{user}\0{password}".encode()


def oauthbearer(config: Config) -> Exchange:
    """OAUTHBEARER (RFC 7628, KIP-255): a token from the callback, or one that nobody signed."""
    token, extensions = _unsigned(config) if config.token is None else _from_callback(config)
    said = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    refusal = yield f"n,,\x01auth=Bearer {token}\x01{said}\x01".encode()
    if refusal:  # the broker gives its reason, and fails once it is acknowledged
        yield b"\x01"
        reason = refusal.decode(errors="replace")
        raise ClientError(Error.SASL_AUTHENTICATION_FAILED, f"The broker does not accept the token: {reason}.")


def _from_callback(config: Config) -> tuple[str, Mapping[str, str]]:
    """Call confluent-kafka's `oauth_cb`, which returns token and expiry, perhaps principal and extensions."""
    assert config.token is not None
    given = config.token(config["sasl.oauthbearer.config"])
    if isinstance(given, str):
        return given, {}
    if not isinstance(given, tuple) or len(given) < 1 or not isinstance(given[0], str):
        raise SettingError(TOKEN_CALLBACK, None, "it must return a token, or a tuple that begins with one")
    return given[0], (given[3] if len(given) > 3 else None) or {}


def _unsigned(config: Config) -> tuple[str, Mapping[str, str]]:
    """Make an unsecured token (RFC 7519, algorithm none) with the claims of `sasl.oauthbearer.config`."""
    name, text = "sasl.oauthbearer.config", config["sasl.oauthbearer.config"]
    words = dict(word.partition("=")[::2] for word in text.split())
    extensions = {key[10:]: words.pop(key) for key in list(words) if key.startswith("extension_")}
    claim, scope_claim = words.pop("principalClaimName", "sub"), words.pop("scopeClaimName", "scope")
    principal, scope = words.pop("principal", ""), words.pop("scope", "")
    life = words.pop("lifeSeconds", str(LIFE_SECONDS))
    if words or not principal or not life.isdigit():
        raise SettingError(name, text, "it must be principal=NAME, and perhaps scope, lifeSeconds, extension_NAME")
    now = int(time.time())
    claims: dict[str, object] = {claim: principal, "iat": now, "exp": now + int(life)}
    if scope:
        claims[scope_claim] = scope.split(",")
    return f"{_part({'alg': 'none'})}.{_part(claims)}.", extensions


def _part(content: Mapping[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
