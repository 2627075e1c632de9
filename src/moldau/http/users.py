"""Users from a file, one per line: `name: password[,role ...]`, in Jetty's format.

A password is `scrypt$N$R$P$SALT$HASH`, `MD5:hex`, or plain. `!` is no password: such a user comes by a certificate or
a token, and the line has the roles alone. `moldau console --add-user` and `moldau secure add-user` write lines.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from moldau.settings import SettingError, properties

log = logging.getLogger(__name__)
T = TypeVar("T")
COST, BLOCK, LANES, SALT = 1 << 14, 8, 1, 16  # of scrypt: 16 MB and some 50 ms a password
MEMORY = 64 << 20
LONGEST_PASSWORD = 1024
LARGEST_FILE = 1 << 20
NO_PASSWORD = "!"
UNKNOWN = f"scrypt${COST}${BLOCK}${LANES}${'A' * 24}${'A' * 88}"  # nobody's: a wrong name takes as long as a right one


class User(NamedTuple):
    """A password as the file has it, and what the user may be."""

    password: str
    roles: frozenset[str]


def hash_password(password: str) -> str:
    """Hash a password for the file."""
    salt = secrets.token_bytes(SALT)
    digest = _scrypt(password.encode(), salt, COST, BLOCK, LANES)
    return f"scrypt${COST}${BLOCK}${LANES}${b64encode(salt).decode()}${b64encode(digest).decode()}"


def matches(stored: str, password: str) -> bool:
    """Say whether this is the password, in the same time for a wrong one as for the right one."""
    data = password[:LONGEST_PASSWORD].encode(errors="replace")
    if is_hash(stored):
        _, cost, block, lanes, salt, digest = stored.split("$")
        return hmac.compare_digest(_scrypt(data, b64decode(salt), int(cost), int(block), int(lanes)), b64decode(digest))
    if stored.startswith("MD5:"):
        stored, data = stored[4:].lower(), hashlib.md5(data, usedforsecurity=False).hexdigest().encode()
    return stored != NO_PASSWORD and hmac.compare_digest(stored.encode(), data)


def _scrypt(password: bytes, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=cost, r=block, p=lanes, maxmem=MEMORY)


def is_hash(text: str) -> bool:
    """Say whether a password is hashed with scrypt, at a cost that can be paid."""
    parts = text.split("$")
    if len(parts) != 6 or parts[0] != "scrypt" or not all(part.isdecimal() for part in parts[1:4]):
        return False
    cost, block, lanes = map(int, parts[1:4])
    if not 2 <= cost <= 1 << 20 or cost & (cost - 1) or not 1 <= lanes <= 16 or not 128 * block * cost < MEMORY:
        return False
    try:
        return bool(b64decode(parts[4], validate=True)) and bool(b64decode(parts[5], validate=True))
    except NoBase64:
        return False


def read_users(path: str, setting: str = "authentication.users.file") -> dict[str, User]:
    """Read the users of a file; SettingError if it cannot be read."""
    try:
        if os.stat(path).st_size > LARGEST_FILE:
            raise SettingError(setting, path, f"it is larger than {LARGEST_FILE} bytes")
        with open(path, encoding="utf-8") as file:
            rows = properties(file.read())
    except OSError as error:
        raise SettingError(setting, path, error.strerror or "it cannot be read") from None
    except UnicodeDecodeError:
        raise SettingError(setting, path, "it is not text") from None
    users = {}
    for name, text in rows.items():
        password, *roles = (part.strip() for part in text.split(","))
        users[name] = User(password, frozenset(roles))
    return users


def change_users(path: Path, name: str, user: User | None) -> bool:
    """Write a user's line to a file that only its owner can read, or remove it; False if there was none to remove."""
    rows = properties(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = rows.pop(name, None) is not None
    if user is not None:
        rows[name] = ",".join((user.password, *sorted(user.roles)))
    elif not known:
        return False
    temporary = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.writelines(f"{one}: {text}\n" for one, text in rows.items())
    os.replace(temporary, path)
    return True


class Reread(Generic[T]):
    """What a file says, read again when the file changes. A file that cannot be read changes nothing."""

    def __init__(self, path: str, read: Callable[[str], T]) -> None:
        self._path, self._read = path, read
        self._stamp = self._seen()
        self._content = read(path)

    @property
    def content(self) -> T:
        stamp = self._seen()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._content = self._read(self._path)
            except SettingError as error:
                log.warning("what was read before stays: %s", error)
        return self._content

    def _seen(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class Users:
    """The users of a file as it is now."""

    def __init__(self, path: str) -> None:
        self._rows = Reread(path, read_users)
        self._proved: dict[str, tuple[str, bytes]] = {}  # name: password of the file, digest of the one that proved it
        self._key = secrets.token_bytes(16)

    def find(self, name: str) -> User | None:
        return self._rows.content.get(name)

    def is_proved(self, name: str, password: str) -> bool:
        """Say whether this password was right a moment ago: hashing it for every request would take too long."""
        user, (stored, digest) = self.find(name), self._proved.get(name, ("", b""))
        return user is not None and user.password == stored and hmac.compare_digest(digest, self._digest(password))

    def prove(self, name: str, password: str) -> User | None:
        """Return the user whose password this is. It takes long, for a wrong name too."""
        user = self.find(name)
        if not matches(user.password if user else UNKNOWN, password) or user is None:
            return None
        self._proved[name] = (user.password, self._digest(password))
        return user

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(errors="replace"), "sha256")
