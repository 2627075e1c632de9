"""`python -m tests.conformance.differential`: play all scripts, or those named, and say what differs.

With `--record`, keep what Kafka answers for the comparison in `make test`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests import needs
from tests.conformance.differential.suite import NEEDS, record_all, run
from tests.conformance.outcome import Verdict


def main(names: list[str]) -> int:
    lacking = needs.missing(NEEDS)
    if lacking:
        print(f"needs {lacking.tool}: {lacking.reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="moldau-differential-") as folder:
        if names == ["--record"]:
            failures = record_all(Path(folder))
            print(*failures, sep="\n")
            return int(bool(failures))
        return int(any(outcome.verdict is Verdict.FAILED for outcome in list(run(Path(folder), names))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
