"""`moldau broker`: run one broker until it is told to stop. quick_broker.py knows the same options without typer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from moldau.broker.rim.process import Options, run

EPILOG = """\
Examples:

moldau broker  (listens on 127.0.0.1:9092, keeps its data in ./moldau-data)

moldau broker --ephemeral --listen 127.0.0.1:0  (any free port; nothing is kept)

moldau broker --config server.properties  (Kafka's own file)

moldau broker --set num.partitions=6 --set log.retention.hours=24 --metrics-port 9400

moldau broker --listen 0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://broker.example:9092
"""


class LogFormat(StrEnum):
    text = "text"
    json = "json"


class LogLevel(StrEnum):
    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def cli(
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Settings, as in server.properties.")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; repeatable.")
    ] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where topics are kept: log.dirs, or ./moldau-data.")
    ] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="Keep topics in a temporary directory, removed at exit.")
    ] = False,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen: 127.0.0.1:9092. Port 0 takes any.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port of the loopback.")
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="How log lines are written.")] = LogFormat.text,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged.")] = LogLevel.info,
    stop_with_stdin: Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)] = False,
) -> None:
    """Run a Kafka-compatible broker.

    When it accepts connections it prints one line, `ready HOST:PORT`. Logs go to stderr. SIGTERM and Ctrl-C stop it
    cleanly, a second one at once. `moldau settings` lists what --config and --set know.
    """
    options = Options(
        config=config,
        overrides=tuple(overrides or ()),
        data_dir=data_dir,
        ephemeral=ephemeral,
        listen=listen,
        metrics_port=metrics_port,
        log_format=log_format.value,
        log_level=log_level.value,
        stop_with_stdin=stop_with_stdin,
    )
    raise typer.Exit(run(options))


def main(arguments: list[str]) -> None:
    """Answer what the quick way leaves over: help and mistakes."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(epilog=EPILOG)(cli)
    app(arguments, prog_name="moldau broker")
