"""Running a tool: help and version, the client that it talks through, and what becomes of its errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.cli.kafka import usage
from moldau.cli.kafka.flags import Flag, Mistake, Options, Tool, Usage, read
from moldau.cli.kafka.java_text import log
from moldau.settings import SettingError

if TYPE_CHECKING:
    from moldau.client import Client

VERSION = "4.3.1"  # of Kafka, whose tools these are
OK, FAILED, INTERRUPTED = 0, 1, 130
PATIENCE_S = 3.0  # with a broker that does not answer, before anything is said

BOOTSTRAP = Flag("bootstrap-server", "server to connect to", "The brokers to begin with, HOST:PORT,...")
CONTROLLER = Flag(
    "bootstrap-controller",
    "controller to connect to",
    "The controllers to begin with, HOST:PORT,...",
    refused="these tools talk to brokers: use --bootstrap-server.",
)
ZOOKEEPER = Flag(
    "zookeeper",
    "urls",
    "The ZooKeeper of old clusters.",
    refused="Kafka has no ZooKeeper since 4.0; use --bootstrap-server HOST:PORT to name a broker.",
)
OLD_BROKERS = Flag(
    "broker-list", "HOST:PORT,...", "The brokers to begin with.", deprecated="bootstrap-server", alias=True
)
COMMAND_CONFIG = Flag("command-config", "file", "Settings of the client, in a properties file as Java clients have it.")


class Terse(Exception):
    """A failure that is told in one line."""


def run_tool(tool: Tool, arguments: list[str]) -> int:
    """Run it and return the exit code; what a tool does not tell in a way of its own is told here."""

    def start() -> int:
        try:
            options = read(tool, arguments)
            if not arguments or "help" in options:
                return tell_usage(tool, tool.about)
            if "version" in options:
                print(VERSION)
                return OK
            warn_of_deprecated(options)
            return tool.run(options)
        except Usage as error:
            return tell_usage(tool, str(error))
        except Mistake as error:
            return tool.mistaken(tool, str(error))

    return run_guarded(start)


def run_guarded(start: Callable[[], int]) -> int:
    """Run something that prints; files, settings and readers that are gone end it with a sentence."""
    try:
        return start()
    except (Terse, SettingError) as error:
        return complain(str(error))
    except OSError as error:
        return _broken(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _flush()


def tell_usage(tool: Tool, sentence: str) -> int:
    print(sentence, usage.text(tool), sep="\n", file=sys.stderr)
    return FAILED


def complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return FAILED


def connect(options: Options, **more: str) -> Client:
    """A client for the brokers and settings that were given. It waits for a broker that is away, and says so."""
    from moldau.client import Client, ClientError, Error

    client = Client(settings(options, **more))
    try:
        client.refresh(timeout_s=min(PATIENCE_S, client.config.seconds("default.api.timeout.ms")))
    except ClientError as error:
        if error.error not in (Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT):
            client.close()
            raise
        log("WARN", f"[AdminClient] {error} Trying again.", "org.apache.kafka.clients.NetworkClient")
    return client


def settings(options: Options, **more: str) -> dict[str, str]:
    """The client's settings: the tool's own, those of the file, and the address."""
    from moldau.cli.kafka.java_settings import read_file, translated

    file = next((options[name] for name in options.given("command-config", *_old_names(options))), None)
    given: Mapping[str, str] = read_file(file) if file else {}
    own = {name.replace("_", "."): value for name, value in more.items()}
    return {**own, **translated(given), "bootstrap.servers": options["bootstrap-server"]}


def _old_names(options: Options) -> list[str]:
    return [flag.name for flag in options.tool.flags if flag.deprecated == "command-config"]


def warn_of_deprecated(options: Options) -> None:
    """Say what to use instead of old names, as Kafka 4.2 and later do (KIP-1147); of aliases on standard error."""
    for flag in options.tool.flags:
        if flag.deprecated and flag.name in options:
            sentence = options.tool.warning.format(old=flag.name, new=flag.deprecated)
            print(sentence, file=sys.stderr if flag.alias else sys.stdout)


def _broken(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads on; the last flush must not fail again
        return FAILED
    return complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
