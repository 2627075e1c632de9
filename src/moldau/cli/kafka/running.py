"""How tools run: help and version, the connection to a cluster, and the handling of errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka import usage
from moldau.cli.kafka.flags import Flag, Mistake, Options, Tool, Usage, read
from moldau.cli.kafka.java_text import log
from moldau.settings import SettingError

if TYPE_CHECKING:
    from moldau.client import Client

VERSION = "4.3.1"  # of the Kafka whose tools these are
OK, FAILED, INTERRUPTED = 0, 1, 130
PATIENCE_S = 3.0  # how long a broker may take to answer before a warning
MOST_JSON_BYTES = 64 << 20

BOOTSTRAP = Flag("bootstrap-server", "server to connect to", "Connect to these brokers, HOST:PORT,...")
CONTROLLER = Flag("bootstrap-controller", "controller to connect to", "Connect to these controllers, HOST:PORT,...")
ZOOKEEPER = Flag(
    "zookeeper",
    "urls",
    "Connect to the ZooKeeper of an old cluster.",
    refused="Kafka has no ZooKeeper since 4.0; use --bootstrap-server HOST:PORT to name a broker.",
)
OLD_BROKERS = Flag(
    "broker-list", "HOST:PORT,...", "Connect to these brokers.", deprecated="bootstrap-server", alias=True
)
ADDRESSES = {"bootstrap-server": "bootstrap.servers", "bootstrap-controller": "bootstrap.controllers"}
COMMAND_CONFIG = Flag("command-config", "file", "Read settings of the client from a properties file, as in Java.")


class Terse(Exception):
    """A failure that is reported in one line."""


def run_tool(tool: Tool, arguments: list[str]) -> int:
    """Run a tool and return its exit code; report the errors that the tool does not report itself."""

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
    """Run something that prints; report failures of files and settings in a sentence, and bear a closed pipe."""
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


@dataclass(frozen=True, slots=True)
class Script:
    """A tool that reads its command line itself."""

    name: str
    about: str
    run: Callable[[list[str]], int]

    def start(self, arguments: list[str]) -> int:
        return run_guarded(lambda: self.run(arguments))


def tell_usage(tool: Tool, sentence: str) -> int:
    """Print a sentence and the flags of a tool on stderr; return the exit code."""
    print(sentence, usage.text(tool), sep="\n", file=sys.stderr)
    return FAILED


def complain(sentence: str) -> int:
    """Print a sentence on stderr; return the exit code."""
    print(sentence, file=sys.stderr)
    return FAILED


def connect(options: Options, **more: str) -> Client:
    """Connect to the given brokers with the given settings; warn if none answers soon, and go on trying."""
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


def read_json(path: str) -> Any:
    """Read a file; None if it is not JSON."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_JSON_BYTES + 1)
    except OSError:
        raise Terse(f"Unable to read file {path}") from None
    if len(data) > MOST_JSON_BYTES:
        raise Terse(f"{path}: a file of JSON has at most {MOST_JSON_BYTES} bytes here")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@contextmanager
def reach(options: Options, **more: str) -> Iterator[Client]:
    """Connect, and report an error of the cluster in one line."""
    from moldau.cli.kafka.exceptions import words_of
    from moldau.client import ClientError

    try:
        with connect(options, **more) as client:
            yield client
    except ClientError as error:
        raise Terse(words_of(error)) from None


def settings(options: Options, **more: str) -> dict[str, str]:
    """Return the settings of the client: those of the tool, those of the file, and the address."""
    from moldau.client.java_settings import read_file, translated

    file = next((options[name] for name in options.given("command-config", *_old_names(options))), None)
    given: Mapping[str, str] = read_file(file) if file else {}
    own = {name.replace("_", "."): value for name, value in more.items()}
    others = {name: value for name, value in translated(given).items() if name not in ADDRESSES.values()}
    flag = next(iter(options.given("bootstrap-controller")), "bootstrap-server")
    return {**own, **others, ADDRESSES[flag]: options[flag]}


def _old_names(options: Options) -> list[str]:
    return [flag.name for flag in options.tool.flags if flag.deprecated == "command-config"]


def warn_of_deprecated(options: Options) -> None:
    """Say what to use instead of deprecated flags, as Kafka does since 4.2 (KIP-1147); for aliases on stderr."""
    for flag in options.tool.flags:
        if flag.deprecated and flag.name in options:
            sentence = options.tool.warning.format(old=flag.name, new=flag.deprecated)
            print(sentence, file=sys.stderr if flag.alias else sys.stdout)


def _broken(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads any more; the last flush must not fail again
        return FAILED
    return complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
