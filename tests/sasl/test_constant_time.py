"""Every secret is compared by `hmac.compare_digest`: where that always says no, nobody comes in with the right one."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.broker.api.delegation_tokens import find
from moldau.broker.tokens import SECRET, hmac_of
from moldau.http.users import Users, hash_password, matches
from moldau.sasl import plain, scram
from moldau.sasl.outcome import Admitted, Denied, Exchange
from moldau.wire.refusal import Refused

PASSWORD = "the right one"
STORED = {"hashed": hash_password(PASSWORD), "plain": PASSWORD, "MD5": "MD5:fb33cffef71bfe21b59378fb8a20a1ec"}
ALGORITHM, MECHANISM = "sha256", "SCRAM-SHA-256"


def comes_in(exchange: Exchange, client: Any) -> bool:
    """Let both halves talk until the server has decided."""
    next(exchange)
    said = next(client)
    try:
        while True:
            answer = exchange.send(said)
            said = client.send(answer)
    except StopIteration as end:
        return isinstance(end.value, Admitted)
    except Denied:
        return False


def by_plain() -> bool:
    return comes_in(plain.server({"ada": PASSWORD}.get), plain.client("ada", PASSWORD))


def by_scram() -> bool:
    salted = scram.salt_password(ALGORITHM, PASSWORD, b"salt", 4096)
    _, stored_key, server_key = scram.derive_keys(ALGORITHM, salted)
    keys = scram.ServerKeys(b"salt", stored_key, server_key, 4096)
    server = scram.server(MECHANISM, "its", lambda *_: ("ada", keys, Admitted("ada")), lambda _: keys)
    return comes_in(server, scram.client(ALGORITHM, "ada", PASSWORD, "ours"))


def by_delegation_token() -> bool:
    node: Any = SimpleNamespace(settings={SECRET: "shared"})
    try:
        return find(node, {"id": "token"}, hmac_of("shared", "id")) == "token"
    except Refused:
        return False


WAYS = [by_plain, by_scram, by_delegation_token, *(partial(matches, stored, PASSWORD) for stored in STORED.values())]


@pytest.mark.parametrize("way", WAYS, ids=["PLAIN", "SCRAM", "delegation token", *STORED])
def test_secrets_are_compared_in_constant_time(way: Callable[[], bool], monkeypatch: pytest.MonkeyPatch) -> None:
    assert way()
    right = hmac.compare_digest
    # Nonces, which are texts, are no secrets, and who comes by SCRAM needs one that is right.
    monkeypatch.setattr(hmac, "compare_digest", lambda *pair: right(*pair) if isinstance(pair[0], str) else False)
    assert not way()


def test_a_password_that_was_proved_is_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "users"
    file.write_text(f"ada: {PASSWORD}\n")
    users = Users(str(file))
    assert users.prove("ada", PASSWORD) and users.is_proved("ada", PASSWORD) and not users.is_proved("ada", "wrong")
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: False)
    assert not users.is_proved("ada", PASSWORD)
