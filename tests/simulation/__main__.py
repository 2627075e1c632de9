"""`make simulate`: ten thousand worlds on two processes.

Usage: python -m tests.simulation [SEED]. In the environment: FIRST=n, COUNT=n, PROCESSES=n.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from multiprocessing import Pool

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.simulation.run import Outcome, run

COUNT = 10_000
PROCESSES = int(os.environ.get("PROCESSES", "2"))
SHOWN_FAILURES = 3

console = Console()


def main(arguments: list[str]) -> int:
    if arguments:
        return show_one(int(arguments[0]))
    first, count = int(os.environ.get("FIRST", "1")), int(os.environ.get("COUNT", str(COUNT)))
    began = time.monotonic()
    counts, failures = run_all(range(first, first + count))
    console.print(summary(counts, count, time.monotonic() - began))
    for failure in failures[:SHOWN_FAILURES]:
        console.print(failure, markup=False, highlight=False)
    seeds = ", ".join(failure.split()[1] for failure in failures)
    console.print(f"{len(failures)} of {count} seeds failed: {seeds}" if failures else f"all {count} seeds are well")
    return 1 if failures else 0


def show_one(seed: int) -> int:
    """One world, event by event."""
    logging.basicConfig(level=logging.WARNING, format="           %(message)s", stream=sys.stdout)
    outcome = run(seed, print)
    print(outcome.failure or f"seed {seed} is well")
    print(f"trace {outcome.digest}")
    return 1 if outcome.failure else 0


def quietly(seed: int) -> Outcome:
    logging.disable(logging.CRITICAL)
    return run(seed)


def run_all(seeds: range) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    failures: list[str] = []
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Pool(PROCESSES) as pool, Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(seeds))
        for outcome in pool.imap_unordered(quietly, seeds, chunksize=20):
            counts += outcome.counts
            failures += [outcome.failure] if outcome.failure else []
            progress.update(task, advance=1, description=f"[red]{len(failures)} failed" if failures else "")
    return counts, sorted(failures, key=lambda failure: int(failure.split()[1]))


def summary(counts: Counter[str], seeds: int, seconds: float) -> Table:
    """What happened in all of the worlds: faults that never occur test nothing."""
    table = Table(title=f"{seeds} worlds in {seconds:.0f} s, {seeds / seconds:.1f} a second")
    table.add_column("what")
    table.add_column("times", justify="right")
    for what, times in sorted(counts.items(), key=lambda pair: -pair[1]):
        table.add_row(what, f"{times:,}")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
