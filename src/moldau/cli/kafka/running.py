"""Running a tool: help and version, the client that it talks through, and what becomes of its errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.cli.kafka import usage
from moldau.cli.kafka.flags import Flag, Mistake, Options, Tool, Usage, read
from moldau.settings import SettingError

if TYPE_CHECKING:
    from moldau.client import Client

VERSION = "4.3.1"  # of Kafka, whose tools these are
OK, FAILED, INTERRUPTED = 0, 1, 130

BOOTSTRAP = Flag("bootstrap-server", "server to connect to", "The brokers to begin with, HOST:PORT,...")
CONTROLLER = Flag(
    "bootstrap-controller",
    "controller to connect to",
    "The controllers to begin with, HOST:PORT,...",
    refused="a broker of Moldau is its own controller: use --bootstrap-server.",
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
    """A client for the brokers and settings that were given."""
    from moldau.client import Client

    return Client(settings(options, **more))


def settings(options: Options, **more: str) -> dict[str, str]:
    """The client's settings: the tool's own, those of the file, and the address."""
    from moldau.cli.kafka.java_settings import read_file, translated

    given: Mapping[str, str] = read_file(options["command-config"]) if "command-config" in options else {}
    own = {name.replace("_", "."): value for name, value in more.items()}
    return {**own, **translated(given), "bootstrap.servers": options["bootstrap-server"]}


def warn_of_deprecated(options: Options) -> None:
    """Say of old names what to use instead, as Kafka 4.2 and later do (KIP-1147)."""
    for flag in options.tool.flags:
        if flag.deprecated and flag.name in options:
            print(options.tool.warning.format(old=flag.name, new=flag.deprecated))


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
