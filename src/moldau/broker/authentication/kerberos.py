"""GSSAPI on a listener, from the broker's settings: the keytab and principal of its JAAS line, and names of users."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from moldau.broker.authentication.mechanisms import GSSAPI, jaas_of
from moldau.sasl import kerberos
from moldau.sasl.kerberos_names import SETTING, LocalNames
from moldau.sasl.outcome import Exchange
from moldau.settings import SettingError, Settings

JAAS, SERVICE = "sasl.jaas.config", "sasl.kerberos.service.name"


def check_kerberos(settings: Settings, listener: str) -> None:
    """Refuse a listener on which nobody could authenticate by Kerberos; raises SettingError."""
    _local_names(settings, listener)
    _credentials(settings, listener)


def make_exchange(settings: Settings, listener: str, report: Callable[[str], None]) -> Exchange:
    """Return the server's half of an exchange. The keytab is read each time, so a changed one counts at once."""

    def context() -> Any:
        try:
            return kerberos.acceptor(_credentials(settings, listener))
        except SettingError as error:
            raise kerberos.KerberosError(str(error)) from error

    return kerberos.server(context, _local_names(settings, listener).of, report)


def client_exchange(settings: Settings, listener: str, host: str) -> Generator[bytes, bytes, None]:
    """Return the client's half of a login at another broker, with the keytab by which this one accepts others."""
    _require()
    keytab, principal = _keytab(settings, listener)
    options = jaas_of(settings, listener, GSSAPI).options
    service = options.get("serviceName") or settings.listener(listener, SERVICE, GSSAPI)
    if not service:
        raise SettingError(SERVICE, None, f"{listener} is between brokers: it needs the first part of their principals")
    return _client(service, host, principal, keytab)


def _client(service: str, host: str, principal: str, keytab: str) -> Generator[bytes, bytes, None]:
    yield from kerberos.client(kerberos.initiator(service, host, principal, keytab))


def _require() -> None:
    try:
        kerberos.require()
    except ImportError as error:
        raise SettingError("sasl.enabled.mechanisms", GSSAPI, str(error).rstrip(".")) from None


def _local_names(settings: Settings, listener: str) -> LocalNames:
    _require()
    return LocalNames(settings.listener(listener, SETTING, GSSAPI), kerberos.default_realm())


def _keytab(settings: Settings, listener: str) -> tuple[str, str]:
    """Return the keytab and the principal of a listener; raises SettingError."""
    options = jaas_of(settings, listener, GSSAPI).options
    keytab, principal = options.get("keyTab", "").removeprefix("FILE:"), options.get("principal", "")
    if options.get("useKeyTab", "").lower() != "true" or not keytab or not principal:
        raise SettingError(JAAS, None, 'GSSAPI needs useKeyTab=true keyTab="..." principal="kafka/host@REALM"')
    return keytab, principal


def _credentials(settings: Settings, listener: str) -> Any:
    keytab, principal = _keytab(settings, listener)
    try:
        Path(keytab).open("rb").close()
        return kerberos.accept_credentials(principal, keytab)
    except OSError as error:
        raise SettingError(JAAS, None, f"the keytab {keytab} cannot be read: {error.strerror}") from None
    except kerberos.KerberosError as error:
        raise SettingError(JAAS, None, f"the keytab {keytab} does not serve {principal}: {error}") from None
