"""Scripts played to Moldau beside what Apache Kafka has answered. Slow ones, and a live Kafka: make conformance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.differential import brokers
from tests.conformance.differential.case import Script
from tests.conformance.differential.kafka_side import Recorded, recordings
from tests.conformance.differential.play import play
from tests.conformance.differential.scripts import SCRIPTS
from tests.conformance.differential.target import Target
from tests.needs import KAFKA_VERSION

PLAYED = [script for script in SCRIPTS if not script.slow]


@pytest.fixture(scope="module")
def moldau() -> Iterator[Target]:
    with brokers.moldau() as target:
        yield target


@pytest.mark.parametrize("script", PLAYED, ids=lambda script: script.name)
def test_both_answer_alike(moldau: Target, script: Script) -> None:
    judgement = play(script, Recorded(), moldau)
    assert not judgement.failures, "\n" + "\n".join(judgement.failures)


def test_every_script_has_a_recording() -> None:
    assert set(recordings().scripts) == {script.name for script in PLAYED}
    assert recordings().kafka == KAFKA_VERSION, "run make recordings"


def test_a_name_of_a_topic_is_used_by_one_script() -> None:
    names = [name for script in SCRIPTS for name in script.topics]
    assert sorted(names) == sorted(set(names))
