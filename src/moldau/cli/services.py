"""What the commands that run a service share: options, logging, and errors as sentences."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from moldau.admin.mistakes import FAILED, INTERRUPTED, MISUSED, OK
from moldau.settings import SettingError

BootstrapServers = Annotated[
    str | None, typer.Option(metavar="HOST:PORT,...", help="The brokers to connect to, of Moldau or any Kafka.")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a setting; repeatable.")]
StopWithStdin = Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)]


def run_service(name: str, serve: Callable[[], None]) -> None:
    """Run a service, and exit with its exit code."""
    from moldau.http import ServeError

    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("moldau").setLevel(logging.INFO)
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
