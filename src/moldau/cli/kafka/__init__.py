"""Kafka's own command lines, in Python: `moldau kafka-topics ...`, and `kafka-topics`, `kafka-topics.sh` as scripts.

One module a tool, which has its flags as rows and what runs it. Flags, output and exit codes are those of Apache Kafka
4.3. Nothing but the tool that was asked for is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import PurePath
from typing import Protocol

# The name of a tool -> the module here that has it, as TOOL or under the name behind the colon.
TOOLS = {
    "kafka-acls": "acls",
    "kafka-avro-console-consumer": "avro_console_consumer",
    "kafka-avro-console-producer": "avro_console_producer",
    "kafka-broker-api-versions": "broker_api_versions",
    "kafka-configs": "configs",
    "kafka-console-consumer": "console_consumer",
    "kafka-console-producer": "console_producer",
    "kafka-console-share-consumer": "console_share_consumer",
    "kafka-consumer-groups": "consumer_groups",
    "kafka-consumer-perf-test": "consumer_perf_test",
    "kafka-delete-records": "delete_records",
    "kafka-dump-log": "dump_log",
    "kafka-features": "features",
    "kafka-get-offsets": "get_offsets",
    "kafka-groups": "groups",
    "kafka-leader-election": "leader_election",
    "kafka-log-dirs": "log_dirs",
    "kafka-metadata-quorum": "metadata_quorum",
    "kafka-producer-perf-test": "producer_perf_test",
    "kafka-reassign-partitions": "reassign_partitions",
    "kafka-run-class": "run_class",
    "kafka-server-start": "server:START",
    "kafka-server-stop": "server:STOP",
    "kafka-share-groups": "share_groups",
    "kafka-storage": "storage",
    "kafka-streams-application-reset": "streams_application_reset",
    "kafka-topics": "topics",
    "kafka-transactions": "transactions",
    "kafka-verifiable-consumer": "verifiable_consumer",
    "kafka-verifiable-producer": "verifiable_producer",
}
# Tools of Kafka's that are not here -> what to do instead.
ELSEWHERE = {
    "kafka-client-metrics": "`moldau kafka-configs --client-metrics NAME` shows and changes subscriptions",
    "kafka-cluster": "`moldau cluster info` shows the cluster's id",
    "kafka-delegation-tokens": "there are no delegation tokens; `moldau user` makes users with passwords",
    "kafka-e2e-latency": "`moldau perf latency` measures it",
    "kafka-jmx": "there is no JMX; the broker's metrics are a page of Prometheus (`metrics.listen`)",
    "kafka-share-consumer-perf-test": "`moldau kafka-console-share-consumer` reads as a share group",
    "kafka-streams-groups": "`moldau streams list` and `moldau group describe` show them",
}


class Runnable(Protocol):
    """A tool."""

    def start(self, arguments: list[str]) -> int: ...


def main() -> None:
    """The entry point of all scripts: the script's own name says which tool is meant."""
    sys.exit(run(PurePath(sys.argv[0]).name, sys.argv[1:]))


def run(name: str, arguments: list[str]) -> int:
    """Run a tool and return its exit code."""
    bare = name.removesuffix(".sh")
    if bare in ELSEWHERE:
        print(f"{bare} is not here: {ELSEWHERE[bare]}.", file=sys.stderr)
        return 1
    return find(name).start(arguments)


def find(name: str) -> Runnable:
    """A tool by its name, with or without .sh; KeyError if there is none."""
    module, _, attribute = TOOLS[name.removesuffix(".sh")].partition(":")
    return getattr(import_module(f"moldau.cli.kafka.{module}"), attribute or "TOOL")
