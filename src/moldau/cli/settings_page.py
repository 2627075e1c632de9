"""Makes the page docs/settings.md from the table of settings."""

from __future__ import annotations

from collections.abc import Iterator

from moldau import settings
from moldau.settings import Row

HEAD = """\
# Settings

<!-- Made by `moldau settings --markdown` (make docs). Change src/moldau/settings/table.txt instead. -->

Moldau's settings have Kafka's names, types, defaults and limits, so a `server.properties` of Apache Kafka 4.3 works as
it is. They are given to a broker by `moldau broker --config FILE` and `--set name=value`, to topics and groups by any
Kafka tool (`kafka-configs`, `rpk`, a client's admin functions). `moldau settings NAME` shows one of them.

A broker setting is looked up in this order: changed for this broker while it runs, changed for all brokers while they
run, given at start, default. A topic setting that is not set on the topic comes from the broker setting in the column
"else". An unknown name is a warning, and so is one that Kafka knows and that has no effect here. Settings of parts that
are still to come (groups, transactions, replication, TLS and SASL) are checked and shown already.
"""

SECTIONS = (
    (settings.TOPIC, "Topics", "All of them may be changed at any time."),
    (
        settings.BROKER,
        "Brokers",
        "Changes: *start*: given at start only; *running*: also while brokers run, for one or for all; *one broker*: "
        "while running, for one broker; *one listener*: while running, with `listener.name.NAME.` in front.",
    ),
    (
        settings.GROUP,
        "Groups",
        "For groups of the consumer, share and streams protocols; all may be changed at any time.",
    ),
    (settings.CLIENT_METRICS, "Client metrics", "Of a subscription to metrics that clients push (KIP-714)."),
    (settings.QUOTA, "Quotas of users and clients", "Set by AlterClientQuotas; without one there is no limit."),
    (settings.IP, "Quotas of addresses", "Set by AlterClientQuotas."),
    (
        settings.CLIENT,
        "Moldau's client",
        "Of `moldau.client` ([client.md](client.md)), under librdkafka's names; other names for the same are under "
        "*else*. Names that librdkafka knows and that are not here change nothing; unknown ones are refused.",
    ),
    (settings.HTTP, "HTTP services", "Of every HTTP service, given to it by `--set`."),
    (
        settings.REGISTRY,
        "Schema Registry",
        "Of `moldau registry` ([registry.md](registry.md)), under Confluent's names.",
    ),
    (settings.REST, "REST Proxy", "Of `moldau rest` ([rest.md](rest.md)), under Confluent's names."),
    (settings.SQL, "SQL server", "Of `moldau sql server` ([sql-server.md](sql-server.md)), under ksqlDB's names."),
    (
        settings.CONNECT,
        "Connect",
        "Of `moldau connect` ([connect/index.md](connect/index.md)), under Connect's names. Other names are "
        "for the worker's Kafka clients (under Java's names), its converters, or without effect. Settings of HTTPS "
        "stand under `listeners.https.`.",
    ),
)
CHANGES = {
    "read-only": "start",
    "unlisted": "start",
    "per-broker": "one broker",
    "per-listener": "one listener",
    "cluster-wide": "running",
    "dynamic": "running",
}


def markdown() -> str:
    """Return the whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for scope, title, prose in SECTIONS:
        yield f"## {title}\n\n{prose}\n"
        last = "changes" if scope == settings.BROKER else "else"
        yield f"| setting | type | default | allowed | {last} | what it does |\n|---|---|---|---|---|---|"
        for row in settings.rows(scope).values():
            if not row.internal:
                yield f"| {' | '.join(_cells(row))} |"
        yield ""
    yield "## Without effect\n\nNames that Kafka knows and that change nothing here; a broker warns and goes on.\n"
    yield ", ".join(f"`{name}`" for name in sorted(settings.inert_names())) + "\n"


def _cells(row: Row) -> Iterator[str]:
    yield f"`{row.name}`"
    yield row.type
    yield f"`{row.default}`" if row.default else ""
    yield allowed(row).replace("|", "\\|")
    yield CHANGES[row.mode] if row.scope == settings.BROKER else ", ".join(f"`{link}`" for link in row.chain)
    yield row.doc.replace("|", "\\|")


def allowed(row: Row) -> str:
    """Write the column `valid` in words."""
    valid = row.valid
    if valid[0] == "{":
        return valid[1:].partition("}")[0].replace(",", ", ")
    if ".." in valid:
        span, _, other = valid.partition("|")
        low, _, high = span.partition("..")
        return (f"{low} to {high}" if high else f"from {low}") + (f", or {other}" if other else "")
    return _NAMED[valid]


_NAMED = {
    "-": "",
    "nonempty": "not empty",
    "replicas": "* or partition:broker pairs",
    "limits": "host:number pairs",
    "servers": "host:port pairs",
    "voters": "id@host:port entries",
    "offset-reset": "earliest, latest, by_duration:P…",
}
