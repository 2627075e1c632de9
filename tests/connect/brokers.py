"""`python -m tests.connect.brokers [TESTS]` (part of `make conformance`): these tests on Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import needs
from tests.conformance.differential.brokers import apache_kafka
from tests.connect.running import BROKER

RUN_S = 3600
ONE_PARTITION = {"num.partitions": "1"}  # of topics that come to be, as on the broker of the tests


def main(chosen: list[str]) -> int:
    found = needs.find("kafka-jars")
    if found.path is None:
        print(f"left out: there is no Apache Kafka here ({found.reason})")
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="kafka-") as folder,
        apache_kafka(found.path, Path(folder), {**BROKER, **ONE_PARTITION}) as kafka,
    ):
        command = [sys.executable, "-m", "pytest", "-q", *(chosen or ["tests/connect"])]
        own = {**os.environ, "CONFORMANCE_BOOTSTRAP": f"127.0.0.1:{kafka.port}"}
        return subprocess.run(command, cwd=needs.ROOT, env=own, check=False, timeout=RUN_S).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
