"""Credentials on a command line: SCRAM-SHA-256=[name=alice,password=secret,iterations=4096]."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable
from typing import Any

from moldau.cli.kafka.running import Terse
from moldau.machines.metadata import credentials
from moldau.machines.metadata.credentials import HASHES, ITERATIONS_MAX, ITERATIONS_MIN, SHA_256, SHA_512, Upsertion
from moldau.wire.refusal import Refused

MECHANISMS = {"SCRAM-SHA-256": SHA_256, "SCRAM-SHA-512": SHA_512}


def parse_credential(argument: str, new_salt: Callable[[], bytes]) -> Any:
    """Make the record of a credential; a random salt is used if the argument has none."""
    name, equals, rest = argument.strip().partition("=")
    if not equals:
        raise Terse(f"Failed to find equals sign in SCRAM argument '{name}'")
    if name not in MECHANISMS:
        raise Terse(f"The add-scram mechanism {name} is not supported.")
    if not rest.startswith("["):
        raise Terse("Expected configuration string to start with [")
    if not rest.endswith("]"):
        raise Terse("Expected configuration string to end with ]")
    try:
        return credentials.record(_upsertion(name, _components(rest[1:-1]), new_salt))
    except Refused as error:
        raise Terse(error.message) from None


def _components(text: str) -> dict[str, str]:
    """Split name=value pairs. Commas at the end count for nothing, as in Java."""
    found: dict[str, str] = {}
    for part in text.rstrip(",").split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise Terse(f"No equals sign found in SCRAM component: {part}")
        quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        found[name] = value[1:-1] if quoted else value
    return found


def _upsertion(mechanism: str, given: dict[str, str], new_salt: Callable[[], bytes]) -> Upsertion:
    user = given.pop("name", None)
    if user is None:
        raise Terse("You must supply 'name' to add-scram")
    salt = _decoded("salt", given.pop("salt", None))
    iterations = _iterations(given.pop("iterations", None))
    password = given.pop("password", None)
    salted_text = given.pop("saltedpassword", None)
    if password is None and salted_text is None:
        raise Terse("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt is None:
        raise Terse("You must supply 'salt' with 'saltedpassword' to add-scram")
    salted = _decoded("saltedPassword", salted_text) if password is None else None
    if given:
        raise Terse(f"Unknown SCRAM configurations: {', '.join(sorted(given))}")
    _check_iterations(iterations, mechanism)
    number = MECHANISMS[mechanism]
    salt = new_salt() if salt is None else salt
    if password == "":
        raise Terse(f"The password of user '{user}' is empty.")
    if salted is None:
        salted = hashlib.pbkdf2_hmac(HASHES[number], (password or "").encode(), salt, iterations)
    return Upsertion(user, number, iterations, salt, salted)


def _decoded(what: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Terse(f"Failed to decode given {what}: {text}") from None


def _iterations(text: str | None) -> int:
    if text is None:
        return ITERATIONS_MIN
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        raise Terse(f"Failed to parse iterations count: {text}")
    return int(text)


def _check_iterations(iterations: int, mechanism: str) -> None:
    constant = mechanism.replace("-", "_")
    if iterations < ITERATIONS_MIN:
        raise Terse(f"The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {constant}")
    if iterations > ITERATIONS_MAX:
        raise Terse(f"The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {constant}")
