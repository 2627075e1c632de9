"""SCRAM credentials of users (KIP-554): commands that store and remove them, and what may be told of them.

A client sends the salted password; of it only the keys are stored that let a server check a proof (RFC 5802).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from moldau.sasl.scram import ServerKeys as Credential
from moldau.sasl.scram import derive_keys
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

SHA_256, SHA_512 = 1, 2
HASHES = {SHA_256: "sha256", SHA_512: "sha512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384

Key = tuple[str, int]  # user, mechanism


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A credential that a client wants to be stored."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


Credentials = Mapping[Key, Credential]
Answer = dict[str, Refused | None]  # by user


def alter(
    credentials: Credentials, deletions: Iterable[Key], upsertions: Iterable[Upsertion]
) -> tuple[list[Any], Answer]:
    """Records of what is in order, and for each user whether it was. A user may be named once, in both lists."""
    answer: Answer = {}
    records: dict[str, Any] = {}
    for key in deletions:
        consider(answer, records, key[0], partial(removal, credentials, key))
    for one in upsertions:
        consider(answer, records, one.user, partial(record, one))
    done = dict.fromkeys(records)
    return list(records.values()), done | answer


def consider(answer: Answer, records: dict[str, Any], user: str, make: Callable[[], Any]) -> None:
    """Take up the record that is made for a user, or the refusal. The first refusal stands."""
    if user in answer:
        return
    try:
        if records.pop(user, None) is not None:
            raise Refused(Error.DUPLICATE_RESOURCE, "The request alters this user twice.")
        records[user] = make()
    except Refused as refused:
        answer[user] = refused


def removal(credentials: Credentials, key: Key) -> Any:
    check_key(*key)
    if key not in credentials:
        raise Refused(Error.RESOURCE_NOT_FOUND, "The user has no such credential.")
    return m.RemoveUserScramCredentialRecord(*key)


def record(asked: Upsertion) -> Any:
    check_key(asked.user, asked.mechanism)
    if asked.iterations < ITERATIONS_MIN:
        raise Refused(Error.UNACCEPTABLE_CREDENTIAL, f"At least {ITERATIONS_MIN} iterations are needed.")
    if asked.iterations > ITERATIONS_MAX:
        raise Refused(Error.UNACCEPTABLE_CREDENTIAL, f"At most {ITERATIONS_MAX} iterations are allowed.")
    if not asked.salted_password:
        raise Refused(Error.UNACCEPTABLE_CREDENTIAL, "The salted password is empty.")
    _, stored_key, server_key = derive_keys(HASHES[asked.mechanism], asked.salted_password)
    return m.UserScramCredentialRecord(
        name=asked.user,
        mechanism=asked.mechanism,
        salt=asked.salt,
        stored_key=stored_key,
        server_key=server_key,
        iterations=asked.iterations,
    )


def check_key(user: str, mechanism: int) -> None:
    if not user:
        raise Refused(Error.UNACCEPTABLE_CREDENTIAL, "The name of the user is empty.")
    if mechanism not in HASHES:
        raise Refused(Error.UNSUPPORTED_SASL_MECHANISM, f"There is no SCRAM mechanism {mechanism}.")


def describe(credentials: Credentials, users: Sequence[str] | None) -> dict[str, list[tuple[int, int]] | Refused]:
    """Mechanism and iterations of each credential, by user; no users ask for all of them."""
    known: dict[str, list[tuple[int, int]]] = {}
    for (user, mechanism), credential in sorted(credentials.items(), key=lambda pair: pair[0]):
        known.setdefault(user, []).append((mechanism, credential.iterations))
    if not users:
        return dict(known)
    return {user: known_or_refused(known, user, count) for user, count in Counter(users).items()}


def known_or_refused(
    known: Mapping[str, list[tuple[int, int]]], user: str, count: int
) -> list[tuple[int, int]] | Refused:
    if count > 1:
        return Refused(Error.DUPLICATE_RESOURCE, f"The request names user '{user}' more than once.")
    return known.get(user) or Refused(Error.RESOURCE_NOT_FOUND, f"User '{user}' has no SCRAM credentials.")
