"""describe() equals the text that Kafka Streams 4.3.1 gives for the same topology, recorded in descriptions.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.streams import StreamsBuilder
from tests.streams.described import TOPOLOGIES

RECORDED = dict(
    part.split("\n", 1) for part in (Path(__file__).parent / "descriptions.txt").read_text().split("=== ")[1:]
)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_description_is_that_of_java(name: str) -> None:
    builder = StreamsBuilder("app")
    TOPOLOGIES[name](builder)
    assert builder.describe() == RECORDED[name]


def test_every_recorded_description_is_compared() -> None:
    assert RECORDED.keys() == TOPOLOGIES.keys()
