"""`moldau broker`: runs one broker until it is stopped. quick_broker.py reads the same options without typer."""

from __future__ import annotations

from typing import Literal

import typer

from moldau.broker.rim.process import Options, run
from moldau.cli.options import epilog, flag, option
from moldau.cli.services import Overrides, StopWithStdin

EPILOG = epilog(
    "moldau broker  (listens on 127.0.0.1:9092, keeps its data in ./moldau-data)",
    "moldau broker --ephemeral --listen 127.0.0.1:0  (listens on any free port, keeps no data)",
    "moldau broker --config server.properties  (reads Kafka's own file)",
    "moldau broker --set num.partitions=6 --set log.retention.hours=24 --metrics-port 9400",
    "moldau broker --listen 0.0.0.0:9092 --set advertised.listeners=PLAINTEXT://broker.example:9092",
)


def cli(
    config: str | None = option("--config", "File of settings, as Kafka's server.properties.", metavar="FILE"),
    overrides: Overrides = None,
    data_dir: str | None = option("--data-dir", "Directory of the topics. (log.dirs, or ./moldau-data)", metavar="DIR"),
    ephemeral: bool = flag("--ephemeral", "Keep topics in a temporary directory, which is removed at exit."),
    listen: str | None = option(
        "--listen", "Address to listen on; port 0 takes any free port. (127.0.0.1:9092)", metavar="HOST:PORT"
    ),
    metrics_port: int | None = option(
        "--metrics-port", "Serve Prometheus metrics on this port of 127.0.0.1.", min=0, max=65535
    ),
    log_format: Literal["text", "json"] = option("--log-format", "Format of log lines.", "text"),
    log_level: Literal["debug", "info", "warning", "error"] = option(
        "--log-level", "Least severe level to log.", "info"
    ),
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a Kafka-compatible broker.

    When it accepts connections it prints one line, `ready HOST:PORT`. Logs go to stderr. SIGTERM and Ctrl-C stop it
    cleanly; a second one stops it at once. `moldau settings` lists the settings for --config and --set.
    """
    options = Options(
        config=config,
        overrides=tuple(overrides or ()),
        data_dir=data_dir,
        ephemeral=ephemeral,
        listen=listen,
        metrics_port=metrics_port,
        log_format=log_format,
        log_level=log_level,
        stop_with_stdin=stop_with_stdin,
    )
    raise typer.Exit(run(options))


def main(arguments: list[str]) -> None:
    """Handle what quick_broker.py does not: help and mistakes."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(epilog=EPILOG)(cli)
    app(arguments, prog_name="moldau broker")
