"""`python -m tests.conformance.cluster` (part of `make conformance`): Moldau and Apache Kafka in one cluster."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import needs
from tests.conformance.cluster.conftest import WANTED

RUN_S = 3600


def main() -> int:
    """Return the exit code of the tests. They run one after the other: each cluster is up to three JVMs."""
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "tests/conformance/cluster", *sys.argv[1:]]
    environment = {**os.environ, WANTED: "1"}
    return subprocess.run(command, cwd=needs.ROOT, env=environment, check=False, timeout=RUN_S).returncode


if __name__ == "__main__":
    sys.exit(main())
