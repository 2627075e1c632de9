"""`python -m tests.console.browser` (part of `make conformance`): these tests on Apache Kafka instead of Moldau."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import needs
from tests.conformance.differential.brokers import apache_kafka
from tests.console.browser.shop import AUTHORIZER

RUN_S = 1200


def main() -> int:
    """The exit code of the tests; 0 where there is no Kafka, which is told."""
    libs = needs.find("kafka-jars").path
    if libs is None:
        print("The console is not tried on Apache Kafka: its jars are not to be had.")
        return 0
    with tempfile.TemporaryDirectory() as folder, apache_kafka(Path(libs), Path(folder), AUTHORIZER) as kafka:
        own = {**os.environ, "CONFORMANCE_BOOTSTRAP": f"127.0.0.1:{kafka.port}"}
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "tests/console/browser", *sys.argv[1:]]
        return subprocess.run(command, cwd=needs.ROOT, env=own, check=False, timeout=RUN_S).returncode


if __name__ == "__main__":
    sys.exit(main())
