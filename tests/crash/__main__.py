"""`make crash`: a hundred times kill -9 under load, and ten times under Kafka Streams with either protocol.

Usage: python -m tests.crash [ROUNDS] [SEED]
"""

from __future__ import annotations

import random
import sys
import time

from rich.progress import track

from tests import needs
from tests.crash import word_count
from tests.crash.rounds import Trial

STREAMS_ROUNDS = 10


def main(rounds: int = 100, seed: int = 0) -> int:
    seed = seed or random.randrange(1, 10**6)
    print(f"seed {seed}")
    began = time.monotonic()
    with Trial(seed) as trial:
        for _ in track(range(rounds), description="kill -9"):
            trial.round()
        print(f"{rounds} crashes in {time.monotonic() - began:.0f} s, {trial.promised} records promised, none lost")
    lacking = needs.missing(word_count.NEEDS)
    if lacking:
        print(f"Kafka Streams is left out: {lacking.tool}: {lacking.reason}")
        return 0
    for protocol in word_count.PROTOCOLS:
        count_words(protocol, seed)
    return 0


def count_words(protocol: str, seed: int) -> None:
    libs = needs.find("kafka-jars").path
    assert libs is not None
    began = time.monotonic()
    with word_count.Trial(libs, protocol, seed) as trial:
        for _ in track(range(STREAMS_ROUNDS), description=f"kill -9 under Kafka Streams, {protocol} protocol"):
            trial.round()
        words = trial.expected.total()
    print(f"{STREAMS_ROUNDS} crashes in {time.monotonic() - began:.0f} s, {words} words, each counted once")


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
