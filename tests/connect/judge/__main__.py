"""`make judge-connect`: every subject with many random items; `--only NAME`, `--items N`, `--seed N`."""

from __future__ import annotations

import argparse
import sys

from tests.connect.judge.jvm import connect
from tests.connect.judge.subjects import SUBJECTS
from tests.connect.judge.trial import trial

SHOWN = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    differing = 0
    with connect() as judge:
        for name in SUBJECTS:
            if options.only and not name.startswith(options.only):
                continue
            result = trial(judge, name, options.items, options.seed)
            print(f"{name:28} {dict(sorted(result.seen.items()))}", flush=True)
            for difference in result.differences[:SHOWN]:
                print(difference, flush=True)
            differing += len(result.differences)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
