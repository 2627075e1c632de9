"""kafka-log-dirs: what brokers keep where, and how large it is, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from moldau.admin import log_dirs
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import class_name, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, Terse, connect
from moldau.client import ClientError


def run(options: Options) -> int:
    require(options, "bootstrap-server", "describe")
    names = {name for name in options["topic-list"].split(",") if name}
    asked = [broker_id(text) for text in options["broker-list"].split(",") if text]
    try:
        with connect(options, client_id="log-dirs-tool") as client:
            there = sorted(client.refresh().brokers)
            if missing := [broker for broker in asked if broker not in there]:
                raise Terse(
                    f"ERROR: The given brokers do not exist from --broker-list: {ids(missing)}. "
                    f"Current existent brokers: {ids(there)}"
                )
            print("Querying brokers for log directories information")
            wanted = sorted(set(asked)) or there
            found = log_dirs.described(client, wanted)
            print(f"Received log directory information from brokers {ids(wanted)}")
            print(json.dumps(document(found, names), separators=(",", ":"), ensure_ascii=False))
    except ClientError as error:
        raise Terse(words_of(error)) from None
    return OK


def broker_id(text: str) -> int:
    if not text.isdecimal():
        raise Terse(f'For input string: "{text}"')
    return int(text)


def ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def document(found: Mapping[int, Sequence[log_dirs.LogDir]], names: set[str]) -> dict[str, Any]:
    """The JSON, its names in the order in which Java has them."""
    rows = [{"broker": broker, "logDirs": [_directory(one, names) for one in dirs]} for broker, dirs in found.items()]
    return _ordered({"version": 1, "brokers": [_ordered(row) for row in rows]})


def _directory(one: log_dirs.LogDir, names: set[str]) -> dict[str, Any]:
    replicas = {replica.place: replica for replica in one.replicas if not names or replica.place[0] in names}
    partitions = [_replica(replicas[place]) for place in java_order.partitions(replicas)]
    error = class_name(one.error) if one.error else None
    return _ordered({"partitions": partitions, "error": error, "logDir": one.path})


def _replica(replica: log_dirs.Replica) -> dict[str, Any]:
    topic, partition = replica.place
    return _ordered(
        {
            "partition": f"{topic}-{partition}",
            "size": replica.size,
            "offsetLag": replica.offset_lag,
            "isFuture": replica.future,
        }
    )


def _ordered(pairs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: pairs[name] for name in java_order.names(pairs)}


TOOL = Tool(
    "kafka-log-dirs",
    "This tool helps to query log directory usage on the specified brokers.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("describe", help="Show directories."),
        Flag("topic-list", "topic1,topic2", "Only these topics.", default=""),
        Flag("broker-list", "0,1,2", "Only these brokers.", default=""),
    ),
    run,
)
