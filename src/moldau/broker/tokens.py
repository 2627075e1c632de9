"""Delegation tokens at the broker (KIP-48): how one authenticates.

A token's password is the HMAC of its id with `delegation.token.secret.key`, which all brokers share. It is never
stored; the keys that SCRAM needs are made of it at the first login and remembered.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from functools import lru_cache
from typing import TYPE_CHECKING

from moldau.sasl.outcome import Admitted
from moldau.sasl.scram import HASHES, ServerKeys, derive_keys, salt_password

if TYPE_CHECKING:
    from moldau.broker.node import Node

SECRET = "delegation.token.secret.key"
ITERATIONS = 4096
SALT_BYTES = 18


def hmac_of(secret: str, token_id: str) -> bytes:
    return hmac.digest(secret.encode(), token_id.encode(), "sha512")


def find_token(node: Node, mechanism: str, token_id: str) -> tuple[str, ServerKeys, Admitted] | None:
    """Return the keys of a token that is valid now, with its owner, who then comes in."""
    token, secret = node.cluster.tokens.get(token_id), node.settings[SECRET]
    if token is None or not secret or token.expiration_timestamp < node.clock.wall_ms():
        return None
    kind, _, name = token.owner.partition(":")
    admitted = Admitted(name, kind, token.expiration_timestamp, by_token=True)
    return token_id, _keys(HASHES[mechanism], secret, token_id), admitted


@lru_cache(maxsize=1024)
def _keys(algorithm: str, secret: str, token_id: str) -> ServerKeys:
    password = b64encode(hmac_of(secret, token_id)).decode()
    salt = hmac_of(secret, f"salt of {token_id}")[:SALT_BYTES]
    _, stored_key, server_key = derive_keys(algorithm, salt_password(algorithm, password, salt, ITERATIONS))
    return ServerKeys(salt, stored_key, server_key, ITERATIONS)
