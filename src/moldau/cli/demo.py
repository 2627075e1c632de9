"""`moldau demo`: runs the platform with a made-up shop."""

from __future__ import annotations

from moldau.cli.options import epilog, option
from moldau.cli.up import report_mistakes, run
from moldau.platform import DEMO, Options

EPILOG = epilog(
    "moldau demo",
    "moldau demo --rate 200 --port-offset 10000",
    "moldau demo --data-dir ./demo  (keeps the data for the next start)",
)


def cli(
    data_dir: str | None = option("--data-dir", "Keep topics and state in this directory.", metavar="DIR"),
    port_offset: int = option("--port-offset", "Add this to every port.", 0, min=-8000, max=56000),
    rate: float = option("--rate", "Average number of events a second.", 20.0, min=0.1, max=10_000),
) -> None:
    """Run the platform with a made-up shop: orders, payments and clicks, and two streams applications.

    Customers, clicks, orders and payments are Avro records with schemas in the registry, in topics named `shop.*`. One
    application counts clicks of pages in windows of ten seconds, the other joins orders with their customers. Both are
    deployed to the platform's worker, on Spark; without Java they are left out. Ctrl-C stops the demo; without
    --data-dir no data is kept.
    """
    with report_mistakes("demo"):
        run(Options(data_dir, data_dir is None, port_offset, demo=tuple(DEMO), demo_rate=rate))
