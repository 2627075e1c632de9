"""What a test of a suite came to, judged beside what is expected of it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

EXPECTED = Path(__file__).parent / "expected.toml"


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    KNOWN = "fails here and there"  # with as many nodes of Apache Kafka too
    WAITS = "waits"  # for what is not built yet
    EMPTY = "empty"  # passed without having asked the broker anything
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    test: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Expected:
    """The rows of expected.toml for one suite, and Apache Kafka's score."""

    waits: dict[str, str] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    empty: dict[str, str] = field(default_factory=dict)
    apache_kafka: str = "not run"

    @classmethod
    def of(cls, suite: str, brokers: int = 1) -> Expected:
        """Return the rows for a suite. On several brokers other tests fail, but the same are empty."""
        tables = tomllib.loads(EXPECTED.read_text())
        rows = tables.get(suite, {})
        return cls(
            **(rows if brokers == 1 else {**tables.get(f"{suite}-{brokers}", {}), "empty": rows.get("empty", {})})
        )

    def waiting(self, test: str) -> str | None:
        return look_up(self.waits, test)

    def judge(self, outcome: Outcome) -> Outcome:
        """A failure that is expected, and a pass that means nothing, get the reason that the table gives."""
        tables = {
            Verdict.FAILED: ((Verdict.WAITS, self.waits), (Verdict.KNOWN, self.known)),
            Verdict.PASSED: ((Verdict.EMPTY, self.empty),),
        }
        for verdict, reasons in tables.get(outcome.verdict, ()):
            if reason := look_up(reasons, outcome.test):
                return replace(outcome, verdict=verdict, why=reason)
        return outcome


def look_up(reasons: dict[str, str], test: str) -> str | None:
    """The reason for a test: `0105` stands for all of that number, `TestGroupETL` for all its parts."""
    names = (key for key in reasons if test == key or test.startswith((f"{key}_", f"{key}/")))
    longest = max(names, key=len, default=None)
    return reasons[longest] if longest else None


@dataclass(frozen=True, slots=True)
class Score:
    """A suite's outcomes, or why it was not run."""

    suite: str
    outcomes: tuple[Outcome, ...] = ()
    left_out: str = ""

    def of(self, verdict: Verdict) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.verdict is verdict]

    def line(self) -> str:
        if self.left_out:
            return f"{self.suite}: left out, {self.left_out}"
        counts = ", ".join(f"{len(self.of(verdict))} {verdict}" for verdict in Verdict if self.of(verdict))
        return f"{self.suite}: {counts} of {len(self.outcomes)}"


def judged(suite: str, outcomes: Iterable[Outcome], quick: bool = True, brokers: int = 1) -> Score:
    expected = Expected.of(suite, brokers)
    if not quick:
        expected = replace(expected, empty={})
    return Score(suite, tuple(sorted(map(expected.judge, outcomes), key=lambda outcome: outcome.test)))
