"""Apache Kafka's side of a comparison: a live broker, or what one has answered before.

`make test` compares with recordings, which needs no Kafka and no patience with it; `make conformance` asks a live one.
`make recordings` asks a live one and keeps its answers, for new scripts and for a new release of Kafka.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.differential.case import Case, Script
from tests.conformance.differential.normal import Normal
from tests.conformance.differential.target import Target

FILE = Path(__file__).parent / "recorded.json.gz"
Row = tuple[str, int, Any]  # case, version, and the answer as normal.py makes it


class Live:
    """A running Kafka."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.rows: list[Row] = []

    def create(self, script: Script) -> None:
        self.target.create(script.topics)
        self.rows = []

    def send(self, case: Case, version: int) -> None:
        self.target.send(case, version)

    def receive(self, case: Case, version: int) -> Any:
        received = self.target.receive(case, version)  # it may name members and producers for Normal
        answer = Normal(case, self.target)(received)
        self.rows.append((case.name, version, answer))
        return answer

    def ask_again(self, case: Case, version: int) -> Any:
        """Kafka's brokers may not have heard of a change when its controller has answered."""
        self.rows.pop()
        self.target.send(case, version)
        return self.receive(case, version)


class Recorded:
    """The answers of a Kafka that ran some time ago, in the same order."""

    def __init__(self) -> None:
        self._rows: Iterator[Row] = iter(())
        self._script = ""

    def create(self, script: Script) -> None:
        self._rows, self._script = iter(recordings().scripts.get(script.name, ())), script.name

    def send(self, case: Case, version: int) -> None:
        pass

    def receive(self, case: Case, version: int) -> Any:
        name, recorded, answer = next(self._rows, ("nothing", 0, None))
        asked = f"{case.name} (v{version})"
        assert (name, recorded) == (case.name, version), (
            f"{self._script}: {asked} comes where {name} (v{recorded}) was recorded; run make recordings"
        )
        return answer

    def ask_again(self, case: Case, version: int) -> None:
        """It will not say anything else."""


class Recordings(NamedTuple):
    """What a Kafka of some version has answered, by script."""

    kafka: str
    scripts: dict[str, list[Row]]


@cache
def recordings() -> Recordings:
    """Read what was recorded. Answers that several requests got are kept once."""
    kept = json.loads(gzip.decompress(FILE.read_bytes()))
    scripts = {
        script: [(name, version, kept["answers"][number]) for name, version, number in rows]
        for script, rows in kept["scripts"].items()
    }
    return Recordings(kept["kafka"], scripts)


def record(kafka: str, scripts: Mapping[str, Iterable[Row]]) -> None:
    """Keep the answers of a Kafka of this version. The same answers make the same file."""
    numbers: dict[str, int] = {}
    rows = {
        script: [
            (name, version, numbers.setdefault(json.dumps(answer, sort_keys=True), len(numbers)))
            for name, version, answer in found
        ]
        for script, found in scripts.items()
    }
    kept = {"kafka": kafka, "answers": [json.loads(text) for text in numbers], "scripts": rows}
    FILE.write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))
