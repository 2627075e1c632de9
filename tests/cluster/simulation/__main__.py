"""`make simulate-cluster`: many clusters on two processes, or the history of one.

Usage: python -m tests.cluster.simulation [SEED...] [--seeds N] [--first N] [--processes N]
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from multiprocessing import Pool

from tests.cluster.simulation.process import Process
from tests.cluster.simulation.run import Outcome, run

SHOWN_FAILURES = 3


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Simulate clusters.")
    parser.add_argument("seed", nargs="*", type=int, help="Print the history of this seed.")
    parser.add_argument("--seeds", type=int, default=2000, help="Run this many seeds.")
    parser.add_argument("--first", type=int, default=1, help="Begin with this seed.")
    parser.add_argument("--processes", type=int, default=2, help="Run on this many processes.")
    chosen = parser.parse_args(arguments)
    if chosen.seed:
        return max(show_one(seed) for seed in chosen.seed)
    return run_all(range(chosen.first, chosen.first + chosen.seeds), chosen.processes)


def show_one(seed: int) -> int:
    """Print one world, event by event."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(NodeLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    outcome = run(seed, print)
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


def quietly(seed: int) -> Outcome:
    logging.disable(logging.CRITICAL)
    return run(seed)


def run_all(seeds: range, processes: int) -> int:
    counts: Counter[str] = Counter()
    failures: list[str] = []
    began = time.monotonic()
    with Pool(processes) as pool:
        for outcome in pool.imap_unordered(quietly, seeds, chunksize=4):
            counts += outcome.counts
            if outcome.failure is not None:
                failures.append(outcome.failure)
                print("\n".join(outcome.failure.splitlines()[:3]), flush=True)
    seconds = time.monotonic() - began
    for what, times in sorted(counts.items(), key=lambda pair: -pair[1]):
        print(f"{times:>10,}  {what}")
    for failure in sorted(failures)[:SHOWN_FAILURES]:
        print(failure)
    print(f"{len(failures)} of {len(seeds)} seeds failed, {len(seeds) / seconds:.1f} a second")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
