"""Kafka Streams' word count with exactly_once_v2 on three brokers, one of which is killed again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests import needs
from tests.conformance.outcome import Outcome, Verdict
from tests.crash.word_count import NEEDS, PROTOCOLS, Trial

__all__ = ["NEEDS", "SUITE", "run"]

SUITE = "streams"
KILLS = 30
BROKERS = 3


def run(work: Path, wanted: Sequence[str], told: Callable[[str], None]) -> Iterator[Outcome]:
    """Count words with either protocol; what was counted is checked after each kill."""
    libs = needs.find("kafka-jars").path
    assert libs is not None
    for protocol in wanted or PROTOCOLS:
        yield count_words(libs, protocol, told)


def count_words(libs: Path, protocol: str, told: Callable[[str], None]) -> Outcome:
    name = f"word count through {KILLS} kills, {protocol} protocol"
    with Trial(libs, protocol, brokers=BROKERS) as trial:
        for number in range(1, KILLS + 1):
            try:
                trial.round()
            except AssertionError as error:
                return Outcome(name, Verdict.FAILED, f"kill {number}: {str(error).splitlines()[0]}")
            told(f"{protocol}: kill {number}, {trial.expected.total()} words, each counted once")
    return Outcome(name, Verdict.PASSED)
