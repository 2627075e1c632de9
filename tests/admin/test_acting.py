"""Acting as callers: tokens are asked for once, replaced before they end, and only so many are kept."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.admin import acting, tokens
from moldau.admin.acting import GRACE_S, SHARE, Acting

LIFE_MS = 1_000_000


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Made:
    """What acts for somebody, and whether it was closed."""

    def __init__(self, login: dict[str, str]) -> None:
        self.login, self.closed = login, False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The owners for whom tokens were asked for; the broker's part is in tests/broker/api/test_delegation_tokens.py."""
    owners: list[str] = []

    def create(client: Any, owner: str) -> tokens.Token:
        owners.append(owner)
        return tokens.Token(f"token-{len(owners)}", b"hmac", owner, "User:service", (), 0, LIFE_MS, LIFE_MS)

    monkeypatch.setattr(acting.tokens, "create", create)
    return owners


def made(clock: Clock, most: int = 2) -> Acting[Made]:
    return Acting(None, "SCRAM-SHA-512", Made, Made.close, most, clock)  # type: ignore[arg-type]


def test_a_token_is_asked_for_once_for_each_caller(asked: list[str]) -> None:
    by_caller = made(Clock())
    assert by_caller.find("ada") is None
    ada = by_caller.of("ada")
    assert by_caller.of("ada") is by_caller.find("ada") is ada is not by_caller.of("bob")
    assert asked == ["User:ada", "User:bob"]
    assert ada.login == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "token-1",
        "sasl.password": "aG1hYw==",
        "sasl.scram.tokenauth": "true",
    }


def test_another_token_is_asked_for_before_the_first_one_ends(asked: list[str]) -> None:
    clock = Clock()
    by_caller = made(clock)
    first = by_caller.of("ada")
    clock.now = SHARE * LIFE_MS / 1000
    assert by_caller.of("ada") is first
    clock.now += 1
    second = by_caller.of("ada")
    assert second is not first and not first.closed  # a request may still use it
    clock.now += GRACE_S
    by_caller.of("bob")
    assert first.closed and not second.closed


def test_who_was_not_there_for_longest_makes_room(asked: list[str]) -> None:
    clock = Clock()
    by_caller = made(clock)
    ada, bob = by_caller.of("ada"), by_caller.of("bob")
    by_caller.of("ada")
    cem = by_caller.of("cem")
    assert by_caller.find("bob") is None and by_caller.find("ada") is ada
    clock.now += GRACE_S
    by_caller.of("dan")
    assert bob.closed and not cem.closed
    by_caller.close()
    assert ada.closed and cem.closed and not by_caller.all()


def test_a_token_does_not_show_its_password() -> None:
    token = tokens.Token("id", b"secret", "User:a", "User:b", (), 0, 0, 0)
    assert "secret" not in repr(token) and token.password not in repr(token)
