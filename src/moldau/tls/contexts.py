"""Contexts of TLS from Kafka's settings `ssl.*`, which `Get` returns by name.

Python cannot choose among the suites of TLS 1.3: a list that names some of them and not the others is refused.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any

from moldau.settings import SettingError
from moldau.tls.stores import Identity, Store, StoreError, open_store, pem, read_store

Get = Callable[[str], Any]  # a setting by its name; None where it is not set

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
DEMANDS = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
TLS_1_3 = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
# IANA's names of the suites of TLS 1.2 that are still safe to offer, and OpenSSL's.
SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256": "DHE-RSA-AES128-GCM-SHA256",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "DHE-RSA-CHACHA20-POLY1305",
}
# What is offered where nothing is said: forward secrecy and authenticated encryption.
DEFAULT_SUITES = ":".join(name for name in SUITES.values() if "GCM" in name or "CHACHA20" in name)


def server_context(get: Get) -> ssl.SSLContext:
    """Make the context of those who accept connections; raises SettingError."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _limit(made, get)
    identities = identities_of(get)
    if not identities:
        raise SettingError("ssl.keystore.location", get("ssl.keystore.location"), "TLS needs a key and its certificate")
    _identify(made, identities)
    demand = get("ssl.client.auth") or "none"
    trusted = trusted_by(get)
    if trusted is None and demand == "required":
        raise SettingError("ssl.client.auth", demand, "it needs a trust store: set ssl.truststore.location")
    if trusted is not None and demand != "none":
        _trust(made, trusted)
        made.verify_mode = DEMANDS[demand]
    return made


def client_context(get: Get) -> ssl.SSLContext:
    """Make the context of those who open connections; without a trust store the system's authorities count."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = (get("ssl.endpoint.identification.algorithm") or "").lower() == "https"
    _limit(made, get)
    trusted = trusted_by(get)
    if trusted is None:
        made.load_default_certs()
    else:
        _trust(made, trusted)
    _identify(made, identities_of(get))
    return made


def identities_of(get: Get) -> tuple[Identity, ...]:
    """Return the keys of the key store, none if none is set."""
    text = get("ssl.keystore.certificate.chain")
    if text:
        store = _opened("ssl.keystore.certificate.chain", f"{get('ssl.keystore.key') or ''}\n{text}", get)
    elif get("ssl.keystore.location"):
        store = _read("ssl.keystore", get)
    else:
        return ()
    if not store.identities:
        name = "ssl.keystore.key" if text else "ssl.keystore.location"
        raise SettingError(name, None if text else get(name), "it holds no private key")
    return store.identities


def trusted_by(get: Get) -> Store | None:
    """Return the trust store, None if none is set."""
    text = get("ssl.truststore.certificates")
    if text:
        store = _opened("ssl.truststore.certificates", text, get)
    elif get("ssl.truststore.location"):
        store = _read("ssl.truststore", get)
    else:
        return None
    if not store.certificates:
        raise SettingError("ssl.truststore.location", get("ssl.truststore.location"), "it holds no certificate")
    return store


def _read(kind: str, get: Get) -> Store:
    place = get(f"{kind}.location")
    try:
        return read_store(place, get(f"{kind}.password"), get("ssl.key.password"))
    except StoreError as error:
        raise SettingError(f"{kind}.location", place, f"it cannot be used: {error}") from None


def _opened(name: str, text: str, get: Get) -> Store:
    try:
        return open_store(text.encode(), None, get("ssl.key.password"))
    except StoreError as error:
        raise SettingError(name, None, f"it cannot be used: {error}") from None


def _identify(made: ssl.SSLContext, identities: Sequence[Identity]) -> None:
    for identity in identities:
        try:
            identity.load_into(made)
        except ssl.SSLError as error:
            raise SettingError("ssl.keystore.location", None, f"it cannot be used: {words(error)}") from None


def _trust(made: ssl.SSLContext, store: Store) -> None:
    """Trust each certificate of a store for itself, as Java does, also if it is no authority's."""
    try:
        made.load_verify_locations(cadata=pem(store.certificates).decode())
    except ssl.SSLError as error:
        raise SettingError("ssl.truststore.location", None, f"it cannot be used: {words(error)}") from None
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def words(error: ssl.SSLError) -> str:
    """Describe an error of OpenSSL in its own words; for a certificate, what is wrong with it."""
    why = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error.strerror or str(error)
    return why.lower().replace("_", " ")


def _limit(made: ssl.SSLContext, get: Get) -> None:
    """Set versions and suites."""
    names = get("ssl.enabled.protocols") or tuple(VERSIONS)
    for name in names:
        if name not in VERSIONS:
            raise SettingError(
                "ssl.enabled.protocols", ",".join(names), f"{name} is not offered, only TLSv1.2, TLSv1.3"
            )
    enabled = set(names)
    suites = get("ssl.cipher.suites")
    if suites:
        enabled -= _set_suites(made, tuple(suites))
        if not enabled:
            reason = f"no suite of it belongs to {' or '.join(names)}, which ssl.enabled.protocols has"
            raise SettingError("ssl.cipher.suites", ",".join(suites), reason)
    else:
        made.set_ciphers(DEFAULT_SUITES)
    made.minimum_version = min(VERSIONS[name] for name in enabled)
    made.maximum_version = max(VERSIONS[name] for name in enabled)


def _set_suites(made: ssl.SSLContext, suites: tuple[str, ...]) -> set[str]:
    """Set the suites by IANA's names; returns the versions for which none is left."""
    new, old = [one for one in suites if one in TLS_1_3], [one for one in suites if one not in TLS_1_3]
    text = ",".join(suites)
    for name in old:
        if name not in SUITES:
            raise SettingError("ssl.cipher.suites", text, f"{name} is unknown, or no longer safe")
    if new and len(new) < len(TLS_1_3):
        missing = ", ".join(sorted(TLS_1_3.difference(new)))
        raise SettingError("ssl.cipher.suites", text, f"of TLS 1.3 all suites are offered or none; it lacks {missing}")
    if old:
        made.set_ciphers(":".join(SUITES[name] for name in old))
    return {version for version, some in (("TLSv1.3", new), ("TLSv1.2", old)) if not some}
