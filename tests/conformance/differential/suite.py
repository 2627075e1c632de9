"""All scripts as one suite of `make conformance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests import needs
from tests.conformance.differential.brokers import pair
from tests.conformance.differential.kafka_side import Live, Row, record
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
    with pair(libs, work) as (kafka, moldau):
        for script in SCRIPTS:
            if not names or script.name in names:
                judgement = play(script, Live(kafka), moldau)
                print(*judgement.failures, f"  {judgement.line()}", sep="\n", flush=True)
                verdict = Verdict.FAILED if judgement.failures else Verdict.PASSED
                yield Outcome(
                    f"{script.name} ({judgement.requests} requests)", verdict, "; ".join(judgement.failures[:1])
                )


def record_all(work: Path) -> list[str]:
    """Keep what a live Kafka answers to the scripts of `make test`; returns where Moldau differs."""
    libs = needs.find("kafka-jars").path
    assert libs is not None
    rows: dict[str, list[Row]] = {}
    failures: list[str] = []
    with pair(libs, work) as (kafka, moldau):
        for script in SCRIPTS:
            if not script.slow:
                live = Live(kafka)
                judgement = play(script, live, moldau)
                rows[script.name] = live.rows
                failures += judgement.failures
                print(f"  {judgement.line()}", flush=True)
    record(needs.KAFKA_VERSION, rows)
    return failures
