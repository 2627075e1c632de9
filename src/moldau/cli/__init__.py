"""The command `moldau`: a module for each noun, and a row for each module here.

`moldau --help` imports none of them, and a command only its own. Importing typer takes as long as starting a broker,
so a noun may have a quick module: its `run(arguments) -> int | None` is called before typer is imported, and returns
None for what it leaves to typer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import NamedTuple

COMPLETING = "_MOLDAU_COMPLETE"  # set by the shell while it completes a line


class Command(NamedTuple):
    """A noun. Its module has `cli`: a function with typer's annotations, or a typer.Typer with verbs. `panel` is its
    section in `moldau --help`. A function that takes a file may have `verbs` too, in other modules.
    """

    name: str
    module: str
    help: str
    panel: str = "Others"
    quick: str | None = None
    verbs: Mapping[str, str] = MappingProxyType({})


RUN, DATA, CLUSTER, SERVE = "The platform", "Data", "The cluster", "Parts of the platform, one by one"

COMMANDS = (
    Command("up", "moldau.cli.up", "Run the platform: broker, registry, REST Proxy, Connect and console.", RUN),
    Command("demo", "moldau.cli.demo", "Run the platform with a made-up shop as a demonstration.", RUN),
    Command("status", "moldau.cli.status", "Show the platforms that run on this machine.", RUN),
    Command("logs", "moldau.cli.logs", "Show the logs of the parts of a platform.", RUN),
    Command("restart", "moldau.cli.restart", "Restart the brokers of a platform one after another.", RUN),
    Command("down", "moldau.cli.down", "Stop a platform.", RUN),
    Command("doctor", "moldau.cli.doctor", "Find problems, and say what to do.", RUN),
    Command("profile", "moldau.cli.profile", "Name clusters, for all commands.", RUN),
    Command("topic", "moldau.cli.topic", "Create, list, describe, alter, trim, analyze and delete topics.", DATA),
    Command("produce", "moldau.cli.produce", "Write records from stdin or files to a topic.", DATA),
    Command("consume", "moldau.cli.consume", "Read records of topics, and wait for new ones.", DATA),
    Command("group", "moldau.cli.group", "List, describe, reset and delete consumer groups.", DATA),
    Command("share", "moldau.cli.share", "List, describe, reset and delete share groups, Kafka's queues.", DATA),
    Command("txn", "moldau.cli.txn", "List transactions, and abort those that hang.", DATA),
    Command("perf", "moldau.cli.perf", "Measure the speed of a cluster: produce, consume, latency.", DATA),
    Command("schema", "moldau.cli.schema", "Register, show, compare and delete schemas.", DATA),
    Command("streams", "moldau.cli.streams", "Run, deploy, list, query and reset streams applications.", DATA),
    Command("sql", "moldau.cli.sql", "Talk to a SQL server; check, test, compare and apply SQL.", DATA),
    Command("connector", "moldau.cli.connector", "Create, watch, change and run connectors of Connect.", DATA),
    Command("spark", "moldau.cli.spark", "List, resume and reset the progress of Spark sinks.", DATA),
    Command("config", "moldau.cli.config", "Show and change settings of topics, brokers and groups.", CLUSTER),
    Command("cluster", "moldau.cli.cluster", "Show brokers, health and the quorum; verify, move and swap.", CLUSTER),
    Command("acl", "moldau.cli.acl", "Control who may do what.", CLUSTER),
    Command("user", "moldau.cli.user", "Manage users with SCRAM credentials.", CLUSTER),
    Command("token", "moldau.cli.token", "Create, list, renew and end delegation tokens.", CLUSTER),
    Command("secure", "moldau.cli.secure", "Set up TLS, users and passwords of a platform, and check them.", CLUSTER),
    Command("audit", "moldau.cli.audit", "Show who was refused, and who changed what.", CLUSTER),
    Command("quota", "moldau.cli.quota", "Limit users, clients and addresses.", CLUSTER),
    Command("log", "moldau.cli.log", "Print and check files of logs on disk.", CLUSTER),
    Command("settings", "moldau.cli.settings", "Look up settings and their meaning.", CLUSTER),
    Command("broker", "moldau.cli.broker", "Run a Kafka-compatible broker.", SERVE, quick="moldau.cli.quick_broker"),
    Command("registry", "moldau.cli.registry", "Run a Schema Registry.", SERVE),
    Command("rest", "moldau.cli.rest", "Run a REST Proxy.", SERVE),
    Command(
        "connect",
        "moldau.cli.connect",
        "Run a worker of Connect; install Java plugins.",
        SERVE,
        verbs=MappingProxyType({"plugin": "moldau.cli.connect_plugin"}),
    ),
    Command("console", "moldau.cli.console", "Run the web console.", SERVE),
    Command("worker", "moldau.cli.worker", "Run what is deployed, on Spark; list workers.", SERVE),
    Command("balancer", "moldau.cli.balancer", "Run a balancer, which heals and balances a cluster.", SERVE),
)


def main(arguments: list[str] | None = None) -> None:
    """Run a command, by default that of the command line, and exit with its exit code: the entry point."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments in ([], ["-h"], ["--help"]) and COMPLETING not in os.environ:
        import_module("moldau.cli.help").show()
        sys.exit(0)
    is_tool = bool(arguments) and arguments[0].startswith(("kafka-", "connect-", "ksql"))
    code = _run_tool(arguments) if is_tool else _run_quickly(arguments)
    if code is not None:
        sys.exit(code)
    from moldau.cli.application import application

    application(arguments)(arguments, prog_name="moldau")


def _run_tool(arguments: list[str]) -> int | None:
    """Run one of Kafka's or ksqlDB's own command lines, as in `moldau kafka-topics ...`."""
    from moldau.cli import kafka, ksql

    name = arguments[0].removesuffix(".sh")
    if name in ksql.TOOLS:
        return ksql.run(name, arguments[1:])
    return kafka.run(name, arguments[1:]) if name in kafka.TOOLS or name in kafka.ELSEWHERE else None


def _run_quickly(arguments: list[str]) -> int | None:
    for command in COMMANDS:
        if command.quick and arguments[:1] == [command.name]:
            return import_module(command.quick).run(arguments[1:])
    return None
