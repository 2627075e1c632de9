"""Settings of Kafka's Java clients under the names that librdkafka and `moldau.client` have for them.

Files for `--command-config` are written for Java. Settings with another name are translated. Those that only a JVM can
use (callback classes) are refused with a sentence. Those that no client here uses are ignored, as the Java tools ignore
unknown names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from moldau.sasl import jaas
from moldau.settings import CLIENT, SettingError, client_inert_names, rows

MOST_BYTES = 1 << 20  # the largest file of settings

# Java's name -> ours; the value stays.
RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "max.request.size": "message.max.bytes",
}
ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def translated(given: Mapping[str, str]) -> dict[str, str]:
    """Translate settings of a Java client to those of a client here."""
    settings: dict[str, str] = {}
    for name, value in given.items():
        if special := SPECIAL.get(name):
            settings |= special(name, value, given)
        else:
            settings[RENAMED.get(name, name)] = value
    known = {*rows(CLIENT), *client_inert_names()} | {alias for row in rows(CLIENT).values() for alias in row.chain}
    return {name: value for name, value in settings.items() if name in known}


def read_file(path: str) -> dict[str, str]:
    """Read a properties file."""
    from moldau.settings.properties import read_properties

    if Path(path).stat().st_size > MOST_BYTES:
        raise SettingError(path, None, f"a file of settings has at most {MOST_BYTES} bytes")
    return read_properties(path)


def _jaas(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    """Read user and password from a line for Java's login modules."""
    login = jaas.parse_jaas(value)
    if login.module == jaas.BEARER:
        return _bearer(login.options)
    if login.module == jaas.KERBEROS:
        return _kerberos(login.options)
    found = {"sasl.username": login.options.get("username", ""), "sasl.password": login.options.get("password", "")}
    if login.options.get("tokenauth", "").lower() == "true":
        found["sasl.scram.tokenauth"] = "true"
    return found


def _bearer(pairs: Mapping[str, str]) -> dict[str, str]:
    """Read an unsigned token's subject, or the client that gets tokens by OIDC."""
    if "clientId" in pairs:
        names = {"clientId": "client.id", "clientSecret": "client.secret", "scope": "scope"}
        found = {f"sasl.oauthbearer.{ours}": pairs[name] for name, ours in names.items() if name in pairs}
        return {"sasl.oauthbearer.method": "oidc", **found}
    return _unsecured(pairs)


def _kerberos(pairs: Mapping[str, str]) -> dict[str, str]:
    """Read principal and keytab; without a keytab the tickets of the user are used."""
    if "ticketCache" in pairs:
        raise SettingError("sasl.jaas.config", None, "ticketCache is not supported; set KRB5CCNAME to it instead")
    uses_keytab = pairs.get("useKeyTab", "").lower() == "true"
    if uses_keytab and not (pairs.get("keyTab") and pairs.get("principal")):
        raise SettingError("sasl.jaas.config", None, "useKeyTab=true needs keyTab and principal")
    found = {"sasl.kerberos.keytab": pairs["keyTab"]} if uses_keytab else {}
    names = {"principal": "sasl.kerberos.principal", "serviceName": "sasl.kerberos.service.name"}
    return found | {ours: pairs[name] for name, ours in names.items() if name in pairs}


def _unsecured(pairs: Mapping[str, str]) -> dict[str, str]:
    subject = pairs.get("unsecuredLoginStringClaim_sub")
    if subject is None:
        raise SettingError("sasl.jaas.config", None, "OAUTHBEARER needs clientId and clientSecret here")
    return {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": f"principal={subject}"}


def _pem(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    """Give a store its name here: librdkafka has another for PEM files; the others are read by their content."""
    if given.get(name.replace("location", "type"), "JKS").upper() != "PEM":
        return {name: value}
    if name == "ssl.truststore.location":
        return {"ssl.ca.location": value}
    return {"ssl.certificate.location": value, "ssl.key.location": value}


def _hostname_check(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    return {name: value.lower() or "none"}


def _assignors(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    classes = [text.strip() for text in value.split(",") if text.strip()]
    return {name: ",".join(ASSIGNORS.get(one, one) for one in classes)}


def _memory(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    return {"queue.buffering.max.kbytes": str(max(1, int(value) // 1024))} if value.isdigit() else {}


def _callback(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    raise SettingError(name, value, "Java classes cannot run here; remove the line")


def _unless_empty(name: str, value: str, given: Mapping[str, str]) -> dict[str, str]:
    return {name: value} if value else {}


SPECIAL: dict[str, Callable[[str, str, Mapping[str, str]], dict[str, str]]] = {
    "sasl.jaas.config": _jaas,
    "ssl.truststore.location": _pem,
    "ssl.keystore.location": _pem,
    "ssl.endpoint.identification.algorithm": _hostname_check,
    "partition.assignment.strategy": _assignors,
    "buffer.memory": _memory,
    "sasl.client.callback.handler.class": _callback,
    "sasl.login.callback.handler.class": _callback,
    "sasl.login.class": _callback,
    "ssl.cipher.suites": _unless_empty,
}
