"""All command lines as one suite of `make conformance`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import needs
from tests.conformance.java_tools import Tools, started
from tests.conformance.kafka_tools.cases import CASES
from tests.conformance.kafka_tools.compare import differences, scene
from tests.conformance.outcome import Outcome, Verdict

SUITE = "kafka-tools"
NEEDS = ("java", "javac", "kafka-jars")


def run(bootstrap: str, work: Path, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Play all cases, or those of the tools named."""
    libs = needs.find("kafka-jars").path
    assert libs is not None
    work.mkdir(parents=True, exist_ok=True)
    with started(libs) as jvm, scene(Tools(jvm, bootstrap), f"kt{os.getpid()}", work) as both:
        for case in CASES:
            if not names or case.tool in names:
                found = differences(both, case)
                if found:
                    print(f"{case}", *found, sep="\n", flush=True)
                verdict = Verdict.FAILED if found else Verdict.PASSED
                yield Outcome(str(case), verdict, "; ".join(line.splitlines()[0] for line in found))
