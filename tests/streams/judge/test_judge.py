"""A core of the second judge: every topology on a few inputs that are always the same, stores in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.streams.judge.jvm import BRIEF, Kafka, kafka_streams
from tests.streams.judge.topologies import TOPOLOGIES
from tests.streams.judge.trial import IN_MEMORY, described_otherwise, trial

pytestmark = pytest.mark.needs("java", "streams-judge")
EXAMPLES = 6
SEED = 7


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    with kafka_streams(BRIEF) as judge:
        yield judge


def test_both_sides_have_the_same_topologies(kafka: Kafka) -> None:
    assert sorted(TOPOLOGIES) == kafka.topologies()


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_kafka_streams_describes_the_same_topology(kafka: Kafka, topology: str) -> None:
    found = described_otherwise(kafka, topology)
    assert not found, found


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_kafka_streams_makes_the_same_records(kafka: Kafka, topology: str) -> None:
    found = trial(kafka, topology, EXAMPLES, [IN_MEMORY], SEED).difference
    assert not found, found
