"""kafka-broker-api-versions: prints the requests that each broker answers, and their versions."""

from __future__ import annotations

from typing import Any

from moldau.admin import clusters
from moldau.cli.kafka.flags import Options, Tool, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, reach
from moldau.wire import schema


def run(options: Options) -> int:
    require(options, "bootstrap-server")
    with reach(options) as client:
        for broker in clusters.described(client).brokers:
            rack = f" rack: {broker.rack}" if broker.rack else " rack: null"
            who = f"{broker.host}:{broker.port} (id: {broker.id}{rack} isFenced: {str(broker.is_fenced).lower()})"
            print(f"{who} -> {text(clusters.versions(client, broker.id))}")
    return OK


def text(answer: Any) -> str:
    """List the requests by number, each with its versions and the one that would be used."""
    offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    known = {
        head.key: head for head, _ in schema.heads().values() if head.kind == "request" and head.table == "clients"
    }
    lines = [line(key, offered.get(key), known.get(key)) for key in sorted({*offered, *known})]
    return "(\n\t" + ",\n\t".join(lines) + "\n)"


def line(key: int, offered: tuple[int, int] | None, known: schema.Message | None) -> str:
    name = known.name.removesuffix("Request") if known else "UNKNOWN"
    if offered is None:
        return f"{name}({key}): UNSUPPORTED"
    low, high = offered
    shown = f"{name}({key}): {low if low == high else f'{low} to {high}'}"
    if known is None:
        return shown
    if known.versions[1] < low:
        return f"{shown} [unusable: node too new]"
    if high < known.versions[0]:
        return f"{shown} [unusable: node too old]"
    return f"{shown} [usable: {min(known.versions[1], high)}]"


TOOL = Tool(
    "kafka-broker-api-versions",
    "This tool helps to retrieve broker version information.",
    (BOOTSTRAP, COMMAND_CONFIG),
    run,
)
