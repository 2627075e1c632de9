"""Two answers to one case held against each other: the first difference as text, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.streams.judge.case import Answer, Case, Made, Row, shown
from tests.streams.judge.internals import comparable


def difference(case: Case, kafka: Answer, ours: Answer) -> str:
    """Empty if they are equal; else the case and where they part first."""
    both = (comparable(answer, case) for answer in (kafka, ours))
    found = next(_differences(case, *both), "")
    return f"{found}\ninput: {case}" if found else ""


def described(kafka: Answer, ours: Answer) -> str:
    """Where describe() differs; empty if it does not."""
    text, own = (re.sub(r"extractor class: [^)]*", "extractor", one.describe) for one in (kafka, ours))
    return "" if text == own else f"describe() differs\n{beside(text.splitlines(), own.splitlines())}{ours.error}"


def _differences(case: Case, kafka: Answer, ours: Answer) -> Iterator[str]:
    for number, (made, mine) in enumerate(zip(kafka.steps, ours.steps, strict=False), 1):
        if by_topic(made) != by_topic(mine):
            yield f"step {number} ({case.steps[number - 1]}) differs\n{beside(lines(made), lines(mine))}"
    if bool(kafka.error) != bool(ours.error):
        yield f"one fails\nKafka: {kafka.error or 'no error'}\nours:  {ours.error or 'no error'}"
    if kafka.seen != ours.seen:
        yield f"what functions saw differs\n{beside(list(kafka.seen), list(ours.seen))}"
    for name in sorted(kafka.stores.keys() | ours.stores.keys()):
        rows, own = kafka.stores.get(name), ours.stores.get(name)
        if rows != own:
            yield f"store {name} differs at the end\n{beside(row_lines(rows), row_lines(own))}"


def by_topic(made: Sequence[Made]) -> dict[str, list[Made]]:
    """The order within a topic is what readers see."""
    topics: dict[str, list[Made]] = {}
    for record in made:
        topics.setdefault(record.topic, []).append(record)
    return topics


def lines(made: Sequence[Made]) -> list[str]:
    return [str(record) for record in sorted(made, key=lambda record: record.topic)]


def row_lines(rows: Sequence[Row] | None) -> list[str]:
    if rows is None:
        return ["no such store"]
    return [" ".join(str(cell) if isinstance(cell, int) else shown(cell) for cell in row) for row in rows]


def beside(kafka: Sequence[str], ours: Sequence[str]) -> str:
    """Both, line by line; the lines that only one has are marked."""
    text = [("  " if line in ours else "- ") + line for line in kafka]
    mine = [("  " if line in kafka else "+ ") + line for line in ours]
    return "\n".join(["Kafka:", *text, "ours:", *mine])
