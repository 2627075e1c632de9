"""What the rim counts: plain numbers, so that counting costs next to nothing. metrics.py reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

TIMES = 65


@dataclass(slots=True)
class Counters:
    """`times[n]` counts requests that took less than 2**n * 1.024 microseconds (and not less than half of it)."""

    bytes_in: int = 0
    bytes_out: int = 0
    accepted: int = 0
    times: list[int] = field(default_factory=lambda: [0] * TIMES)
    refused: Counter[str] = field(default_factory=Counter[str])

    def add_time(self, nanoseconds: int, requests: int) -> None:
        """Count the requests of one wake-up with their mean: reading the clock for each would cost too much."""
        self.times[(nanoseconds // requests >> 10).bit_length()] += requests
