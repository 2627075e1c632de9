"""`python -m tests.spark.brokers` (part of `make conformance`): these tests on Moldau's broker and on Apache Kafka.

It writes docs/spark-conformance.md, and ends with exit code 1 if a test failed. Without Kafka's jars the page says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from moldau.testing import broker
from tests import needs
from tests.conformance.differential.brokers import apache_kafka

PAGE = needs.ROOT / "docs" / "spark-conformance.md"
TESTS = "tests/spark"
RUN_S = 3600
HEAD = """# Spark on two brokers

`make conformance` runs the tests of the Spark bridge (`tests/spark`) on `moldau broker` and on Apache Kafka 4.3.1, and
writes this page. Tests that kill or restart a broker do that to one of Moldau's in both runs.

| broker | passed | failed | skipped | seconds |
|---|---|---|---|---|
"""


@dataclass(slots=True)
class Run:
    """The tests on one broker."""

    name: str
    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> str:
        counts = " | ".join(str(self.verdicts[name]) for name in ("passed", "failed", "skipped"))
        return f"| {self.name} | {counts} | {self.seconds:.0f} |"


@contextmanager
def moldau(folder: Path) -> Iterator[str]:
    with broker() as started:
        yield started.bootstrap_servers


@contextmanager
def kafka(folder: Path) -> Iterator[str]:
    libs = needs.find("kafka-jars").path
    assert libs is not None
    with apache_kafka(Path(libs), folder) as started:
        yield f"127.0.0.1:{started.port}"


BROKERS = {"Moldau": moldau, "Apache Kafka 4.3.1": kafka}


def tested(name: str, bootstrap: str, folder: Path, chosen: list[str]) -> Run:
    """Run the tests, and read pytest's report."""
    report, began = folder / "junit.xml", time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n0", f"--junitxml={report}", *(chosen or [TESTS])]
    own = {**os.environ, "CONFORMANCE_BOOTSTRAP": bootstrap}
    subprocess.run(command, cwd=needs.ROOT, env=own, check=False, timeout=RUN_S)
    run = Run(name, seconds=time.monotonic() - began)
    for case in xml.parse(report).iter("testcase"):
        found = {child.tag for child in case} & {"failure", "error", "skipped"}
        verdict = "passed" if not found else "skipped" if found == {"skipped"} else "failed"
        run.verdicts[verdict] += 1
        if verdict == "failed":
            run.failures.append(f"{case.get('classname')}::{case.get('name')}")
    return run


def page(runs: list[Run]) -> str:
    lines = [HEAD + "\n".join(run.row() for run in runs)]
    if len(runs) < len(BROKERS):
        lines.append("There was no Apache Kafka: its jars were not to be had.")
    lines += [
        f"On {run.name} failed: {', '.join(f'`{name}`' for name in run.failures)}." for run in runs if run.failures
    ]
    return "\n\n".join(lines) + "\n"


def main(chosen: list[str]) -> int:
    runs: list[Run] = []
    for name, started in BROKERS.items():
        if name != "Moldau" and not needs.find("kafka-jars").path:
            continue
        with tempfile.TemporaryDirectory(prefix="moldau-spark-") as folder, started(Path(folder)) as bootstrap:
            runs.append(tested(name, bootstrap, Path(folder), chosen))
        print(runs[-1].row(), *runs[-1].failures, sep="\n", flush=True)
    if not chosen:
        PAGE.write_text(page(runs))
    return int(any(run.verdicts["failed"] for run in runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
