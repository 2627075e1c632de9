"""Listeners that cannot be what their settings say do not start; and tokens that are checked are checked in full."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from moldau.broker.authentication.mechanisms import check_listener, client_exchange
from moldau.broker.authentication.tokens import make_validator
from moldau.broker.rim.entrances import Entrance
from moldau.sasl.bearer import InvalidToken
from moldau.settings import SettingError, Settings
from moldau.tokens.web_tokens import Rules, Validator
from tests.broker.authentication.secured import BEARER, SCRAM, plain_line

JAAS = "listener.name.sasl_ssl.{}.sasl.jaas.config"


def refusal(**given: str) -> str:
    settings = Settings.load({name.replace("_", "."): value for name, value in given.items()})
    with pytest.raises(SettingError) as caught:
        check_listener(settings, "SASL_SSL")
    return str(caught.value)


def test_a_listener_with_sasl_needs_a_mechanism_that_there_is() -> None:
    assert "needs a mechanism" in refusal(sasl_enabled_mechanisms="")
    assert "gssapi.sasl.jaas.config: GSSAPI needs it" in refusal()  # the default, as in Kafka
    assert "NOPE is not supported" in refusal(sasl_enabled_mechanisms="PLAIN,NOPE", sasl_jaas_config=plain_line())


def test_a_mechanism_needs_its_line() -> None:
    assert "plain.sasl.jaas.config: PLAIN needs it" in refusal(sasl_enabled_mechanisms="PLAIN")
    assert "needs PlainLoginModule, not Scram" in refusal(sasl_enabled_mechanisms="PLAIN", sasl_jaas_config=SCRAM)


def test_a_line_of_the_mechanism_wins_over_that_of_the_listener() -> None:
    given = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256", "sasl.jaas.config": plain_line()}
    settings = Settings.load(given | {JAAS.format("scram-sha-256"): SCRAM})
    check_listener(settings, "SASL_SSL")


def test_the_login_between_brokers_needs_a_user() -> None:
    settings = Settings.load({"sasl.jaas.config": plain_line()})
    with pytest.raises(SettingError, match="username and password"):
        client_exchange(settings, "SASL_SSL", "PLAIN", "nonce")


def test_tls_needs_a_key(tmp_path: Path) -> None:
    for some in ({}, {"ssl.keystore.location": str(tmp_path / "none")}):
        node: Any = SimpleNamespace(settings=Settings.load(some))
        with pytest.raises(SettingError, match=r"ssl\.keystore\.location"):
            Entrance(node, "SSL", "SSL")


# Tokens.

KEY = ECKey.generate_key("P-256", {"kid": "one"})
RULES = Rules("https://issuer", ("kafka",), 0, "sub", "scope")
NOW = 1_000_000.0
CLAIMS = {"sub": "olga", "iat": NOW - 1, "exp": NOW + 60, "aud": ["x", "kafka"], "iss": "https://issuer"}


def validator(asked: list[int] | None = None) -> Validator:
    return Validator(RULES, lambda: NOW, KeySet([KEY]), lambda: (asked if asked is not None else []).append(1))


def signed(key: Any = KEY, algorithm: str = "ES256", kid: str = "one", **claims: Any) -> str:
    header = {"alg": algorithm, "kid": kid}
    return jwt.encode(header, {**CLAIMS, **claims}, key, algorithms=[algorithm])


def test_a_token_says_who_and_until_when() -> None:
    assert validator().validate(signed()) == ("olga", int((NOW + 60) * 1000))


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - 1},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": 1e300},
        {"iat": NOW + 10},
        {"nbf": NOW + 10},
        {"aud": "other"},
        {"aud": None},
        {"iss": "https://else"},
        {"sub": ""},
        {"sub": 7},
        {"scope": {"a": 1}},
    ],
)
def test_a_token_that_says_something_else_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken):
        validator().validate(signed(**claims))


def test_a_key_of_somebody_else_does_not_count() -> None:
    with pytest.raises(InvalidToken):
        validator().validate(signed(ECKey.generate_key("P-256", {"kid": "one"})))


def test_an_unknown_key_is_asked_for() -> None:
    asked: list[int] = []
    with pytest.raises(InvalidToken, match="its key is unknown"):
        validator(asked).validate(signed(ECKey.generate_key("P-256", {"kid": "two"}), kid="two"))
    assert asked == [1]


def test_a_token_signed_with_the_public_key_as_a_secret_is_refused() -> None:
    head = urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').rstrip(b"=").decode()
    said = f"{head}.{signed().split('.')[1]}"
    proof = hmac.digest(KEY.as_pem(private=False), said.encode(), "sha256")
    with pytest.raises(InvalidToken):
        validator().validate(f"{said}.{urlsafe_b64encode(proof).rstrip(b'=').decode()}")


def test_unsigned_token_is_refused_by_default() -> None:
    head, claims, _ = signed().split(".")
    none = urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    for token in (f"{none}.{claims}.", f"{head}.{claims}."):
        with pytest.raises(InvalidToken):
            validator().validate(token)


def test_a_token_of_a_megabyte_is_refused() -> None:
    with pytest.raises(InvalidToken, match="characters"):
        validator().validate(signed(more="x" * 1_000_000))


@given(st.text(alphabet="eyJ.-_abc09=", max_size=200), st.integers(0, 400), st.integers(1, 127))
def test_no_text_is_a_token(text: str, place: int, change: int) -> None:
    good = signed()
    at = place % len(good)
    damaged = good[:at] + chr((ord(good[at]) + change) % 128) + good[at + 1 :]
    for token in (text, damaged):
        try:
            assert validator().validate(token)[0] == "olga"
            assert token.rpartition(".")[0] == good.rpartition(".")[0], "only unused bits of the signature may differ"
        except InvalidToken:
            pass


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "jwks.json"
    keys = [KEY.as_dict(private=False), RSAKey.generate_key(2048, {"kid": "rsa"}).as_dict(private=False)]
    path.write_text(json.dumps({"keys": keys}))
    yield f"file://{path}"


def made(**given: str) -> Validator:
    settings = Settings.load({name.replace("_", "."): value for name, value in given.items()})
    return make_validator(settings, "SASL_SSL", given.get("host", "127.0.0.1"), time.time)


def test_keys_are_read_from_a_file(keys: str) -> None:
    found = made(sasl_oauthbearer_jwks_endpoint_url=keys, moldau_sasl_oauthbearer_allowed_urls=keys)
    assert found.keys is not None


def test_jwks_url_must_be_allowed(keys: str) -> None:
    with pytest.raises(SettingError, match="does not name it"):
        made(sasl_oauthbearer_jwks_endpoint_url=keys)
    url = "http://169.254.169.254/keys"
    with pytest.raises(SettingError, match="https"):
        made(sasl_oauthbearer_jwks_endpoint_url=url, moldau_sasl_oauthbearer_allowed_urls=url)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"keys": []}', '{"keys": [{"kty": "x"}]}', " " * (1 << 20) + "{}"])
def test_what_is_no_set_of_keys_does_not_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    url = f"file://{path}"
    with pytest.raises(SettingError, match="no key"):
        made(sasl_oauthbearer_jwks_endpoint_url=url, moldau_sasl_oauthbearer_allowed_urls=url)


def test_oauthbearer_without_keys_does_not_start() -> None:
    with pytest.raises(SettingError, match="anybody can be anyone"):
        made()
    with pytest.raises(SettingError, match="from outside"):
        made(moldau_sasl_oauthbearer_unsecured="true", host="0.0.0.0")
    assert made(moldau_sasl_oauthbearer_unsecured="true").keys is None


def test_the_line_of_a_bearer_is_known() -> None:
    check_listener(Settings.load({"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.jaas.config": BEARER}), "SASL_SSL")
