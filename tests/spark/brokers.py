"""`python -m tests.spark.brokers` (part of `make conformance`): these tests on Moldau's broker and on Apache Kafka.

It writes docs/spark-conformance.md, and ends with exit code 1 if a test failed. `--on kafka` runs them on one of the
brokers; the row of the other one stays. `--standalone` runs them on a Spark master with two workers of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from moldau.testing import broker
from tests import needs
from tests.conformance.differential.brokers import apache_kafka
from tests.spark import tables
from tests.spark.cluster import cluster
from tests.spark.conftest import MASTER

PAGE = needs.ROOT / "docs" / "spark-conformance.md"
TESTS = "tests/spark"
RUN_S = 3600
HEAD = ("broker", "passed", "failed", "skipped", "seconds", "which failed")


@dataclass(slots=True)
class Run:
    """The tests on one broker."""

    name: str
    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cells(self) -> list[object]:
        counts = [self.verdicts[name] for name in ("passed", "failed", "skipped")]
        return [self.name, *counts, round(self.seconds), ", ".join(f"`{name}`" for name in self.failures)]


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


BROKERS = {"moldau": ("Moldau", moldau), "kafka": ("Apache Kafka 4.3.1", kafka)}


def tested(name: str, bootstrap: str, folder: Path, chosen: list[str], master: str | None = None) -> Run:
    """Run the tests, and read pytest's report."""
    report, began = folder / "junit.xml", time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n0", f"--junitxml={report}", *(chosen or [TESTS])]
    own = {**os.environ, "CONFORMANCE_BOOTSTRAP": bootstrap, **({} if master is None else {MASTER: master})}
    subprocess.run(command, cwd=needs.ROOT, env=own, check=False, timeout=RUN_S)
    run = Run(name, seconds=time.monotonic() - began)
    for case in xml.parse(report).iter("testcase"):
        found = {child.tag for child in case} & {"failure", "error", "skipped"}
        verdict = "passed" if not found else "skipped" if found == {"skipped"} else "failed"
        run.verdicts[verdict] += 1
        if verdict == "failed":
            run.failures.append(f"{case.get('classname')}::{case.get('name')}")
    return run


def main(on: Sequence[str], chosen: list[str], standalone: bool) -> int:
    runs: list[Run] = []
    for key in on:
        name, started = BROKERS[key]
        with (
            tempfile.TemporaryDirectory(prefix="moldau-spark-") as folder,
            started(Path(folder)) as bootstrap,
            cluster(Path(folder)) if standalone else nullcontext() as master,
        ):
            runs.append(tested(name, bootstrap, Path(folder), chosen, master))
        print(tables.markdown(HEAD, [runs[-1].cells]), flush=True)
        if not chosen and not standalone:
            tables.put(PAGE, "brokers", HEAD, [runs[-1].cells])
    return int(any(run.verdicts["failed"] for run in runs))


def there() -> list[str]:
    """The brokers that can be had here."""
    found = needs.find("kafka-jars")
    if found.path:
        return list(BROKERS)
    print(f"Without Apache Kafka: {found.reason}.", flush=True)
    return ["moldau"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.spark.brokers", description=__doc__)
    parser.add_argument("--on", choices=BROKERS, action="append")
    parser.add_argument("--standalone", action="store_true", help="on a Spark cluster; then the page stays as it is")
    parser.add_argument("tests", nargs="*", help="some of them; then the page stays as it is")
    given = parser.parse_args()
    sys.exit(main(given.on or there(), given.tests, given.standalone))
