"""What consoles, perf tests and verifiable clients share: settings of clients, and how they send records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from moldau.cli.kafka.flags import Flag, Options, Usage, key_values
from moldau.cli.kafka.java_text import log
from moldau.client.java_settings import read_file, translated

OURS_ALONE = {
    "default.api.timeout.ms",
    "topic.metadata.propagation.max.ms",
    "max.poll.records",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
}
FAILURES_S = 5.0  # between two lines about a broker that does not answer
COMMAND_PROPERTY = Flag(
    "command-property", "name=value", "Set a setting by its Java name; may be repeated.", since="4.2"
)
PRINT_METRICS = Flag(
    "print-metrics",
    help="Print the metrics of the client.",
    refused="librdkafka's metrics differ from those of Java; see statistics.interval.ms.",
)


def old_property(name: str) -> Flag:
    return Flag(name, "name=value", "Set a setting of the client.", deprecated="command-property")


def old_file(name: str) -> Flag:
    return Flag(name, "file", "Read settings of the client from this file.", deprecated="command-config")


def file_settings(options: Options, old_file: str) -> dict[str, str]:
    """Read the settings of --command-config, or of the flag that it replaces."""
    file = options["command-config"] or options[old_file]
    return read_file(file) if file else {}


def group_id(options: Options, given: Mapping[str, str], old_file: str) -> str | None:
    """Return the group that flags and settings name; they must agree."""
    groups = {text for text in (options["group"], given.get("group.id")) if text is not None}
    if len(groups) > 1:
        listed = ", ".join(f"'{name}'" for name in sorted(groups))
        raise Usage(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via "
            f"'--{old_file}') do not match. Detected group ids: {listed}"
        )
    return next(iter(groups), None)


def send(producer: Any, topic: str, value: Any, key: Any = None, poll_s: float = 0.1, **more: Any) -> None:
    """Send a record; while the queue is full, wait for it to drain."""
    while True:
        try:
            producer.produce(topic, value, key, **more)
            break
        except BufferError:
            producer.poll(poll_s)
    producer.poll(0)


def properties(options: Options, old_file: str, old_property: str) -> dict[str, str]:
    """Return settings under Java's names: those of the file, then those of the flags."""
    for old, new in ((old_property, "command-property"), (old_file, "command-config")):
        if old in options and new in options:
            raise Usage(f"Options --{old} and --{new} cannot be specified together.")
    return {
        **file_settings(options, old_file),
        **key_values(options.all("command-property") + options.all(old_property)),
    }


def librdkafka(given: Mapping[str, str], kind: str) -> dict[str, Any]:
    """Return settings for a producer or consumer of confluent-kafka, which reports its errors on stderr."""
    found = {name: value for name, value in in_pem(translated(given)).items() if name not in OURS_ALONE}
    return {**found, "log_level": "2", "error_cb": _Failures(kind, given.get("client.id", ""))}


def in_pem(given: Mapping[str, str]) -> dict[str, str]:
    """Add the content of stores as PEM, since librdkafka does not read Java's."""
    found = dict(given)
    if not {"ssl.keystore.location", "ssl.truststore.location"} & given.keys():
        return found
    from moldau.tls.contexts import identities_of, trusted_by
    from moldau.tls.stores import pem

    if (store := trusted_by(given.get)) is not None:
        found["ssl.ca.pem"] = pem(store.certificates).decode()
    for identity in identities_of(given.get)[:1]:
        found |= {"ssl.certificate.pem": pem(identity.chain).decode(), "ssl.key.pem": identity.key_pem().decode()}
        found.pop("ssl.key.password", None)
    return found


class _Failures:
    """A callback that reports brokers that do not answer, but not too often."""

    def __init__(self, kind: str, client_id: str) -> None:
        self._who = f"[{kind} clientId={client_id}]"
        self._told = 0.0

    def __call__(self, error: Any) -> None:
        now = time.monotonic()
        if now - self._told > FAILURES_S:
            self._told = now
            log("WARN", f"{self._who} {error.str()}", "org.apache.kafka.clients.NetworkClient")
