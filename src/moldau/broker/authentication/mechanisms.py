"""The mechanisms of a listener, and what each is checked against: JAAS lines, the metadata, tokens.

Settings and metadata are looked up at each login, so what was changed counts from the next one on.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from moldau.sasl import bearer, plain, scram
from moldau.sasl.jaas import MODULE_OF, PLAIN, Login, parse_jaas
from moldau.sasl.outcome import Admitted, Exchange
from moldau.settings import SettingError, Settings

if TYPE_CHECKING:
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node

SCRAM_NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}  # as the metadata has them
DECOY_ITERATIONS = 4096
USER = "user_"
GSSAPI = "GSSAPI"
BETWEEN_BROKERS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", GSSAPI)


def enabled(settings: Settings, listener: str) -> tuple[str, ...]:
    return tuple(settings.listener(listener, "sasl.enabled.mechanisms"))


def jaas_of(settings: Settings, listener: str, mechanism: str) -> Login:
    """Return the JAAS line of a mechanism; raises SettingError."""
    text = settings.listener(listener, "sasl.jaas.config", mechanism)
    if not text:
        name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
        raise SettingError(name, None, f"{mechanism} needs it: the login module and its options")
    login = parse_jaas(text)
    if login.module != MODULE_OF[mechanism]:
        raise SettingError("sasl.jaas.config", None, f"{mechanism} needs {MODULE_OF[mechanism]}, not {login.module}")
    return login


def check_listener(settings: Settings, listener: str) -> None:
    """Refuse a listener with SASL on which nobody could, or anybody would, authenticate; raises SettingError."""
    mechanisms = enabled(settings, listener)
    if not mechanisms:
        raise SettingError("sasl.enabled.mechanisms", "", f"the listener {listener} has SASL, so it needs a mechanism")
    for mechanism in mechanisms:
        if mechanism not in MODULE_OF:
            known = ", ".join(MODULE_OF)
            reason = f"{mechanism} is not supported on the listener {listener}, only {known}"
            raise SettingError("sasl.enabled.mechanisms", ",".join(mechanisms), reason)
        jaas_of(settings, listener, mechanism)
        if mechanism == GSSAPI:
            from moldau.broker.authentication.kerberos import check_kerberos

            check_kerberos(settings, listener)


def make_exchange(node: Node, connection: Connection, mechanism: str) -> Exchange:
    """Return the server's half of a mechanism for a connection."""
    if mechanism == "PLAIN":
        return plain.server(partial(find_password, node.settings, connection.listener))
    if mechanism == "OAUTHBEARER":
        return bearer.server(node.validators[connection.listener].validate, partial(report_token, connection))
    if mechanism == GSSAPI:
        from moldau.broker.authentication import kerberos

        return kerberos.make_exchange(node.settings, connection.listener, partial(report_token, connection))
    nonce = node.random.randbytes(18)
    find = partial(find_keys, node, mechanism)
    return scram.server(mechanism, b64encode(nonce).decode(), find, partial(decoy, node, mechanism))


def find_password(settings: Settings, listener: str, user: str) -> str | None:
    return jaas_of(settings, listener, "PLAIN").options.get(USER + user)


def find_keys(
    node: Node, mechanism: str, user: str, extensions: Mapping[str, str]
) -> tuple[str, scram.ServerKeys, Admitted] | None:
    """Look up a user in the metadata, or a delegation token where the client says that it is one."""
    if extensions.get(scram.TOKEN_AUTH, "").lower() == "true":
        from moldau.broker.tokens import find_token

        return find_token(node, mechanism, user)
    keys = node.cluster.credentials.get((user, SCRAM_NUMBERS[mechanism]))
    if keys is None and user in node.cluster.tokens and node.settings["moldau.delegation.token.implicit"]:
        from moldau.broker.tokens import find_token

        return find_token(node, mechanism, user)
    return None if keys is None else (user, keys, Admitted(user))


def decoy(node: Node, mechanism: str, user: str) -> scram.ServerKeys:
    """Return keys that nobody has a password for; their salt is the same each time, on every broker."""
    secret = f"{node.metadata.cluster_id}/{mechanism}/{node.settings['delegation.token.secret.key']}".encode()
    algorithm = scram.HASHES[mechanism]
    made = hmac.digest(secret, user.encode(), algorithm)
    key = hashlib.new(algorithm, made).digest()
    return scram.ServerKeys(made[:18], key, key, DECOY_ITERATIONS)


def report_token(connection: Connection, reason: str) -> None:
    from moldau.broker import audit

    audit.refused_token(connection, reason)


def client_exchange(
    settings: Settings, listener: str, mechanism: str, nonce: str, host: str = ""
) -> Generator[bytes, bytes, None]:
    """Return the client's half for this broker's own logins at a host, with the user of the listener's JAAS line."""
    if mechanism not in BETWEEN_BROKERS:
        reason = f"the listener {listener} is between brokers, which is done with {', '.join(BETWEEN_BROKERS)}"
        raise SettingError("sasl.mechanism.inter.broker.protocol", mechanism, reason)
    if mechanism == GSSAPI:
        from moldau.broker.authentication import kerberos

        return kerberos.client_exchange(settings, listener, host)
    login = jaas_of(settings, listener, mechanism)
    user, password = (login.options.get(name, "") for name in ("username", "password"))
    if not user or not password:
        raise SettingError("sasl.jaas.config", None, f"{listener} is between brokers: it needs username and password")
    if login.module == PLAIN:
        return plain.client(user, password)
    return scram.client(scram.HASHES[mechanism], user, password, nonce)
