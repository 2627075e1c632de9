"""Plays a script to both brokers and judges what their answers differ in."""

from __future__ import annotations

import time

from tests.conformance.differential.accepted import Judgement
from tests.conformance.differential.case import Case, Script
from tests.conformance.differential.kafka_side import Live, Recorded
from tests.conformance.differential.normal import Normal, differences
from tests.conformance.differential.target import Target

# Kafka's controller answers before its brokers have heard of the change, so a question is put to Kafka again until it
# answers as Moldau does, or time is up.
QUESTIONS = ("ConsumerGroupDescribe", "Describe", "FindCoordinator", "List", "Metadata")
CATCH_UP_S = 10.0
AGAIN_S = 0.03
DONE = "'error_code': 'NONE'"


def play(script: Script, kafka: Live | Recorded, moldau: Target) -> Judgement:
    judgement = Judgement(script.name)
    before = len(moldau.written())
    kafka.create(script)
    moldau.create(script.topics)
    for case in script.cases:
        for version in case.all_versions():
            compare(judgement, case, version, kafka, moldau)
    judgement.failures += judgement.unneeded()
    judgement.failures += [line for line in moldau.written()[before:].splitlines() if " ERROR " in line]
    return judgement


def compare(judgement: Judgement, case: Case, version: int, kafka: Live | Recorded, moldau: Target) -> None:
    kafka.send(case, version)
    moldau.send(case, version)
    there = kafka.receive(case, version)
    answer = moldau.receive(case, version)
    here = Normal(case, moldau)(answer)
    deadline = time.monotonic() + CATCH_UP_S
    while True:
        found = list(differences(*_same_shape(there, here)))
        left = judgement.unexpected(case.name, found)
        if not left or not case.api.startswith(QUESTIONS) or time.monotonic() > deadline:
            break
        time.sleep(AGAIN_S)
        if (again := kafka.ask_again(case, version)) is None:
            break
        there = again
    judgement.requests += 1
    judgement.accepted += bool(found and not left)
    judgement.failures += [f"{case.name} (v{version}) {difference}" for difference in left]
    if case.settle_s and DONE in repr(here):
        time.sleep(case.settle_s)


def _same_shape(kafka: object, moldau: object) -> tuple[object, object]:
    """An answer beside none: the whole answer is the difference, and what it says is in the way."""
    if isinstance(kafka, str) == isinstance(moldau, str):
        return kafka, moldau
    return _told(kafka), _told(moldau)


def _told(side: object) -> str:
    return side if isinstance(side, str) else "answers"
