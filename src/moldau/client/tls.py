"""TLS by the settings `ssl.*`, and sentences for what goes wrong in a handshake."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from contextlib import suppress

from moldau.client.config import Address, Config
from moldau.client.errors import ClientError, unreachable
from moldau.settings import SettingError


def context(config: Config) -> ssl.SSLContext:
    """The context of all TLS connections of a client; SettingError where a file cannot be used."""
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
    """This client's own certificate. The library reads files only, so text goes through one that is private."""
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


class _blaming:
    """What the library has against a file becomes the fault of the setting that names it."""

    def __init__(self, config: Config, name: str) -> None:
        self.name, self.value = name, None if name.endswith(".pem") else config[name]

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):  # ssl.SSLError is one
            reason = error.strerror or str(error)
            raise SettingError(self.name, self.value, f"it cannot be used: {reason}") from error


def wrap(sock: socket.socket, made: ssl.SSLContext, address: Address) -> ssl.SSLSocket:
    """Shake hands; the socket's own time-out holds."""
    try:
        return made.wrap_socket(sock, server_hostname=address.host)
    except ssl.SSLError as error:
        raise refusal(address, error) from error


def refusal(address: Address, error: ssl.SSLError) -> ClientError:
    """A sentence for a failed handshake. None of these passes by itself."""
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
