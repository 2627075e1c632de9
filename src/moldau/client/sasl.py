"""The SASL exchange that the settings of a client ask for; the mechanisms are in `moldau.sasl`."""

from __future__ import annotations

import json
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from typing import TypeVar

from moldau.client.config import TOKEN_CALLBACK, Config
from moldau.client.errors import ClientError
from moldau.sasl import bearer, plain, scram
from moldau.settings import SettingError
from moldau.wire.errors import Error

Exchange = Generator[bytes, bytes, None]
Result = TypeVar("Result")
LIFE_SECONDS = 3600
LONGEST_S = 60.0
MOST_THREADS = 16  # that ask a KDC; one that is silent keeps each for a minute

_threads = threading.BoundedSemaphore(MOST_THREADS)


def exchange(config: Config, host: str = "", seconds: float = LONGEST_S) -> Exchange:
    """Return a new exchange of the mechanism in the settings; Kerberos needs the broker's host, and a KDC in time."""
    mechanism = config["sasl.mechanism"]
    if mechanism == "GSSAPI":
        return _gssapi(config, host, seconds)
    if mechanism == "OAUTHBEARER":
        return oauthbearer(config)
    user, password = config["sasl.username"], config["sasl.password"]
    if mechanism == "PLAIN":
        if "\0" in user + password:
            raise SettingError("sasl.username", None, "PLAIN cannot carry a NUL in a user or password")
        return plain.client(user, password)
    extensions = {scram.TOKEN_AUTH: "true"} if config["sasl.scram.tokenauth"] else {}
    return _scram(scram.HASHES[mechanism], user, password, extensions)


def _scram(algorithm: str, user: str, password: str, extensions: Mapping[str, str]) -> Exchange:
    try:
        yield from scram.client(algorithm, user, password, secrets.token_urlsafe(24), extensions)
    except scram.ScramError as error:
        raise ClientError(Error.SASL_AUTHENTICATION_FAILED, f"SCRAM failed: {error}.") from error


def _gssapi(config: Config, host: str, seconds: float) -> Exchange:
    from moldau.sasl import kerberos

    names = (config[f"sasl.kerberos.{name}"] for name in ("principal", "keytab"))

    def begin() -> tuple[Exchange, bytes]:
        begun = kerberos.client(kerberos.initiator(config["sasl.kerberos.service.name"], host, *names))
        return begun, next(begun)

    try:
        begun, said = _within(seconds, begin)
        while True:
            said = begun.send((yield said))
    except StopIteration:
        return
    except TimeoutError:
        sentence = f"Kerberos failed: no KDC answered within {seconds:.1f} s."
        raise ClientError(Error.SASL_AUTHENTICATION_FAILED, sentence, retriable=True) from None
    except kerberos.KerberosError as error:
        raise ClientError(Error.SASL_AUTHENTICATION_FAILED, f"Kerberos failed: {error}.") from error


def _within(seconds: float, work: Callable[[], Result]) -> Result:
    """Do work that nothing can interrupt, as the system's Kerberos; raises TimeoutError and leaves it to its thread."""
    end = time.monotonic() + seconds
    if not _threads.acquire(timeout=seconds):
        raise TimeoutError
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)
            return
        finally:
            _threads.release()

    threading.Thread(target=run, name="kerberos", daemon=True).start()
    return outcome.result(max(0.0, end - time.monotonic()))


def oauthbearer(config: Config) -> Exchange:
    """Show a token from the callback, from the server of tokens, or one that nobody signed."""
    token, extensions = _token(config)
    try:
        yield from bearer.client(token, extensions)
    except bearer.InvalidToken as error:
        sentence = f"The broker does not accept the token: {error}."
        raise ClientError(Error.SASL_AUTHENTICATION_FAILED, sentence) from error


def _token(config: Config) -> tuple[str, Mapping[str, str]]:
    if config.token is not None:
        return _from_callback(config)
    if config["sasl.oauthbearer.method"] == "oidc":
        from moldau.client.oidc import fetch_token

        pairs = (pair.partition("=") for pair in config["sasl.oauthbearer.extensions"].split(",") if pair)
        return fetch_token(config), {name.strip(): value.strip() for name, _, value in pairs}
    return _unsigned(config)


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
