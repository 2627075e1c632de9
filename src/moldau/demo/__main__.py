"""The parts of the demo as processes: `python -m moldau.demo shop` and `... pipeline`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Sequence

from moldau.spark.stdin import end_with_stdin

LARGEST_RATE = 10_000.0
GRACE_S = 20.0
FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a part: print `ready` when it works, and end with stdin, as every part of the platform does."""
    parser = argparse.ArgumentParser(prog="python -m moldau.demo")
    parser.add_argument("part", choices=("shop", "pipeline"))
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--schema-registry", dest="registry", required=True)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stop-with-stdin", action="store_true")
    given = parser.parse_args(arguments)
    if not 0 < given.rate <= LARGEST_RATE:
        parser.error(f"--rate is a number of events a second, up to {LARGEST_RATE:.0f}")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=FORMAT)
    if given.stop_with_stdin:
        end_with_stdin(GRACE_S)
    (_shop if given.part == "shop" else _pipeline)(given)


def _shop(given: argparse.Namespace) -> None:
    from moldau.demo.feed import Feed, run

    run(Feed(given.bootstrap_servers, given.registry, given.rate, given.seed), _stopped(), _ready)


def _pipeline(given: argparse.Namespace) -> None:
    """Deploy the applications, and stay: a part of the platform that ends is started again."""
    from moldau.demo.applications import deploy

    stopped = _stopped()
    for sentence in deploy(given.bootstrap_servers, given.registry):
        logging.warning(sentence)
    _ready()
    stopped.wait()


def _stopped() -> threading.Event:
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


def _ready() -> None:
    sys.stdout.write("ready -\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
