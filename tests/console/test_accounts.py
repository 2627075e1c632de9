"""Users of a file, and their sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.console import accounts
from moldau.console.accounts import FAILURE_S, FAILURES, SESSION_S, Sessions
from moldau.settings import SettingError


def test_a_user_that_was_added_is_known_by_the_password_alone(tmp_path: Path) -> None:
    file = tmp_path / "users"
    accounts.add(file, "ada", "correct horse", read_only=True)
    accounts.add(file, "bob", "battery staple")
    users = accounts.read(file)
    assert users["ada"].read_only and not users["bob"].read_only
    assert accounts.matches(users["ada"].password, "correct horse")
    assert not accounts.matches(users["ada"].password, "battery staple")
    assert "correct" not in file.read_text() and file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("ada: plain", "no hashed password"),
        (f"ada: {accounts.hash_password('x')},boss", "viewer, editor, admin or read-only"),
        ("ada: scrypt$3$8$1$AAAA$AAAA", "no hashed password"),
        ("ada: scrypt$16384$100000$1$AAAA$AAAA", "no hashed password"),
        ("ada: scrypt$16384$8$1$!!!!$AAAA", "no hashed password"),
        ("", "has no user"),
    ],
)
def test_a_file_that_is_wrong_is_told(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    with pytest.raises(SettingError, match=sentence):
        accounts.read(file)
    with pytest.raises(SettingError, match="--add-user"):
        accounts.read(tmp_path / "none")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> dict[str, accounts.Account]:
    file = tmp_path_factory.mktemp("users") / "users"
    accounts.add(file, "ada", "correct horse")
    return accounts.read(file)


def test_a_session_ends_by_leaving_and_by_time(users: dict[str, accounts.Account]) -> None:
    clock = Clock()
    sessions = Sessions(users, clock)
    token, other = (sessions.enter("ada", "correct horse") for _ in range(2))
    assert token and other and token != other
    assert sessions.find(token) is users["ada"]
    sessions.leave(token)
    assert sessions.find(token) is None and sessions.find(None) is None and sessions.find("") is None
    clock.now = SESSION_S + 1
    assert sessions.find(other) is None


def test_a_name_is_held_after_too_many_wrong_passwords(users: dict[str, accounts.Account]) -> None:
    clock = Clock()
    sessions = Sessions(users, clock)
    for _ in range(FAILURES):
        assert not sessions.is_held("ada")
        assert sessions.enter("ada", "wrong") is None
    assert sessions.enter("nobody", "") is None and not sessions.is_held("nobody")
    assert sessions.is_held("ada")
    clock.now = FAILURE_S + 1
    assert not sessions.is_held("ada")
