"""The command `moldau`: one noun a module, and a row for each here.

`moldau --help` imports none of them, and a command only its own. Importing typer takes as long as starting a broker,
so a noun may have a quick way in: a module with `run(arguments) -> int | None`, which is called before typer is
imported and may leave what it does not understand to typer by returning None.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NamedTuple

COMPLETING = "_MOLDAU_COMPLETE"  # set by the shell while it completes a line


class Command(NamedTuple):
    """A noun. Its module has `cli`: a function with typer's annotations, or a typer.Typer with verbs. `panel` is where
    it stands in the list of `moldau --help`.
    """

    name: str
    module: str
    help: str
    panel: str = "Others"
    quick: str | None = None


RUN, DATA, CLUSTER, SERVE = "The platform", "Data", "The cluster", "Parts of the platform, one by one"

COMMANDS = (
    Command("up", "moldau.cli.up", "Run the platform: broker, Schema Registry, REST Proxy and console.", RUN),
    Command("demo", "moldau.cli.demo", "Run the platform with a made-up shop in it, to look at.", RUN),
    Command("status", "moldau.cli.status", "Show platforms that run on this machine.", RUN),
    Command("logs", "moldau.cli.logs", "Show what the parts of a platform write.", RUN),
    Command("down", "moldau.cli.down", "Stop a platform.", RUN),
    Command("doctor", "moldau.cli.doctor", "Look for what is wrong, and say what to do.", RUN),
    Command("profile", "moldau.cli.profile", "Clusters by name, for all commands.", RUN),
    Command("topic", "moldau.cli.topic", "Create, list, describe, alter, trim, analyze and delete topics.", DATA),
    Command("produce", "moldau.cli.produce", "Write records from stdin or files to a topic.", DATA),
    Command("consume", "moldau.cli.consume", "Read records of topics, and wait for more.", DATA),
    Command("group", "moldau.cli.group", "Consumer groups: their members, their lag, their offsets.", DATA),
    Command("share", "moldau.cli.share", "Share groups, the queues of Kafka.", DATA),
    Command("txn", "moldau.cli.txn", "Transactions, and an end for those that hang.", DATA),
    Command("perf", "moldau.cli.perf", "Measure a cluster: produce, consume, latency.", DATA),
    Command("schema", "moldau.cli.schema", "Register, show, compare and delete schemas.", DATA),
    Command("streams", "moldau.cli.streams", "Streams applications: run, list, describe, query, reset.", DATA),
    Command("spark", "moldau.cli.spark", "What Spark's sinks have written: list, resume, reset.", DATA),
    Command("config", "moldau.cli.config", "Settings of topics, brokers and groups in a running cluster.", CLUSTER),
    Command("cluster", "moldau.cli.cluster", "Brokers, health, features and the quorum.", CLUSTER),
    Command("acl", "moldau.cli.acl", "Who may do what.", CLUSTER),
    Command("user", "moldau.cli.user", "Users with SCRAM credentials.", CLUSTER),
    Command("quota", "moldau.cli.quota", "Limits of users, clients and addresses.", CLUSTER),
    Command("log", "moldau.cli.log", "Files of logs on disk: print and check them.", CLUSTER),
    Command("settings", "moldau.cli.settings", "What settings there are, and what they mean.", CLUSTER),
    Command("broker", "moldau.cli.broker", "Run a Kafka-compatible broker.", SERVE, quick="moldau.cli.quick_broker"),
    Command("registry", "moldau.cli.registry", "Run a Schema Registry.", SERVE),
    Command("rest", "moldau.cli.rest", "Run a REST Proxy.", SERVE),
    Command("console", "moldau.cli.console", "Run the web console.", SERVE),
)


def main() -> None:
    """The entry point: ends the process with the command's exit code."""
    arguments = sys.argv[1:]
    if arguments in ([], ["-h"], ["--help"]) and COMPLETING not in os.environ:
        import_module("moldau.cli.help").show()
        sys.exit(0)
    code = _run_kafka_tool(arguments) if arguments and arguments[0].startswith("kafka-") else _run_quickly(arguments)
    if code is not None:
        sys.exit(code)
    from moldau.cli.application import application

    application(arguments)(arguments, prog_name="moldau")


def _run_kafka_tool(arguments: list[str]) -> int | None:
    """`moldau kafka-topics ...`: Kafka's own command lines."""
    from moldau.cli import kafka

    name = arguments[0].removesuffix(".sh")
    return kafka.run(name, arguments[1:]) if name in kafka.TOOLS or name in kafka.ELSEWHERE else None


def _run_quickly(arguments: list[str]) -> int | None:
    for command in COMMANDS:
        if command.quick and arguments[:1] == [command.name]:
            return import_module(command.quick).run(arguments[1:])
    return None
