"""`moldau up`: run the platform until it is told to stop."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from moldau.platform import PARTS, Options, Platform, PlatformError

EPILOG = """\
Examples:

moldau up  (broker, registry and REST Proxy; data in ./moldau-data)

moldau up --ephemeral --port-offset 10000  (nothing is kept; 19092, 18081, 18082)

moldau up --only broker,registry

moldau up --bootstrap-servers kafka.example:9092  (registry and REST Proxy of another Kafka)
"""


def cli(
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Where topics are kept: ./moldau-data.")] = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep nothing.")] = False,
    port_offset: Annotated[int, typer.Option(min=-8000, max=56000, help="Added to every port.")] = 0,
    only: Annotated[str, typer.Option(metavar="PART,...", help=f"Start these alone: {', '.join(PARTS)}.")] = "",
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Use this Kafka, and start no broker.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the broker; repeatable.")
    ] = None,
) -> None:
    """Run the platform on the usual ports of this machine.

    When everything serves it prints a table of addresses, and `ready`. Logs go to stderr. Ctrl-C and SIGTERM stop all
    parts in order; a part that crashes is started again.
    """
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    asked = tuple(name.strip() for name in only.split(",") if name.strip())
    options = Options(data_dir, ephemeral, port_offset, asked, bootstrap_servers, tuple(overrides or ()))
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    try:
        with Platform(options, errors.print).running() as platform:
            console.print(_table(platform))
            console.print("ready")
            platform.look_after(told.is_set)
    except PlatformError as error:
        errors.print(f"moldau up: {error}")
        raise typer.Exit(1) from None


def _table(platform: Platform) -> Table:
    table = Table("part", "address", "for")
    for part in platform.parts:
        table.add_row(part.name, part.address, PARTS[part.name].what)
    return table
