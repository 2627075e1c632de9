"""TLS to the database: Debezium's settings `database.ssl.*`, with the names of modes of both of its connectors."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from moldau.connect.errors import ConfigError
from moldau.settings import SettingError
from moldau.tls.contexts import client_context

PLAIN, PREFERRED, ENCRYPTED, VERIFIED, IDENTIFIED = range(5)
MODES = {
    "disabled": PLAIN,
    "disable": PLAIN,
    "preferred": PREFERRED,
    "required": ENCRYPTED,
    "trust": ENCRYPTED,
    "verify_ca": VERIFIED,
    "verify-ca": VERIFIED,
    "verify_identity": IDENTIFIED,
    "verify-full": IDENTIFIED,
}
STORES = {f"ssl.{one}.location": f"database.ssl.{one}" for one in ("keystore", "truststore")}
STORES |= {f"ssl.{one}.password": f"database.ssl.{one}.password" for one in ("keystore", "truststore")}


def tls_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what pymysql needs to know of TLS; ConfigError if a store cannot be used."""
    mode = MODES[config["database.ssl.mode"]]
    if mode == PLAIN:
        return {"ssl_disabled": True}
    if mode == PREFERRED:
        return {}  # the driver encrypts if the server can, and trusts it
    given = {name: getattr(config[own], "value", config[own]) for name, own in STORES.items() if config[own]}
    if mode < VERIFIED:
        given.pop("ssl.truststore.location", None)
    given["ssl.endpoint.identification.algorithm"] = "https" if mode == IDENTIFIED else ""
    try:
        made = client_context(given.get)
    except SettingError as error:
        raise ConfigError(f"The settings database.ssl.* cannot be used: {error}") from error
    if mode < VERIFIED:
        made.verify_mode = ssl.CERT_NONE
    return {"ssl": made}
