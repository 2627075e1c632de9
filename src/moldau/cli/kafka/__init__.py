"""Kafka's own command lines, in Python: `moldau kafka-topics ...`, and `kafka-topics`, `kafka-topics.sh` as scripts.

Each tool is a module with its flags as rows and the function that runs it. Flags, output and exit codes are those of
Apache Kafka 4.3. Only the tool that is used is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import PurePath
from typing import Protocol

# kafka-acls is TOOL in acls.py, and so on; kafka-server-start and kafka-server-stop are together in server.py.
NAMES = """
    acls avro-console-consumer avro-console-producer broker-api-versions cluster configs console-consumer
    console-producer console-share-consumer consumer-groups consumer-perf-test delegation-tokens delete-records dump-log
    features get-offsets groups leader-election log-dirs metadata-quorum producer-perf-test reassign-partitions
    replica-verification run-class server-start server-stop share-groups storage streams-application-reset topics
    transactions verifiable-consumer verifiable-producer
"""
CONNECT = ("connect-distributed", "connect-plugin-path", "connect-standalone")  # together in connect.py
TOOLS = (*CONNECT, *(f"kafka-{name}" for name in NAMES.split()))
# Kafka's tools that are missing here -> what to use instead.
ELSEWHERE = {
    "kafka-client-metrics": "`moldau kafka-configs --client-metrics NAME` shows and changes subscriptions",
    "kafka-e2e-latency": "`moldau perf latency` measures it",
    "kafka-jmx": "there is no JMX; the broker serves its metrics to Prometheus (`metrics.listen`)",
    "kafka-share-consumer-perf-test": "`moldau kafka-console-share-consumer` reads as a share group",
    "kafka-streams-groups": "`moldau streams list` and `moldau group describe` show them",
}


class Runnable(Protocol):
    """A tool."""

    def start(self, arguments: list[str]) -> int: ...


def main() -> None:
    """Run the tool that the script is named after: the entry point of all scripts."""
    sys.exit(run(PurePath(sys.argv[0]).name, sys.argv[1:]))


def run(name: str, arguments: list[str]) -> int:
    """Run a tool and return its exit code."""
    bare = name.removesuffix(".sh")
    if bare in ELSEWHERE:
        print(f"{bare} does not exist here: {ELSEWHERE[bare]}.", file=sys.stderr)
        return 1
    return find(name).start(arguments)


def find(name: str) -> Runnable:
    """Return a tool by its name, with or without .sh; KeyError if there is none."""
    bare = name.removesuffix(".sh")
    if bare not in TOOLS:
        raise KeyError(name)
    if bare in CONNECT:
        name = bare.removeprefix("connect-").replace("-", "_").upper()
        return getattr(import_module("moldau.cli.kafka.connect"), name)
    module = bare.removeprefix("kafka-").replace("-", "_")
    kind, _, action = module.partition("_")
    if kind == "server":
        return getattr(import_module("moldau.cli.kafka.server"), action.upper())
    return import_module(f"moldau.cli.kafka.{module}").TOOL
