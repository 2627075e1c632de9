"""`make judge-connect`: every subject with many random items.

`--only NAME`, `--after NAME`, `--items N` and `--seed N` choose among them.
"""

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
    parser.add_argument("--after", default="", help="begin with the subject that comes after this one")
    options = parser.parse_args()
    differing = 0
    names = list(SUBJECTS)
    with connect() as judge:
        for name in names[names.index(options.after) + 1 if options.after else 0 :]:
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
