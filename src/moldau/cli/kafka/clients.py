"""Settings of the producers and consumers behind the consoles and perf tests, out of files and `key=value` flags."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from moldau.cli.kafka.flags import Flag, Options, Usage, key_values
from moldau.cli.kafka.java_settings import read_file, translated
from moldau.cli.kafka.java_text import log

OURS_ALONE = {"default.api.timeout.ms", "topic.metadata.propagation.max.ms", "max.poll.records"}
FAILURES_S = 5.0  # between two lines about a broker that is away
COMMAND_PROPERTY = Flag(
    "command-property", "name=value", "A setting of the client, as Java clients name it; may be repeated.", since="4.2"
)


def old_property(name: str) -> Flag:
    return Flag(name, "name=value", "A setting of the client.", deprecated="command-property")


def old_file(name: str) -> Flag:
    return Flag(name, "file", "Settings of the client.", deprecated="command-config")


def properties(options: Options, old_file: str, old_property: str) -> dict[str, str]:
    """Settings under Java's names: of the file, then of the flags."""
    for old, new in ((old_property, "command-property"), (old_file, "command-config")):
        if old in options and new in options:
            raise Usage(f"Options --{old} and --{new} cannot be specified together.")
    file = options["command-config"] or options[old_file]
    given = read_file(file) if file else {}
    return {**given, **key_values(options.all("command-property") + options.all(old_property))}


def librdkafka(given: Mapping[str, str], kind: str) -> dict[str, Any]:
    """Settings for a producer or consumer of confluent-kafka; what goes wrong is told on stderr."""
    found = {name: value for name, value in translated(given).items() if name not in OURS_ALONE}
    return {**found, "log_level": "2", "error_cb": _Failures(kind, given.get("client.id", ""))}


class _Failures:
    """Tells that brokers are away, not too often."""

    def __init__(self, kind: str, client_id: str) -> None:
        self._who = f"[{kind} clientId={client_id}]"
        self._told = 0.0

    def __call__(self, error: Any) -> None:
        now = time.monotonic()
        if now - self._told > FAILURES_S:
            self._told = now
            log("WARN", f"{self._who} {error.str()}", "org.apache.kafka.clients.NetworkClient")
