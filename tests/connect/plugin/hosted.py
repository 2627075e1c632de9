"""A worker with one Java plugin, on this machine or on a standalone Spark master."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.connect.chaos import JSON
from tests.connect.running import settings
from tests.connect.spark import ON_LOOPBACK
from tests.connect.workers import Workers, workers
from tests.needs import find
from tests.spark.cluster import cluster

MACHINE, SPARK = PLACES = ("machine", "spark")
PATIENCE_S = 240.0


@contextmanager
def hosting(tool: str, bootstrap_servers: str, folder: Path, place: str) -> Iterator[Workers]:
    """Run a worker that has the plugin which tests/needs.toml calls `tool`."""
    plugin, libs = (find(name) for name in (tool, "connect-jars"))
    assert plugin.path is not None and libs.path is not None, plugin.reason or libs.reason
    worker: Mapping[str, Any] = settings(bootstrap_servers)
    worker |= {"key.converter": JSON, "value.converter": JSON}
    worker |= {"plugin.path": str(plugin.path), "moldau.plugin.libs": str(libs.path)}
    options: tuple[str, ...] = ()
    with ExitStack() as stack:
        if place == SPARK:
            worker |= ON_LOOPBACK
            options = ("--spark-master", stack.enter_context(cluster(folder)))
        yield stack.enter_context(workers(1, bootstrap_servers, worker, *options))


def check(group: Workers, name: str) -> None:
    """Fail with the trace if a task has failed."""
    answer = group.ask("GET", f"/connectors/{name}/status")
    assert answer is None or '"FAILED"' not in answer.text, answer.text


def restart(group: Workers) -> None:
    """End the worker in order, and start it again."""
    worker = group.services[0]
    assert worker is not None
    worker.stop()
    group.start(0)


def each(about: str | None, names: Sequence[str], run: Callable[[str, str], str]) -> int:
    """Run what the command line names, by default everything, in each place; print what comes of it."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("names", nargs="*", default=names)
    parser.add_argument("--place", choices=PLACES, action="append", help="only here (repeatable)")
    chosen = parser.parse_args()
    for place in chosen.place or PLACES:
        for name in chosen.names:
            print(run(name, place), flush=True)
    return 0
