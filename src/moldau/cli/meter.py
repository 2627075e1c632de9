"""Measures rates and latencies: prints a live plot on a terminal, otherwise a line a second; a histogram at the end."""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moldau.cli.output import size

BARS = "▁▂▃▄▅▆▇█"
SHOWN_S = 60
WIDE = 40
# Bounds of the histogram in ms: 1, 2 and 5 of each power of ten.
BOUNDS = tuple(digit * 10.0**power for power in range(-2, 5) for digit in (1, 2, 5))
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


class Meter:
    """A meter of records, bytes and latencies, which reports once a second on stderr."""

    def __init__(self, what: str, unit: str = "records") -> None:
        self.what, self.unit = what, unit
        self.begin = self.reported = time.monotonic()
        self.records = self.bytes = 0
        self.seconds: list[int] = []  # records in each second so far
        self.latencies_ms: list[float] = []
        self._last = 0
        self._live: Any = None

    def add(self, records: int, size_bytes: int) -> None:
        self.records += records
        self.bytes += size_bytes
        if time.monotonic() - self.reported >= 1.0:
            self.report()

    def report(self) -> None:
        """Report the last second."""
        now = time.monotonic()
        rate = round((self.records - self._last) / max(now - self.reported, 1e-9))
        self.seconds.append(rate)
        self.reported, self._last = now, self.records
        line = f"{self.what}: {self.records:,} {self.unit}, {rate:,}/s"
        if self._live is not None:
            self._live.update(f"{line}\n{spark(self.seconds[-SHOWN_S:])}")
        else:
            print(line, file=sys.stderr)

    def facts(self) -> dict[str, Any]:
        """Return the result."""
        seconds = max(time.monotonic() - self.begin, 1e-9)
        result: dict[str, Any] = {
            self.unit: self.records,
            "bytes": self.bytes,
            "seconds": round(seconds, 3),
            f"{self.unit}_a_second": round(self.records / seconds),
            "bytes_a_second": round(self.bytes / seconds),
        }
        if self.latencies_ms:
            ordered = sorted(self.latencies_ms)
            result["latency_ms"] = {
                "average": round(sum(ordered) / len(ordered), 3),
                **{f"p{p:g}": round(percentile(ordered, p), 3) for p in PERCENTILES},
                "max": round(ordered[-1], 3),
            }
        return result

    def print_summary(self) -> None:
        """Print the result for people, with a histogram."""
        facts = self.facts()
        rate = facts[f"{self.unit}_a_second"]
        print(
            f"{self.records:,} {self.unit} ({size(self.bytes)}) in {facts['seconds']:.2f} s: "
            f"{rate:,} a second, {size(facts['bytes_a_second'])}/s"
        )
        if self.latencies_ms:
            latencies = ", ".join(f"{name} {value:g}" for name, value in facts["latency_ms"].items())
            print(f"latency in ms: {latencies}")
            sys.stdout.writelines(f"{line}\n" for line in histogram(self.latencies_ms))


@contextmanager
def measured(what: str, unit: str = "records") -> Iterator[Meter]:
    """Yield a meter that shows its plot while it runs."""
    meter = Meter(what, unit)
    if not sys.stderr.isatty():
        yield meter
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True, highlight=False), transient=True, refresh_per_second=4) as live:
        meter._live = live
        yield meter
        meter._live = None


def spark(values: Sequence[float]) -> str:
    """Draw a line of bars."""
    top = max(values, default=0) or 1
    return "".join(BARS[min(int(value / top * len(BARS)), len(BARS) - 1)] for value in values)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile by the nearest rank."""
    rank = max(0, -(-len(ordered) * percent // 100) - 1)
    return ordered[min(int(rank), len(ordered) - 1)]


def histogram(values_ms: Sequence[float]) -> Iterator[str]:
    """Yield a line for each range, from the first to the last that is not empty."""
    counts = [0] * (len(BOUNDS) + 1)
    for value in values_ms:
        counts[bisect_right(BOUNDS, value)] += 1
    used = [at for at, count in enumerate(counts) if count]
    top = max(counts)
    for at in range(used[0], used[-1] + 1) if used else ():
        low = 0 if at == 0 else BOUNDS[at - 1]
        high = f"{BOUNDS[at]:g}" if at < len(BOUNDS) else "..."
        bar = "█" * round(counts[at] / top * WIDE)
        yield f"{low:>7g} to {high:>6} ms  {counts[at] / len(values_ms):>6.1%}  {bar}"
