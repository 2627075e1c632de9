"""The exchange that the settings ask for."""

from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from moldau.client import ClientError
from moldau.client.config import Config
from moldau.client.sasl import MOST_THREADS, exchange, oauthbearer
from moldau.sasl import kerberos
from moldau.settings import SettingError


def by_password(mechanism: str, user: str, password: str = "secret") -> Config:
    given = {"security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism, "bootstrap.servers": "a"}
    return Config({**given, "sasl.username": user, "sasl.password": password})


def test_plain_is_name_and_password() -> None:
    assert list(exchange(by_password("PLAIN", "user"))) == [b"\0user\0secret"]
    with pytest.raises(SettingError):
        exchange(by_password("PLAIN", "us\0er"))


def test_a_server_that_does_not_know_the_password_is_not_believed() -> None:
    talk = exchange(by_password("SCRAM-SHA-256", "user"))
    assert next(talk).startswith(b"n,,n=user,r=")
    with pytest.raises(ClientError, match="does not answer ours") as caught:
        talk.send(b"r=abc,s=AAAA,i=4096")
    assert not caught.value.retriable


def test_a_kdc_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(kerberos, "require", lambda: None)
    monkeypatch.setattr(kerberos, "initiator", lambda *_: answered.wait(60))
    given = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "GSSAPI", "bootstrap.servers": "a"}
    begin = time.monotonic()
    for _ in range(MOST_THREADS + 2):
        with pytest.raises(ClientError, match=r"no KDC answered within 0\.1 s") as caught:
            next(exchange(Config(given), "broker.example", 0.1))
        assert caught.value.retriable
    assert time.monotonic() - begin < 30
    asking = [thread for thread in threading.enumerate() if thread.name == "kerberos"]
    assert len(asking) <= MOST_THREADS
    answered.set()
    for thread in asking:
        thread.join()


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
    talk = oauthbearer(Config(_with_callback(lambda _: "t")))
    next(talk)
    assert talk.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(ClientError, match="invalid_token"):
        talk.send(b"")
