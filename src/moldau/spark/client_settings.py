"""Turns `kafka.*` options into settings of our client, which has librdkafka's names; jobs may have those of Java."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.client.java_settings import translated
from moldau.settings import SettingError
from moldau.spark.options import OptionError, under

PREFIX = "kafka."
SERVERS = "bootstrap.servers"
GROUP = "group.id"

# Names of Java's client for settings that ours has too.
SAME = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
# Settings of Java's client that have no effect here.
WITHOUT_EFFECT = {
    "check.crcs",  # they are always checked
    "client.dns.lookup",
    "exclude.internal.topics",
    "group.protocol",
    "max.poll.interval.ms",
    "max.poll.records",
    "partition.assignment.strategy",
    "ssl.enabled.protocols",
    "ssl.keystore.type",
    "ssl.protocol",
    "ssl.truststore.type",
}
REFUSED = {
    "auto.offset.reset": "say startingOffsets",
    "enable.auto.commit": "progress is committed after each batch to the group of kafka.group.id",
    "interceptor.classes": "there are no interceptors here",
    "key.deserializer": "say key.format, or convert the column",
    "value.deserializer": "say value.format, or convert the column",
    "sasl.client.callback.handler.class": "it is a class of Java",
    "sasl.login.callback.handler.class": "it is a class of Java",
}
STORES = {"ssl.truststore.location": "ssl.ca.location", "ssl.keystore.location": "ssl.certificate.location"}


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for `moldau.client.Client`."""
    given = under(options, PREFIX)
    if not given.get(SERVERS):
        raise OptionError(f"The option {PREFIX}{SERVERS} must be set, for example to localhost:9092.")
    settings: dict[str, str] = {}
    for name, text in given.items():
        if name in REFUSED:
            raise OptionError(f"The option {PREFIX}{name} is not supported: {REFUSED[name]}.")
        if name == "sasl.jaas.config":
            settings |= credentials(text)
        elif name in STORES:
            is_pem = given.get(name.replace(".location", ".type"), "JKS").upper() == "PEM"
            settings[STORES[name] if is_pem else name] = text
        elif name not in WITHOUT_EFFECT and name != GROUP:
            settings[SAME.get(name, name)] = text
    return settings


def credentials(text: str) -> dict[str, str]:
    """Read user and password from a JAAS line."""
    try:
        return translated({"sasl.jaas.config": text})
    except SettingError as error:
        raise OptionError(f"The option {PREFIX}sasl.jaas.config cannot be used: {error.reason}.") from None
