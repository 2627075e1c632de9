"""Every script, played to Apache Kafka and to Moldau."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.differential.accepted import table
from tests.conformance.differential.brokers import pair
from tests.conformance.differential.case import Script
from tests.conformance.differential.play import play
from tests.conformance.differential.scripts import SCRIPTS
from tests.conformance.differential.target import Target


@pytest.fixture(scope="module")
def brokers(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Target]]:
    with pair(kafka_libs, tmp_path_factory.mktemp("differential")) as both:
        yield both


@pytest.mark.needs("kafka-jars", "java")
@pytest.mark.xdist_group("differential")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_both_answer_alike(brokers: tuple[Target, Target], script: Script) -> None:
    judgement = play(script, *brokers)
    print(f"{judgement.requests} requests, {judgement.accepted} with differences that are accepted")
    assert not judgement.failures, "\n" + "\n".join(judgement.failures)


def test_accepted_differences_belong_to_a_script() -> None:
    assert not table().keys() - {script.name for script in SCRIPTS}


def test_names_of_topics_are_used_once() -> None:
    names = [name for script in SCRIPTS for name in script.topics]
    assert sorted(names) == sorted(set(names))
