"""Long runs: `python -m tests.streams.judge --examples 1000 --topology count --topology stream_join`; all without
--topology. `--page` writes docs/streams-judge.md of what was found.
"""

from __future__ import annotations

import argparse
import sys

from tests.streams.judge.jvm import kafka_streams
from tests.streams.judge.page import write
from tests.streams.judge.topologies import TOPOLOGIES
from tests.streams.judge.trial import CACHED, IN_MEMORY, ON_DISK, Outcome, described_otherwise, trial

STORES = {"memory": [IN_MEMORY], "disk": [ON_DISK], "both": [IN_MEMORY, ON_DISK], "cached": [CACHED]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.streams.judge", description=__doc__)
    parser.add_argument("--examples", type=int, default=300, help="random inputs for each topology (300)")
    parser.add_argument("--topology", action="append", choices=sorted(TOPOLOGIES), metavar="NAME", default=[])
    parser.add_argument("--stores", choices=sorted(STORES), default="both", help="where stores are (both)")
    parser.add_argument("--seed", type=int, help="the same inputs again")
    parser.add_argument("--page", action="store_true", help="write docs/streams-judge.md")
    given = parser.parse_args()
    outcomes = list[Outcome]()
    with kafka_streams() as kafka:
        for name in given.topology or TOPOLOGIES:
            outcome = trial(kafka, name, given.examples, STORES[given.stores], given.seed)
            text = described_otherwise(kafka, name)
            outcomes.append(Outcome(name, outcome.examples, outcome.seconds, outcome.difference or text))
            told = outcome.difference or text or "equal"
            print(f"{name}: {outcome.examples} examples in {outcome.seconds:.1f} s: {told}", flush=True)
    if given.page:
        write(outcomes)
    different = [outcome.topology for outcome in outcomes if outcome.difference]
    print(f"{len(outcomes)} topologies, {len(different)} differ: {', '.join(different) or 'none'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
