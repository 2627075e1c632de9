"""What the commands that run a service share: options, logs, and a sentence for each mistake."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from moldau.settings import SettingError

OK, FAILED, MISUSED = 0, 1, 2

BootstrapServers = Annotated[
    str | None, typer.Option(metavar="HOST:PORT,...", help="The brokers, of Moldau or any Kafka.")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; repeatable.")]
StopWithStdin = Annotated[bool, typer.Option("--stop-with-stdin", hidden=True)]


def run_service(name: str, serve: Callable[[], None]) -> None:
    """Run it, and leave with its exit code."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("moldau").setLevel(logging.INFO)
    code = _served(name, serve)
    sys.stdout.flush()
    raise typer.Exit(code)


def _served(name: str, serve: Callable[[], None]) -> int:
    from moldau.http import ServeError

    try:
        serve()
    except SettingError as error:
        return _complain(name, error, MISUSED)
    except ServeError as error:
        return _complain(name, error, FAILED)
    except KeyboardInterrupt:
        return 130
    return OK


def _complain(name: str, error: Exception, code: int) -> int:
    print(f"moldau {name}: {error}", file=sys.stderr)
    return code
