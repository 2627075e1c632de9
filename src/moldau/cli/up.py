"""`moldau up`: run the platform until it is told to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from moldau.admin.mistakes import FAILED, Mistake
from moldau.cli import running_platforms, up_file
from moldau.extras import NotInstalled, require_spark
from moldau.platform import DEMO, EVERY, PARTS, Options, Platform, PlatformError

EPILOG = """\
Examples:

$ moldau up  (broker, registry, REST Proxy and console; data in ./moldau-data)

$ moldau up --ephemeral --port-offset 10000  (nothing is kept; 19092, 18081, 18082, 19021)

$ moldau up --only broker,registry

$ moldau up --config moldau.toml

$ moldau up --demo  (with a made-up shop and two streams applications, see `moldau demo`)

$ moldau up --bootstrap-servers kafka.example:9092  (registry, REST Proxy and console of another Kafka)
"""


def cli(
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Where topics are kept: ./moldau-data.")] = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="Keep nothing.")] = False,
    port_offset: Annotated[int | None, typer.Option(min=-8000, max=56000, help="Added to every port.")] = None,
    only: Annotated[str, typer.Option(metavar="PART,...", help=f"Start these alone: {', '.join(PARTS)}.")] = "",
    bootstrap_servers: Annotated[
        str | None, typer.Option(metavar="HOST:PORT,...", help="Use this Kafka, and start no broker.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the broker; repeatable.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="These options and settings of parts, in TOML.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Let a made-up shop write records, and streams applications read them.")
    ] = False,
) -> None:
    """Run the platform on the usual ports of this machine.

    When everything serves it prints a table of addresses, and `ready`; the console follows a moment later. `moldau
    logs` shows what the parts write, `moldau status` how they are. Ctrl-C, SIGTERM and `moldau down` stop all parts in
    order; a part that crashes is started again.
    """
    asked = tuple(name.strip() for name in only.split(",") if name.strip())
    with mistakes_told("up"):
        told = up_file.read(config) if config else Options()
        options = replace(
            told,
            data_dir=data_dir or told.data_dir,
            ephemeral=ephemeral or told.ephemeral or (demo and not (data_dir or told.data_dir)),
            port_offset=told.port_offset if port_offset is None else port_offset,
            only=asked or told.only,
            bootstrap_servers=bootstrap_servers or told.bootstrap_servers,
            overrides=tuple(overrides or ()),
            demo=tuple(DEMO) if demo else (),
        )
        run(options)


@contextmanager
def mistakes_told(command: str) -> Iterator[None]:
    """A sentence and an exit code for a platform that cannot run."""
    try:
        yield
    except (PlatformError, Mistake) as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"moldau {command}: {error}", markup=False)
        raise typer.Exit(FAILED) from None


def run(options: Options) -> None:
    """Until a signal; PlatformError where a part cannot run, or a platform runs there already."""
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False, soft_wrap=True)
    refuse_second(options)
    options = without_what_lacks_java(options, errors.print)
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    started = time.time()

    def note(now: Platform) -> None:
        parts = tuple(running_platforms.RunningPart(part.name, part.address, part.process.pid) for part in now.parts)
        record.write(running_platforms.Run(os.getpid(), str(now.options.home), str(now.logs), started, parts))

    with running_platforms.Record() as record, Platform(options, errors.print, note).running() as platform:
        console.print(_table(platform))
        console.print(f"logs are in {platform.logs}; `moldau logs -f` shows them", soft_wrap=True, markup=False)
        for line in advice(platform):
            console.print(line, soft_wrap=True, markup=False)
        console.print("ready")
        platform.look_after(told.is_set)


def without_what_lacks_java(options: Options, tell: Callable[[str], None]) -> Options:
    """The demonstration goes on without its streams applications where Spark cannot run; the reason is told."""
    if "pipeline" not in options.demo:
        return options
    from moldau.spark.session import java

    try:
        require_spark()
        java.prepare()
        return options
    except (NotInstalled, java.NoJava) as error:
        tell(f"The demo goes on without its streams applications. {error}")
    return replace(options, demo=tuple(name for name in options.demo if name != "pipeline"))


def advice(platform: Platform) -> Iterator[str]:
    """What to look at while the demonstration runs."""
    if not platform.options.demo:
        return
    addresses = {part.name: part.address for part in platform.parts}
    if "console" in addresses:
        yield f"watch it in a browser: {addresses['console']}"
    topic = "shop.orders-enriched" if "pipeline" in addresses else "shop.orders"
    where = "" if not platform.options.port_offset else f" -b {addresses['broker']} -r {addresses['registry']}"
    yield f"watch it in a terminal: moldau consume {topic} -s avro{where}"
    yield "Ctrl-C ends it"


def refuse_second(options: Options) -> None:
    """PlatformError if a platform runs on the same directory."""
    if options.ephemeral:
        return
    there = running_platforms.find(str(options.home))
    if there is not None:
        where = ", ".join(f"{part.name} {part.address}" for part in there.parts)
        raise PlatformError(
            f"A platform runs on {options.home} already, as process {there.pid} ({where}). `moldau status` shows it, "
            "`moldau down` stops it, --data-dir takes another directory."
        )


def _table(platform: Platform) -> Table:
    table = Table("part", "address", "for")
    for part in platform.parts:
        coming = "" if part.is_ready else " (coming up)"
        table.add_row(part.name, part.address, EVERY[part.name].what + coming)
    return table
