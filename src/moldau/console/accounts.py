"""Users of the console, from a file with hashed passwords, and the sessions of those who have logged in.

A line of the file is `name: scrypt$N$R$P$SALT$HASH[,role]`, as the other services read it (`http/users.py`);
`moldau console --add-user NAME --users FILE` writes one. A user without a role is an admin, `read-only` is a viewer.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moldau.http import ADMIN, EDITOR
from moldau.http.callers import RANKS, READ_ONLY, ranked
from moldau.http.users import (
    LONGEST_PASSWORD,
    NO_PASSWORD,
    UNKNOWN,
    Reread,
    User,
    change_users,
    hash_password,
    is_hash,
    matches,
    read_users,
)
from moldau.settings import SettingError

__all__ = ["LONGEST_PASSWORD", "Account", "Sessions", "add", "hash_password", "matches", "read"]

SESSIONS = 10_000
SESSION_S = 12 * 3600.0
FAILURES, FAILURE_S = 10, 300.0  # this many wrong passwords within this time lock a name


@dataclass(frozen=True, slots=True)
class Account:
    """A user of the file."""

    name: str
    password: str  # hashed
    role: str = ADMIN

    @property
    def read_only(self) -> bool:
        return RANKS[self.role] < RANKS[EDITOR]


NOBODY = Account("", UNKNOWN)


def read(path: Path) -> dict[str, Account]:
    """Read the users of a file; SettingError if a line is wrong."""
    try:
        rows = read_users(str(path), "users")
    except SettingError as error:
        raise SettingError(
            "users", str(path), f"{error.reason}; `moldau console --add-user NAME` creates one"
        ) from None
    if not rows:
        raise SettingError("users", str(path), "it has no user; `moldau console --add-user NAME` adds one")
    return {name: _account(name, user, path) for name, user in rows.items() if user.password != NO_PASSWORD}


def _account(name: str, user: User, path: Path) -> Account:
    if not is_hash(user.password):
        words = f"{name} has no hashed password; `moldau console --add-user {name}` makes one"
        raise SettingError("users", str(path), words)
    known = ranked(user.roles, ADMIN)
    if known - RANKS.keys():
        names = ", ".join(sorted(user.roles))
        raise SettingError("users", str(path), f"{name} is {names}; a user can be {', '.join(RANKS)} or {READ_ONLY}")
    return Account(name, user.password, max(known, key=RANKS.__getitem__))


def add(path: Path, name: str, password: str, *, read_only: bool = False) -> None:
    """Add a user to a file that only its owner can read, or replace the user of that name."""
    change_users(path, name, User(hash_password(password), frozenset((READ_ONLY,) if read_only else ())))


@dataclass(slots=True)
class Sessions:
    """The users who are logged in, by the secret in the browser's cookie. Too many drop the oldest.

    A user who is removed from the accounts, or gets another password or role there, has to log in again.
    """

    accounts: Mapping[str, Account] | Reread[dict[str, Account]]
    now: Callable[[], float] = time.monotonic
    open: OrderedDict[str, tuple[Account, float]] = field(default_factory=OrderedDict)
    wrong: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)

    def enter(self, name: str, password: str) -> str | None:
        """Return the secret of a new session; None if name or password is wrong, after the same time in both cases."""
        account = self._known(name) or NOBODY
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
        if account is not None and (until < self.now() or self._known(account.name) != account):
            self.leave(token)
            return None
        return account

    def _known(self, name: str) -> Account | None:
        known = self.accounts
        return (known.content if isinstance(known, Reread) else known).get(name)

    def leave(self, token: str | None) -> None:
        self.open.pop(token or "", None)

    def _note(self, name: str) -> None:
        self.wrong.setdefault(name, deque(maxlen=FAILURES)).append(self.now())
        while len(self.wrong) > SESSIONS:
            self.wrong.popitem(last=False)
