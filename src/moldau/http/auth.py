"""Basic authentication: users from a file in Jetty's format, `name: password[,role ...]`."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode
from collections.abc import Mapping
from typing import NamedTuple

from moldau.settings import SettingError, properties

ANY_ROLE = "*"


class User(NamedTuple):
    """A password, plain or as `MD5:hex`, and what the user may be."""

    password: str
    roles: frozenset[str]


class BasicAuth:
    """Who may come in."""

    __slots__ = ("_realm", "_roles", "_users")

    def __init__(self, users: Mapping[str, User], roles: frozenset[str], realm: str) -> None:
        self._users, self._roles, self._realm = users, roles, realm

    @property
    def challenge(self) -> str:
        return f'Basic realm="{self._realm}"'

    def admits(self, header: str | None) -> bool:
        """Say whether an Authorization header names a user who may do anything here."""
        given = _credentials(header)
        user = self._users.get(given[0]) if given else None
        if given is None or user is None:
            return False
        return _matches(user.password, given[1]) and (ANY_ROLE in self._roles or bool(self._roles & user.roles))


def read_users(path: str) -> dict[str, User]:
    """Read the users of a file; SettingError if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = properties(file.read())
    except OSError as error:
        raise SettingError("authentication.users.file", path, error.strerror or "it cannot be read") from None
    users = {}
    for name, text in rows.items():
        password, *roles = (part.strip() for part in text.split(","))
        users[name] = User(password, frozenset(roles))
    return users


def _credentials(header: str | None) -> tuple[str, str] | None:
    scheme, _, text = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = b64decode(text.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (name, password) if colon else None


def _matches(expected: str, given: str) -> bool:
    if expected.startswith("MD5:"):
        expected, given = expected[4:].lower(), hashlib.md5(given.encode(), usedforsecurity=False).hexdigest()
    return hmac.compare_digest(expected.encode(), given.encode())
