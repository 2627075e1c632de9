"""The client tests of this folder as one suite: pytest runs them against the given broker, its report is read."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from pathlib import Path

from tests import needs
from tests.conformance.outcome import Outcome, Verdict

SUITE = "clients"


def run(bootstrap: str, work: Path) -> Iterator[Outcome]:
    work.mkdir(parents=True)
    report = work / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n2", "--dist=loadgroup", f"--junitxml={report}"]
    environment = {**os.environ, "CONFORMANCE_BOOTSTRAP": bootstrap}
    files = [str(file) for file in Path(__file__).parent.glob("test_*.py") if file.name != "test_suites.py"]
    subprocess.run([*command, *sorted(files)], cwd=needs.ROOT, env=environment, check=False)
    yield from outcomes(report)


def outcomes(report: Path) -> Iterator[Outcome]:
    for case in xml.parse(report).iter("testcase"):
        module = (case.get("classname") or "").removeprefix("tests.conformance.test_")
        name = f"{module}: {case.get('name')}"
        found = {child.tag: (child.get("message") or "").splitlines()[:1] for child in case}
        if bad := found.get("failure", found.get("error")):
            yield Outcome(name, Verdict.FAILED, bad[0][:160])
        elif "skipped" in found:
            yield Outcome(name, Verdict.SKIPPED, "".join(found["skipped"]))
        else:
            yield Outcome(name, Verdict.PASSED)
