"""`make simulate-cluster`: many clusters on two processes, or the history of one.

Usage: python -m tests.cluster.simulation [SEED...] [--seeds N] [--first N] [--processes N] [--focus PROFILE]
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from functools import partial
from multiprocessing import Pool

from tests.cluster.simulation.focus import PROFILES
from tests.cluster.simulation.process import Process
from tests.cluster.simulation.run import Outcome, run

SHOWN_FAILURES = 3
PROGRESS_S = 30.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Simulate clusters.")
    parser.add_argument("seed", nargs="*", type=int, help="Print the history of this seed.")
    parser.add_argument("--seeds", type=int, default=10_000, help="Run this many seeds.")
    parser.add_argument("--first", type=int, default=1, help="Begin with this seed.")
    parser.add_argument("--processes", type=int, default=2, help="Run on this many processes.")
    parser.add_argument("--focus", choices=PROFILES, help="Add the faults of this profile to those of each seed.")
    chosen = parser.parse_args(arguments)
    if chosen.seed:
        return max(show_one(seed, chosen.focus) for seed in chosen.seed)
    return run_all(range(chosen.first, chosen.first + chosen.seeds), chosen.processes, chosen.focus)


def show_one(seed: int, focus: str | None) -> int:
    """Print one world, event by event."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(NodeLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    outcome = run(seed, print, focus)
    print(outcome.failure or f"seed {seed} is well")
    print(f"trace {outcome.digest}")
    return 1 if outcome.failure else 0


class NodeLines(logging.Formatter):
    """Writes what a node logs: which node, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{key}={value}" for key, value in getattr(record, "fields", {}).items())
        process = Process.running
        now = process.clock.now if process is not None else 0.0
        return f"{now:10.2f}   {process}: {record.getMessage()} {fields}"


def quietly(seed: int, focus: str | None) -> tuple[Outcome, float]:
    """Run a seed without its logs; returns what came of it, and the seconds of CPU that it took."""
    logging.disable(logging.CRITICAL)
    began = time.process_time()
    return run(seed, focus=focus), time.process_time() - began


def run_all(seeds: range, processes: int, focus: str | None) -> int:
    counts: Counter[str] = Counter()
    failures: dict[int, str] = {}
    began = shown = time.monotonic()
    used = done = 0.0
    with Pool(processes) as pool:
        for outcome, cpu in pool.imap_unordered(partial(quietly, focus=focus), seeds, chunksize=4):
            counts += outcome.counts
            used, done = used + cpu, done + 1
            if outcome.failure is not None:
                failures[outcome.seed] = outcome.failure
                print("\n".join(outcome.failure.splitlines()[:3]), flush=True)
            if time.monotonic() - shown > PROGRESS_S:
                shown = time.monotonic()
                left = (shown - began) * (len(seeds) - done) / done
                print(f"{done:,.0f} seeds, {len(failures)} failed, {left / 60:.0f} minutes left", flush=True)
    summarize(seeds, counts, failures)
    print(f"{time.monotonic() - began:.0f} s, {used / len(seeds):.2f} s of CPU for a seed")
    return 1 if failures else 0


def summarize(seeds: range, counts: Counter[str], failures: dict[int, str]) -> None:
    """Print what happened, the first failures, and the seeds of all."""
    for what, times in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(f"{times:>10,}  {what}")
    for seed in sorted(failures)[:SHOWN_FAILURES]:
        print(failures[seed])
    print(f"{len(failures)} of {len(seeds):,} seeds failed" + (f": {sorted(failures)}" if failures else ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
