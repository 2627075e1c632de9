"""Where the benchmarks keep things, and the one kind of fault that they report in a sentence."""

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
CACHE = PROJECT / ".cache" / "bench"  # the compiled client, results, the brokers' data while they run

PORT = int(os.environ.get("BENCH_PORT", "32092"))  # and the next eight; below the range of client sockets


def script(name: str) -> tuple[str, str]:
    """How Python is told to run a file of ours by itself. Without -P our modules would stand before those of Python
    (`platform`), also in an environment that has nothing of ours.
    """
    return "-P", str(PROJECT / "benchmarks" / name)


class BenchError(Exception):
    """Something a user can mend, or a run that failed; its text is a whole sentence."""
