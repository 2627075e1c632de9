"""What is weak in the settings of brokers and services: from their files, or from what brokers say about themselves.

`moldau secure check` lists it, and so does the console.
"""

from __future__ import annotations

import datetime
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moldau.admin import clusters, configs
from moldau.admin.mistakes import Mistake
from moldau.client import Client
from moldau.sasl.jaas import PLAIN, parse_jaas
from moldau.settings import Endpoint, SettingError, Settings, endpoints, read_properties

PROPERTIES = "broker.properties"  # in a folder of `moldau secure init`
SERVICES_OF_HTTP = ("registry", "rest", "connect", "sql", "console")  # each has a file of settings there
SOON_DAYS = 30
OF_CONNECT = "listeners.https."  # before settings of HTTPS in the file of a worker of Connect
SHORT_PASSWORD = 12
LOOPBACK = ("127.0.0.1", "::1", "localhost")

Finding = tuple[str, str, str]  # where, what is wrong, what to do


def find_in(place: Path) -> list[Finding]:
    """Return what is weak in a folder of `moldau secure init`, or in a broker's file; Mistake if it cannot be read."""
    file = place / PROPERTIES if place.is_dir() else place
    try:
        found = list(find_weaknesses(Settings.load(read_properties(str(file))), file))
        for part in SERVICES_OF_HTTP if place.is_dir() else ():
            own = place / f"{part}.properties"
            found += find_service_weaknesses(part, read_properties(str(own)), own)
    except OSError as error:
        raise Mistake(f"{error.filename} cannot be read: {error.strerror}.") from None
    except SettingError as error:
        raise Mistake(f"{error}.") from None
    return found


def find_in_brokers(client: Client) -> dict[Finding, list[int]]:
    """Return what is weak in the settings that brokers describe, with the brokers that have it."""
    found: dict[Finding, list[int]] = {}
    for broker in clusters.described(client).brokers:
        rows = configs.described(client, configs.Resource(configs.Kind.BROKER, str(broker.id)))
        settings = Settings({row.name: row.value for row in rows if row.value is not None})
        try:
            for one in find_weaknesses(settings, from_afar=True):
                found.setdefault(one, []).append(broker.id)
        except SettingError as error:  # a setting of Kafka's that means nothing to Moldau
            raise Mistake(f"Broker {broker.id}: {error}.") from None
    return found


def find_weaknesses(settings: Settings, file: Path | None = None, *, from_afar: bool = False) -> Iterator[Finding]:
    """Yield the open doors and weak settings of a broker; from afar, without its certificates and passwords."""
    if file is not None and is_readable_by_others(file):
        yield str(file), "others can read it, with the secrets in it", f"chmod 600 {file}"
    for endpoint in endpoints(settings):
        yield from _door(settings, endpoint)
        if not from_afar:
            yield from _secrets(settings, endpoint)
    if not settings["authorizer.class.name"]:
        yield "authorizer.class.name", "everybody may do everything", "set it to Kafka's StandardAuthorizer"
    if settings["allow.everyone.if.no.acl.found"]:
        yield "allow.everyone.if.no.acl.found", "what has no rule is open to everybody", "set it to false"
    if "User:ANONYMOUS" in settings["super.users"]:
        yield "super.users", "who has not authenticated may do everything", "take out User:ANONYMOUS"
    if settings["moldau.sasl.oauthbearer.unsecured"]:
        yield "moldau.sasl.oauthbearer.unsecured", "anybody can be anyone", "set sasl.oauthbearer.jwks.endpoint.url"


def _door(settings: Settings, endpoint: Endpoint) -> Iterator[Finding]:
    name, protocol = endpoint.name, endpoint.protocol
    if endpoint.host not in LOOPBACK and not protocol.endswith("SSL"):
        yield name, f"{protocol} on {endpoint.host or 'all addresses'}: anybody on the way can read it", "use SASL_SSL"
    if protocol == "PLAINTEXT":
        yield name, "nobody authenticates", "use SASL_SSL, or leave it to loopback"
    elif protocol == "SSL" and settings.listener(name, "ssl.client.auth") != "required":
        yield name, "clients need no certificate", f"set listener.name.{name.lower()}.ssl.client.auth=required"


def _secrets(settings: Settings, endpoint: Endpoint) -> Iterator[Finding]:
    name, protocol = endpoint.name, endpoint.protocol
    if protocol.endswith("SSL"):
        yield from _certificate(name, lambda setting: settings.listener(name, setting))
    if protocol.startswith("SASL") and "PLAIN" in settings.listener(name, "sasl.enabled.mechanisms"):
        yield from _passwords(name, settings.listener(name, "sasl.jaas.config", "PLAIN"))


def _certificate(where: str, get: Callable[[str], Any]) -> Iterator[Finding]:
    from moldau.tls.contexts import identities_of

    listener, path = where, get("ssl.keystore.location")
    if path and is_readable_by_others(Path(path)):
        yield listener, f"others can read the key in {path}", f"chmod 600 {path}"
    try:
        found = identities_of(get)
    except SettingError as error:
        yield listener, str(error), "correct the setting"
        return
    if not found:
        yield listener, "it has no certificate", "set ssl.keystore.location"
    for one in found:
        ends = one.certificate.not_valid_after_utc
        left = (ends - datetime.datetime.now(datetime.UTC)).days
        if left < SOON_DAYS:
            what = "has ended" if left < 0 else f"ends in {left} days"
            yield listener, f"the certificate {what}", "moldau secure rotate"


def _passwords(listener: str, line: str | None) -> Iterator[Finding]:
    try:
        login = parse_jaas(line or "")
    except SettingError as error:
        yield listener, str(error), "correct the setting"
        return
    for name, password in login.options.items():
        if login.module == PLAIN and name.startswith("user_") and len(password) < SHORT_PASSWORD:
            yield listener, f"the password of {name[5:]} is short", f"use at least {SHORT_PASSWORD} characters"


def find_service_weaknesses(part: str, given: Mapping[str, str], file: Path) -> Iterator[Finding]:
    """Yield the open doors and weak settings of a service, from its file of settings."""
    get = {name.removeprefix(OF_CONNECT): text for name, text in given.items()}.get
    if is_readable_by_others(file):
        yield part, f"others can read {file}, with the secrets in it", f"chmod 600 {file}"
    if not get("ssl.keystore.location"):
        yield part, "it speaks HTTP: anybody on the way can read it", "set ssl.keystore.location"
    else:
        yield from _certificate(part, get)
    if (get("authentication.method") or "NONE").upper() == "NONE":
        yield part, "anybody may use it", "set authentication.method"
    users = get("authentication.users.file")
    if users:
        yield from _users(part, users)


def _users(part: str, path: str) -> Iterator[Finding]:
    from moldau.http.users import NO_PASSWORD, is_hash, read_users

    if is_readable_by_others(Path(path)):
        yield part, f"others can read {path}", f"chmod 600 {path}"
    try:
        known = read_users(path)
    except SettingError as error:
        yield part, str(error), "correct the setting"
        return
    for name, user in known.items():
        if user.password != NO_PASSWORD and not is_hash(user.password):
            yield part, f"the password of {name} is not hashed with scrypt", f"moldau secure add-user {name}"


def is_readable_by_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    except OSError:
        return False
