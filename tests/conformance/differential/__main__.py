"""`python -m tests.conformance.differential`: play all scripts, or those named, and tell what differs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests import needs
from tests.conformance.differential.suite import NEEDS, run
from tests.conformance.outcome import Verdict


def main(names: list[str]) -> int:
    lacking = needs.missing(NEEDS)
    if lacking:
        print(f"needs {lacking.tool}: {lacking.reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="moldau-differential-") as folder:
        return int(any(outcome.verdict is Verdict.FAILED for outcome in list(run(Path(folder), names))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
