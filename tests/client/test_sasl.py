"""The mechanisms alone: what they say, and what they do not believe."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from moldau.client import ClientError
from moldau.client.config import Config
from moldau.client.sasl import oauthbearer, plain
from moldau.client.scram import scram
from moldau.settings import SettingError

# The exchange of RFC 7677.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def conversation(first: str, final: str) -> list[bytes]:
    exchange = scram("sha256", "user", "pencil", NONCE)
    said = [next(exchange), exchange.send(first.encode())]
    with pytest.raises(StopIteration):
        exchange.send(final.encode())
    return said


def test_scram_says_what_the_rfc_says() -> None:
    assert conversation(SERVER_FIRST, SERVER_FINAL) == [f"n,,n=user,r={NONCE}".encode(), CLIENT_FINAL.encode()]


def test_scram_escapes_names() -> None:
    assert next(scram("sha256", "a=b,c", "p", "n")) == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("first", "final", "words"),
    [
        (SERVER_FIRST, "v=AAAA", "could not show"),
        (SERVER_FIRST, "", "could not show"),
        (SERVER_FIRST, "e=invalid-proof", "invalid-proof"),
        (SERVER_FIRST.replace(NONCE, "x"), "", "does not answer ours"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "", "does not answer ours"),
        (f"m=x,{SERVER_FIRST}", "", "does not answer ours"),
        (SERVER_FIRST.replace("4096", "1"), "", "1 iterations"),
        (SERVER_FIRST.replace("4096", "999999999"), "", "999999999 iterations"),
        (SERVER_FIRST.replace("W22", "!"), "", "makes no sense"),
        ("\xff", "", "makes no sense"),
    ],
)
def test_scram_does_not_believe_a_server_that_does_not_know_the_password(first: str, final: str, words: str) -> None:
    with pytest.raises(ClientError, match=words) as caught:
        conversation(first, final)
    assert not caught.value.retriable


def test_plain_is_name_and_password() -> None:
    assert list(plain("user", "secret")) == [b"\0user\0secret"]
    with pytest.raises(SettingError):
        next(plain("us\0er", "secret"))


def oauth(**given: Any) -> Config:
    mechanism = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER"}
    return Config({"bootstrap.servers": "a", **mechanism, **{k.replace("_", "."): v for k, v in given.items()}})


def unsigned(text: str) -> Config:
    return oauth(enable_sasl_oauthbearer_unsecure_jwt=True, sasl_oauthbearer_config=text)


def test_a_token_nobody_signed_has_the_claims_of_the_setting() -> None:
    said = next(oauthbearer(unsigned("principal=bob scope=a,b lifeSeconds=60 extension_x=1"))).decode()
    head, x, end, rest = said.removeprefix("n,,\x01auth=Bearer ").split("\x01")
    algorithm, claims, signature = (part + "=" * (-len(part) % 4) for part in head.split("."))
    assert (x, end, rest, signature) == ("x=1", "", "", "")
    assert json.loads(urlsafe_b64decode(algorithm)) == {"alg": "none"}
    content = json.loads(urlsafe_b64decode(claims))
    assert (content["sub"], content["scope"], content["exp"] - content["iat"]) == ("bob", ["a", "b"], 60)


@pytest.mark.parametrize("text", ["", "scope=a", "principal=a lifeSeconds=x", "principal=a what=ever"])
def test_a_token_nobody_signed_needs_at_least_a_principal(text: str) -> None:
    with pytest.raises(SettingError, match="principal=NAME"):
        next(oauthbearer(unsigned(text)))


def test_a_token_comes_from_the_callback_each_time() -> None:
    asked: list[str] = []

    def callback(text: str) -> tuple[str, float, str, dict[str, str]]:
        asked.append(text)
        return f"token-{len(asked)}", 1.0, "me", {"a": "b"}

    config = Config(_with_callback(callback))
    assert next(oauthbearer(config)) == b"n,,\x01auth=Bearer token-1\x01a=b\x01\x01"
    assert b"token-2" in next(oauthbearer(config))
    assert asked == ["who=me", "who=me"]


def _with_callback(callback: Any) -> dict[str, Any]:
    given = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "OAUTHBEARER", "bootstrap.servers": "a"}
    return {**given, "oauth_cb": callback, "sasl.oauthbearer.config": "who=me"}


def test_a_callback_that_gives_no_token_is_refused() -> None:
    with pytest.raises(SettingError, match="oauth_cb"):
        next(oauthbearer(Config(_with_callback(lambda _: 7))))


def test_a_token_that_is_refused_is_answered_before_it_fails() -> None:
    exchange = oauthbearer(Config(_with_callback(lambda _: "t")))
    next(exchange)
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(ClientError, match="invalid_token"):
        exchange.send(b"")
