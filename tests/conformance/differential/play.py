"""Plays a script to both brokers and judges what their answers differ in."""

from __future__ import annotations

import time

from tests.conformance.differential.accepted import Judgement
from tests.conformance.differential.case import Case, Script
from tests.conformance.differential.normal import Difference, Normal, differences
from tests.conformance.differential.target import Target

# Kafka's controller answers before its brokers have heard of the change. A question is put to Kafka again until it
# has; behind a change that brokers themselves judge by what they know, it is waited for.
QUESTIONS = ("Describe", "List", "Metadata", "FindCoordinator", "ConsumerGroupDescribe")
CATCH_UP_S = 3.0
AGAIN_S = 0.05
BEHIND_S = {"IncrementalAlterConfigs": 0.04, "AlterConfigs": 0.04}


def play(script: Script, kafka: Target, moldau: Target) -> Judgement:
    judgement = Judgement(script.name)
    for target in (kafka, moldau):
        target.create(script.topics)
    for case in script.cases:
        for version in case.all_versions():
            compare(judgement, case, version, kafka, moldau)
    judgement.failures += judgement.unneeded()
    return judgement


def compare(judgement: Judgement, case: Case, version: int, kafka: Target, moldau: Target) -> None:
    kafka.send(case, version)
    moldau.send(case, version)
    there, here = kafka.receive(case, version), Normal(case.api, moldau)(moldau.receive(case, version))
    deadline = time.monotonic() + CATCH_UP_S
    while True:
        found = list(differences(*_same_shape(Normal(case.api, kafka)(there), here)))
        left = judgement.unexpected(case.name, found)
        if not left or not case.api.startswith(QUESTIONS) or time.monotonic() > deadline:
            break
        time.sleep(AGAIN_S)
        there = kafka.ask(case, version)
    judgement.requests += 1
    judgement.accepted += bool(found and not left)
    judgement.failures += [f"{case.name} (v{version}) {difference}" for difference in left]
    time.sleep(BEHIND_S.get(case.api, 0))


def _same_shape(kafka: object, moldau: object) -> tuple[object, object]:
    """An answer beside none: the whole answer is the difference, and what it says is in the way."""
    if isinstance(kafka, str) == isinstance(moldau, str):
        return kafka, moldau
    return tuple(side if isinstance(side, str) else "answers" for side in (kafka, moldau))


__all__ = ["Difference", "compare", "play"]
