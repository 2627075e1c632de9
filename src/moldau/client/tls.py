"""TLS by the settings `ssl.*`, and sentences for failed handshakes."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from moldau.client.config import Address, Config
from moldau.client.errors import ClientError, unreachable
from moldau.settings import SettingError


def context(config: Config) -> ssl.SSLContext:
    """Return the context of all TLS connections of a client; SettingError if a file cannot be used."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    verified = config["enable.ssl.certificate.verification"]
    made.check_hostname = verified and config["ssl.endpoint.identification.algorithm"] == "https"
    made.verify_mode = ssl.CERT_REQUIRED if verified else ssl.CERT_NONE
    if config["ssl.cipher.suites"]:
        with _blaming(config, "ssl.cipher.suites"):
            made.set_ciphers(config["ssl.cipher.suites"])
    _trust(made, config)
    _identify(made, config)
    return made


def _trust(made: ssl.SSLContext, config: Config) -> None:
    place, text = config["ssl.ca.location"], config["ssl.ca.pem"]
    if text:
        with _blaming(config, "ssl.ca.pem"):
            made.load_verify_locations(cadata=text)
    elif place and place != "probe":
        with _blaming(config, "ssl.ca.location"):
            made.load_verify_locations(**({"capath": place} if os.path.isdir(place) else {"cafile": place}))
    elif made.verify_mode is not ssl.CERT_NONE:
        made.load_default_certs()


def _identify(made: ssl.SSLContext, config: Config) -> None:
    """Load this client's own certificate. The library reads only files, so text goes through a private one."""
    certificate, key = config["ssl.certificate.location"], config["ssl.key.location"]
    password = config["ssl.key.password"] or ""  # a missing one must fail, not ask at the terminal
    if config["ssl.certificate.pem"]:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as both:
            both.write(f"{config['ssl.key.pem'] or ''}\n{config['ssl.certificate.pem']}\n")
            both.flush()
            with _blaming(config, "ssl.certificate.pem"):
                made.load_cert_chain(both.name, key or None, password)
    elif certificate:
        with _blaming(config, "ssl.certificate.location"):
            made.load_cert_chain(certificate, key or None, password)


@contextmanager
def _blaming(config: Config, name: str) -> Iterator[None]:
    """Turn errors of a file into a SettingError of the setting that names it."""
    try:
        yield
    except OSError as error:  # ssl.SSLError is one
        value = None if name.endswith(".pem") else config[name]
        raise SettingError(name, value, f"it cannot be used: {error.strerror or error}") from error


def wrap(sock: socket.socket, made: ssl.SSLContext, address: Address) -> ssl.SSLSocket:
    """Perform the handshake, within the socket's own timeout."""
    try:
        return made.wrap_socket(sock, server_hostname=address.host)
    except ssl.SSLError as error:
        raise refusal(address, error) from error


def refusal(address: Address, error: ssl.SSLError) -> ClientError:
    """Describe a failed handshake in a sentence; a retry helps with none of these."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"its certificate is not accepted ({error.verify_message}); see ssl.ca.location"
        if error.verify_code in (62, 64):  # host name, address
            why = f"{error.verify_message}; see ssl.endpoint.identification.algorithm"
    elif error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        why = "it does not speak TLS; see security.protocol"
    elif "ALERT" in (error.reason or "") or "alert" in str(error):
        why = f"it refused this client ({_words(error)}); see ssl.certificate.location and ssl.key.location"
    else:
        why = _words(error)
    return unreachable(f"No TLS with {address}: {why}.", retriable=False)


def _words(error: ssl.SSLError) -> str:
    with suppress(AttributeError):
        return error.reason.lower().replace("_", " ")
    return str(error)
