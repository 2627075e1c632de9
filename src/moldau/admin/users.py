"""SCRAM credentials of users: who has which, made and taken away."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moldau.client import CONTROLLER, Client, Error, check
from moldau.client import messages as m

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS, LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 4096, 16384
SALT_BYTES = 32


@dataclass(frozen=True, slots=True)
class Credential:
    """What is known of a credential: its mechanism and how often the password was hashed."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user's credentials, or why they are not told."""

    user: str
    credentials: tuple[Credential, ...]
    error: Error = Error.NONE
    message: str | None = None


def described(client: Client, users: Iterable[str] | None = None) -> list[Credentials]:
    """The credentials of these users, or of all that have any."""
    rows = None if users is None else [m.DescribeUserScramCredentialsRequest_UserName(name) for name in users]
    answer = client.send(m.DescribeUserScramCredentialsRequest(rows), CONTROLLER)
    if answer.error_code:
        check(answer)
    names = {number: name for name, number in MECHANISMS.items()}
    return [
        Credentials(
            row.user,
            tuple(Credential(names.get(one.mechanism, "UNKNOWN"), one.iterations) for one in row.credential_infos),
            Error(row.error_code),
            row.error_message,
        )
        for row in answer.results
    ]


def alter(
    client: Client, user: str, new: Mapping[str, tuple[str, int]] | None = None, removed: Iterable[str] = ()
) -> None:
    """Give a user credentials (mechanism -> password and iterations), and take some away."""
    made = []
    for mechanism, (password, iterations) in (new or {}).items():
        salt = os.urandom(SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
        number = MECHANISMS[mechanism]
        made.append(m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion(user, number, iterations, salt, salted))
    gone = [m.AlterUserScramCredentialsRequest_ScramCredentialDeletion(user, MECHANISMS[name]) for name in removed]
    check(client.send(m.AlterUserScramCredentialsRequest(gone, made), CONTROLLER))
