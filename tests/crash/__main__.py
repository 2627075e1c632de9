"""`make crash`: a hundred times kill -9 under load. Usage: python -m tests.crash [ROUNDS] [SEED]"""

from __future__ import annotations

import random
import sys
import time

from rich.progress import track

from tests.crash.rounds import Trial


def main(rounds: int = 100, seed: int = 0) -> int:
    seed = seed or random.randrange(1, 10**6)
    print(f"seed {seed}")
    began = time.monotonic()
    with Trial(seed) as trial:
        for _ in track(range(rounds), description="kill -9"):
            trial.round()
        print(f"{rounds} crashes in {time.monotonic() - began:.0f} s, {trial.promised} records promised, none lost")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
