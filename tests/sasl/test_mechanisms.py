"""PLAIN and OAUTHBEARER, the server's half: the answers are Kafka's, and nobody comes in without a credential."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.sasl import bearer, plain
from moldau.sasl.outcome import Admitted, Denied, Exchange

USERS = {"alice": "b", "ünï": "pässword"}
TOKENS = {"good.token": ("olga", 1234)}


def run(exchange: Exchange, *messages: bytes) -> tuple[Admitted | str, list[bytes]]:
    """Send messages; returns who came in, or why not, and what was answered before."""
    answers: list[bytes] = []
    next(exchange)
    try:
        for message in messages:
            answers.append(exchange.send(message))
    except StopIteration as end:
        return end.value, answers
    except Denied as denied:
        return str(denied), answers
    return "", answers


WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        (b"\0alice\0b", Admitted("alice")),
        (b"alice\0alice\0b", Admitted("alice")),
        ("\0ünï\0pässword".encode(), Admitted("ünï")),
        (b"\0alice\0x", WRONG),
        (b"\0nobody\0b", WRONG),
        (b"\0al\xff\0b", WRONG),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0b", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0b\0c", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0b", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
    ],
)
def test_plain_answers_as_kafka(message: bytes, outcome: Admitted | str) -> None:
    assert run(plain.server(USERS.get), message) == (outcome, [])


def test_authorization_id_must_be_the_user() -> None:
    assert run(plain.server(USERS.get), b"bob\0alice\0b") == (plain.OTHER, [])
    who, _ = run(bearer_server(), b"n,a=bob,\x01auth=Bearer good.token\x01\x01")
    assert who == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (olga)"
    )


def test_secrets_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(plain.hmac, "compare_digest", lambda *pair: compared.append(pair) or pair[0] == pair[1])
    for message in (b"\0alice\0x", b"\0nobody\0x"):
        run(plain.server(USERS.get), message)
    assert compared == [(b"x", b"b"), (b"x", b"")]


def bearer_server(reports: list[str] | None = None) -> Exchange:
    def validate(token: str) -> tuple[str, int]:
        if token not in TOKENS:
            raise bearer.InvalidToken("it is unknown")
        return TOKENS[token]

    return bearer.server(validate, (reports if reports is not None else []).append)


def test_a_good_token_is_admitted_until_it_ends() -> None:
    who = run(bearer_server(), b"n,,\x01auth=Bearer good.token\x01traceId=1\x01\x01")[0]
    assert who == Admitted("olga", until_ms=1234)


def test_a_bad_token_is_answered_and_fails_once_that_is_acknowledged() -> None:
    reports: list[str] = []
    status = '{"status":"invalid_token"}'
    outcome = run(bearer_server(reports), b"n,,\x01auth=Bearer bad\x01\x01", b"\x01")
    assert outcome == (status, [status.encode()])
    assert reports == ["it is unknown"]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic good.token\x01\x01",
        b"n,,\x01auth=Bearer good.token\x01auth=1\x01\x01",
        b"n,,\x01auth=Bearer good.token\x01",
        b"y,,\x01auth=Bearer good.token\x01\x01",
        b"\xff" * 100,
    ],
)
def test_what_is_no_token_is_refused_without_a_reason(message: bytes) -> None:
    outcome, _ = run(bearer_server(), message)
    assert outcome == bearer.invalid_credentials("OAUTHBEARER")


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_no_bytes_without_a_credential_come_in(first: bytes, second: bytes) -> None:
    for exchange in (plain.server({"alice": "only"}.get), bearer_server()):
        assert not isinstance(run(exchange, first, second)[0], Admitted)
