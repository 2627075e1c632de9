"""Users from a file, with hashed passwords, and the sessions of those who have logged in.

A line of the file is `name: scrypt$N$R$P$SALT$HASH[,read-only]`; `moldau console --add-user NAME --users FILE` writes
one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import b64decode, b64encode
from binascii import Error as NoBase64
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moldau.settings import SettingError, properties

READ_ONLY = "read-only"
COST, BLOCK, LANES, SALT = 1 << 14, 8, 1, 16  # of scrypt: 16 MB and some 50 ms a password
MEMORY = 64 << 20
LONGEST_PASSWORD = 1024
LARGEST_FILE = 1 << 20
SESSIONS = 10_000
SESSION_S = 12 * 3600.0
FAILURES, FAILURE_S = 10, 300.0  # this many wrong passwords within this time lock a name


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the file."""

    name: str
    password: str  # hashed
    read_only: bool = False


NOBODY = Account("", f"scrypt${COST}${BLOCK}${LANES}${'A' * 24}${'A' * 88}")


def hash_password(password: str) -> str:
    """Hash a password for the file."""
    salt = secrets.token_bytes(SALT)
    digest = _scrypt(password.encode(), salt, COST, BLOCK, LANES)
    return f"scrypt${COST}${BLOCK}${LANES}${b64encode(salt).decode()}${b64encode(digest).decode()}"


def matches(stored: str, password: str) -> bool:
    """Say whether this is the password, in the same time for a wrong one as for the right one."""
    _, cost, block, lanes, salt, digest = stored.split("$")
    data = password[:LONGEST_PASSWORD].encode(errors="replace")
    return hmac.compare_digest(_scrypt(data, b64decode(salt), int(cost), int(block), int(lanes)), b64decode(digest))


def _scrypt(password: bytes, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=cost, r=block, p=lanes, maxmem=MEMORY)


def read(path: Path) -> dict[str, Account]:
    """Read the users of a file; SettingError if a line is wrong."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise SettingError("users", str(path), f"it is larger than {LARGEST_FILE} bytes")
        rows = properties(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or "it is not text"
        raise SettingError("users", str(path), f"{words}; `moldau console --add-user NAME` creates one") from None
    if not rows:
        raise SettingError("users", str(path), "it has no user; `moldau console --add-user NAME` adds one")
    return {name: _account(name, text, path) for name, text in rows.items()}


def _account(name: str, text: str, path: Path) -> Account:
    password, *roles = (part.strip() for part in text.split(","))
    if not _is_hash(password):
        words = f"{name} has no hashed password; `moldau console --add-user {name}` makes one"
        raise SettingError("users", str(path), words)
    if set(roles) - {READ_ONLY}:
        raise SettingError("users", str(path), f"{name} is {', '.join(roles)}; a user can be {READ_ONLY} or nothing")
    return Account(name, password, READ_ONLY in roles)


def _is_hash(text: str) -> bool:
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


def add(path: Path, name: str, password: str, *, read_only: bool = False) -> None:
    """Add a user to a file that only its owner can read, or replace the user of that name."""
    rows = properties(path.read_text(encoding="utf-8")) if path.exists() else {}
    rows[name] = hash_password(password) + (f",{READ_ONLY}" if read_only else "")
    path.touch(mode=0o600)
    path.write_text("".join(f"{one}: {text}\n" for one, text in rows.items()), encoding="utf-8")


@dataclass(slots=True)
class Sessions:
    """The users who are logged in, by the secret in the browser's cookie. Too many drop the oldest."""

    accounts: Mapping[str, Account]
    now: Callable[[], float] = time.monotonic
    open: OrderedDict[str, tuple[Account, float]] = field(default_factory=OrderedDict)
    wrong: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def enter(self, name: str, password: str) -> str | None:
        """Return the secret of a new session; None if name or password is wrong, after the same time in both cases."""
        account = self.accounts.get(name, NOBODY)
        if not matches(account.password, password) or account is NOBODY:
            self._note(name)
            return None
        token = secrets.token_urlsafe(32)
        self.open[token] = (account, self.now() + SESSION_S)
        while len(self.open) > SESSIONS:
            self.open.popitem(last=False)
        return token

    def is_held(self, name: str) -> bool:
        """Say whether a name is locked after too many wrong passwords."""
        times = self.wrong.get(name)
        return times is not None and len(times) == FAILURES and times[0] > self.now() - FAILURE_S

    def find(self, token: str | None) -> Account | None:
        """Return the user to whom a secret belongs."""
        account, until = self.open.get(token or "", (None, 0.0))
        if account is not None and until < self.now():
            self.leave(token)
            return None
        return account

    def leave(self, token: str | None) -> None:
        self.open.pop(token or "", None)

    def _note(self, name: str) -> None:
        self.wrong.setdefault(name, deque(maxlen=FAILURES)).append(self.now())
        while len(self.wrong) > SESSIONS:
            self.wrong.popitem(last=False)
