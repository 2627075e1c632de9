"""All scripts as one suite of `make conformance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import needs
from tests.conformance.differential.brokers import pair
from tests.conformance.differential.play import play
from tests.conformance.differential.scripts import SCRIPTS
from tests.conformance.outcome import Outcome, Verdict

SUITE = "differential"
NEEDS = ("java", "kafka-jars")


def run(work: Path, names: Sequence[str] = ()) -> Iterator[Outcome]:
    """Play all scripts, or those named; a script is one test, and says what failed first."""
    libs = needs.find("kafka-jars").path
    assert libs is not None
    work.mkdir(parents=True, exist_ok=True)
    with pair(libs, work) as both:
        for script in SCRIPTS:
            if not names or script.name in names:
                judgement = play(script, *both)
                print(*judgement.failures, f"  {judgement.line()}", sep="\n", flush=True)
                verdict = Verdict.FAILED if judgement.failures else Verdict.PASSED
                yield Outcome(
                    f"{script.name} ({judgement.requests} requests)", verdict, "; ".join(judgement.failures[:1])
                )
