"""`moldau demo`: the platform with something going on in it."""

from __future__ import annotations

from typing import Annotated

import typer

from moldau.cli.up import mistakes_told, run
from moldau.platform import DEMO, Options

EPILOG = """\
Examples:

$ moldau demo

$ moldau demo --rate 200 --port-offset 10000

$ moldau demo --data-dir ./demo  (what it wrote is there at the next start)
"""


def cli(
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="Keep topics and state here.")] = None,
    port_offset: Annotated[int, typer.Option(min=-8000, max=56000, help="Added to every port.")] = 0,
    rate: Annotated[float, typer.Option(min=0.1, max=10_000, help="Events a second, in the mean.")] = 20.0,
) -> None:
    """Run the platform with a made-up shop: orders, payments and clicks, and two streams applications.

    Customers, clicks, orders and payments are Avro by the registry, in topics under `shop.`. One application counts
    clicks of pages in windows of ten seconds, the other joins orders with their customers; both run on Spark, and are
    left out with a word where there is no Java. Ctrl-C ends it, and nothing is kept without --data-dir.
    """
    with mistakes_told("demo"):
        run(Options(data_dir, data_dir is None, port_offset, demo=tuple(DEMO), demo_rate=rate))
