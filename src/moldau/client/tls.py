"""TLS by the settings `ssl.*`, and sentences for failed handshakes."""

from __future__ import annotations

import os
import re
import socket
import ssl

from moldau.client.config import Address, Config
from moldau.client.errors import ClientError, unreachable
from moldau.settings import SettingError

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


# The client's names of stores, which are librdkafka's, for those of Kafka.
NAMES = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

SAME = (
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
)
MOST_BYTES = 16 << 20  # of a file with certificates


def context(config: Config) -> ssl.SSLContext:
    """Return the context of all TLS connections of a client; SettingError if a file cannot be used."""
    from moldau.tls import client_context  # late: most clients need no certificates

    given = _stores(config)
    try:
        made = client_context(given.get)
    except SettingError as error:
        name = NAMES.get(error.name, error.name)
        name = name if config[name] else error.name
        if name == "ssl.certificate.pem" and config["ssl.certificate.location"]:
            name = "ssl.certificate.location"
        raise SettingError(name, None if name.endswith(".pem") else config[name], error.reason) from error
    if not config["enable.ssl.certificate.verification"]:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if config["ssl.cipher.suites"]:
        try:
            made.set_ciphers(config["ssl.cipher.suites"])
        except ssl.SSLError as error:
            raise SettingError(
                "ssl.cipher.suites", config["ssl.cipher.suites"], f"it cannot be used: {error}"
            ) from error
    return made


def _stores(config: Config) -> dict[str, str | None]:
    """Return the stores under Kafka's names; librdkafka's may name two files, or a folder."""
    given: dict[str, str | None] = {name: config[name] for name in SAME}
    given |= {name: config[ours] for name, ours in NAMES.items() if config[ours]}
    place = config["ssl.ca.location"]
    if place and os.path.isdir(place):
        given |= {"ssl.truststore.location": None, "ssl.truststore.certificates": _certificates_in(place)}
    elif place == "probe":
        given["ssl.truststore.location"] = None
    if config["ssl.certificate.location"] and not config["ssl.certificate.pem"]:
        given["ssl.keystore.certificate.chain"] = _text(config, "ssl.certificate.location")
        if config["ssl.key.location"]:
            given["ssl.keystore.key"] = _text(config, "ssl.key.location")
    elif config["ssl.certificate.pem"] and config["ssl.key.location"]:
        given["ssl.keystore.key"] = _text(config, "ssl.key.location")
    return given


def _text(config: Config, name: str) -> str:
    try:
        with open(config[name], encoding="utf-8") as file:
            return file.read(MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not PEM"
        raise SettingError(name, config[name], f"it cannot be used: {reason}") from error


def _certificates_in(folder: str) -> str:
    """Return the certificates of all PEM files in a folder."""
    found: list[str] = []
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.is_file() and entry.stat().st_size <= MOST_BYTES:
            with open(entry.path, encoding="utf-8", errors="replace") as file:
                found += _CERTIFICATE.findall(file.read())
    return "\n".join(found)


def wrap(sock: socket.socket, made: ssl.SSLContext, address: Address) -> ssl.SSLSocket:
    """Perform the handshake, within the socket's own timeout."""
    try:
        return made.wrap_socket(sock, server_hostname=address.host)
    except ssl.SSLError as error:
        raise refusal(address, error) from error


def refusal(address: Address, error: ssl.SSLError) -> ClientError:
    """Describe a failed handshake in a sentence; a retry helps with none of these."""
    from moldau.tls import words

    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"its certificate is not accepted ({error.verify_message}); see ssl.ca.location"
        if error.verify_code in (62, 64):  # host name, address
            why = f"{error.verify_message}; see ssl.endpoint.identification.algorithm"
    elif error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        why = "it does not speak TLS; see security.protocol"
    elif "ALERT" in (error.reason or "") or "alert" in str(error):
        why = f"it refused this client ({words(error)}); see ssl.certificate.location and ssl.key.location"
    else:
        why = words(error)
    return unreachable(f"No TLS with {address}: {why}.", retriable=False)
