"""`moldau up`: runs the platform until it is stopped."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from moldau.admin.mistakes import FAILED, Mistake
from moldau.cli import running_platforms, up_file
from moldau.cli.options import epilog, flag, option
from moldau.extras import NotInstalled, require_spark
from moldau.platform import DEMO, PARTS, Options, Platform, PlatformError, part_of

EPILOG = epilog(
    "moldau up  (broker, registry, REST Proxy, Connect and console; data in ./moldau-data)",
    "moldau up --ephemeral --port-offset 10000  (keeps no data; ports 19092, 18081, 18082, 18083, 19021)",
    "moldau up --brokers 3  (three brokers that replicate, on ports 9092 to 9094)",
    "moldau up --only broker,registry",
    "moldau up --config moldau.toml",
    "moldau up --demo  (with a made-up shop and two streams applications, see `moldau demo`)",
    "moldau up --bootstrap-servers kafka.example:9092  (registry, REST Proxy and console of another Kafka)",
)


SECURED = Path("moldau-secure") / "moldau.toml"  # of `moldau secure init` in this directory


def cli(
    data_dir: str | None = option("--data-dir", "Directory of the topics. (./moldau-data)", metavar="DIR"),
    ephemeral: bool = flag("--ephemeral", "Keep no data after the end."),
    port_offset: int | None = option("--port-offset", "Add this to every port.", min=-8000, max=56000),
    only: str = option("--only", f"Start only these parts: {', '.join(PARTS)}.", "", metavar="PART,..."),
    brokers: int | None = option("--brokers", "Run this many brokers as one cluster. (1)", min=1, metavar="N"),
    bootstrap_servers: str | None = option(
        "--bootstrap-servers", "Use this Kafka instead of starting a broker.", metavar="HOST:PORT,..."
    ),
    overrides: list[str] | None = option("--set", "Set a setting of the broker; repeatable.", metavar="KEY=VALUE"),
    config: Path | None = option(
        "--config",
        "TOML file with these options and with settings of the parts. (moldau-secure/moldau.toml, if it is there)",
        metavar="FILE",
    ),
    demo: bool = flag("--demo", "Run a made-up shop that writes records, and streams applications that read them."),
) -> None:
    """Run the platform on the usual ports of this machine.

    When all parts accept connections it prints their addresses and `ready`; the console follows a moment later.
    `moldau logs` shows the logs of the parts, `moldau status` their states. Ctrl-C, SIGTERM and `moldau down` stop all
    parts in order; a part that crashes is restarted.
    """
    parts = tuple(name.strip() for name in only.split(",") if name.strip())
    with report_mistakes("up"):
        config = config or (SECURED if SECURED.exists() else None)
        given = up_file.read(config) if config else Options()
        options = replace(
            given,
            data_dir=data_dir or given.data_dir,
            ephemeral=ephemeral or given.ephemeral or (demo and not (data_dir or given.data_dir)),
            port_offset=given.port_offset if port_offset is None else port_offset,
            only=parts or given.only,
            broker_count=brokers or given.broker_count,
            bootstrap_servers=bootstrap_servers or given.bootstrap_servers,
            overrides=tuple(overrides or ()),
            demo=tuple(DEMO) if demo else (),
        )
        run(options)


@contextmanager
def report_mistakes(command: str) -> Iterator[None]:
    """Print a sentence and exit with a code if the platform cannot run."""
    try:
        yield
    except (PlatformError, Mistake) as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"moldau {command}: {error}", markup=False)
        raise typer.Exit(FAILED) from None


def run(options: Options) -> None:
    """Run until a signal; PlatformError if a part cannot run, or another platform uses the directory."""
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False, soft_wrap=True)
    refuse_second(options)
    options = without_what_lacks_java(options, errors.print)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    started = time.time()

    def note(now: Platform) -> None:
        parts = tuple(
            running_platforms.RunningPart(part.name, part.address, part.process.pid, part.is_ready, part.is_idle)
            for part in now.parts
        )
        record.write(running_platforms.Run(os.getpid(), str(now.options.home), str(now.logs), started, parts))

    with running_platforms.Record() as record, Platform(options, errors.print, note).running() as platform:
        console.print(_table(platform))
        if options.secure:
            console.print(f"secured by {options.secure}", soft_wrap=True, markup=False)
        console.print(f"logs are in {platform.logs}; `moldau logs -f` shows them", soft_wrap=True, markup=False)
        for line in advice(platform):
            console.print(line, soft_wrap=True, markup=False)
        console.print("ready")
        platform.look_after(stopped.is_set)


def without_what_lacks_java(options: Options, tell: Callable[[str], None]) -> Options:
    """Leave the streams applications out of the demo if Spark cannot run, and say why."""
    if "pipeline" not in options.demo:
        return options
    from moldau.spark.session import java

    try:
        require_spark()
        java.prepare()
        if "worker" in (options.only or PARTS):
            return options
        tell("The demo runs without its streams applications: the worker is not among the parts of --only.")
    except (NotInstalled, java.NoJava) as error:
        tell(f"The demo runs without its streams applications. {error}")
    return replace(options, demo=tuple(name for name in options.demo if name != "pipeline"))


def advice(platform: Platform) -> Iterator[str]:
    """Yield lines that say how to watch the demo."""
    if not platform.options.demo:
        return
    addresses = {part.name: part.address for part in platform.parts}
    if "console" in addresses:
        yield f"watch it in a browser: {addresses['console']}"
    topic = "shop.orders-enriched" if "pipeline" in addresses else "shop.orders"
    where = "" if not platform.options.port_offset else f" -b {addresses['broker']} -r {addresses['registry']}"
    yield f"watch it in a terminal: moldau consume {topic} -s avro{where}"
    yield "stop it with Ctrl-C"


def refuse_second(options: Options) -> None:
    """Raise PlatformError if a platform uses the same directory."""
    if options.ephemeral:
        return
    other = running_platforms.find(str(options.home))
    if other is not None:
        where = ", ".join(f"{part.name} {part.address}" for part in other.parts)
        raise PlatformError(
            f"A platform is using {options.home} already, process {other.pid} ({where}). `moldau status` shows it, "
            "`moldau down` stops it, --data-dir names another directory."
        )


def _table(platform: Platform) -> Table:
    table = Table("part", "address", "for")
    for part in platform.parts:
        coming = "" if part.is_ready else " (starting)"
        table.add_row(part.name, part.address, part_of(part.name).what + coming)
    return table
