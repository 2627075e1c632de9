"""kafka-log-dirs: prints the directories of brokers and the sizes of their partitions as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.admin import log_dirs
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import class_name
from moldau.cli.kafka.flags import Flag, Options, Tool, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, Terse, reach


def run(options: Options) -> int:
    require(options, "bootstrap-server", "describe")
    names = {name for name in options["topic-list"].split(",") if name}
    given = [broker_id(text) for text in options["broker-list"].split(",") if text]
    with reach(options, client_id="log-dirs-tool") as client:
        existing = sorted(client.refresh().brokers)
        if missing := [broker for broker in given if broker not in existing]:
            raise Terse(
                f"ERROR: The given brokers do not exist from --broker-list: {ids(missing)}. "
                f"Current existent brokers: {ids(existing)}"
            )
        print("Querying brokers for log directories information")
        brokers = sorted(set(given)) or existing
        found = log_dirs.described(client, brokers)
        print(f"Received log directory information from brokers {ids(brokers)}")
        print(json.dumps(document(found, names), separators=(",", ":"), ensure_ascii=False))
    return OK


def broker_id(text: str) -> int:
    if not text.isdecimal():
        raise Terse(f'For input string: "{text}"')
    return int(text)


def ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def document(directories: Mapping[int, Sequence[log_dirs.LogDir]], names: set[str]) -> dict[str, Any]:
    """Return the JSON, its names in Java's order."""
    rows = [
        {"broker": broker, "logDirs": [_directory(one, names) for one in dirs]} for broker, dirs in directories.items()
    ]
    return _ordered({"version": 1, "brokers": [_ordered(row) for row in rows]})


def _directory(one: log_dirs.LogDir, names: set[str]) -> dict[str, Any]:
    replicas = {replica.place: replica for replica in one.replicas if not names or replica.place[0] in names}
    partitions = [_replica(replicas[place]) for place in java_order.partitions(replicas)]
    error = class_name(one.error) if one.error else None
    return _ordered({"partitions": partitions, "error": error, "logDir": one.path})


def _replica(replica: log_dirs.Replica) -> dict[str, Any]:
    name = "{}-{}".format(*replica.place)
    pairs = {"partition": name, "size": replica.size, "offsetLag": replica.offset_lag, "isFuture": replica.future}
    return _ordered(pairs)


def _ordered(pairs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: pairs[name] for name in java_order.names(pairs)}


TOOL = Tool(
    "kafka-log-dirs",
    "This tool helps to query log directory usage on the specified brokers.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("describe", help="Show the directories."),
        Flag("topic-list", "topic1,topic2", "Show only these topics.", default=""),
        Flag("broker-list", "0,1,2", "Show only these brokers.", default=""),
    ),
    run,
)
