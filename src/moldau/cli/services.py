"""What the commands that run a service share: options, logging, and errors as sentences."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from moldau.admin.mistakes import FAILED, INTERRUPTED, MISUSED, OK
from moldau.settings import SettingError, read_properties

BootstrapServers = Annotated[
    str | None, typer.Option(metavar="HOST:PORT,...", help="The brokers to connect to, of Moldau or any Kafka.")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a setting; repeatable.")]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="File of settings, in Java's properties format; --set wins over it."),
]
StartWithStdin = Annotated[bool, typer.Option("--start-with-stdin", hidden=True)]
StartWithUse = Annotated[bool, typer.Option("--start-with-use", hidden=True)]
StopWithStdin = Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)]


def settings_of(config: str | None, overrides: Sequence[str] | None) -> tuple[str, ...]:
    """Return the settings of a file and of --set, which come last and win; SettingError if there is no such file."""
    return (*(f"{name}={text}" for name, text in read_config(config).items()), *(overrides or ()))


def read_config(config: str | None) -> dict[str, str]:
    try:
        return read_properties(config) if config else {}
    except OSError as error:
        raise SettingError("--config", config, error.strerror or "it cannot be read") from None


def log_to_stderr(news_of: str = "moldau") -> None:
    """Log warnings of everybody, and what is news of a package of ours."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger(news_of).setLevel(logging.INFO)


def run_service(name: str, serve: Callable[[], None]) -> None:
    """Run a service, and exit with its exit code."""
    from moldau.http import ServeError

    log_to_stderr()
    code = OK
    try:
        serve()
    except (SettingError, ServeError) as error:
        print(f"moldau {name}: {error}", file=sys.stderr)
        code = MISUSED if isinstance(error, SettingError) else FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.stdout.flush()
    raise typer.Exit(code)
