"""What Kafka Streams 4.3 made of records (noted from its TopologyTestDriver, cache off), and what we make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.streams import StreamsBuilder
from tests.streams.scenario_run import run, scenarios
from tests.streams.windowed_topologies import TOPOLOGIES

SCENARIOS = scenarios(Path(__file__).with_name("windowed_scenarios.txt"))


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_outputs_are_those_of_kafka_streams(name: str) -> None:
    assert SCENARIOS[name]
    for scenario in SCENARIOS[name]:
        assert run(name, scenario) == scenario.outputs, scenario


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_a_restart_between_any_two_records_changes_nothing(name: str) -> None:
    for scenario in SCENARIOS[name][:1]:
        assert run(name, scenario, restart=True) == scenario.outputs, scenario


DESCRIPTIONS = dict(
    block.removeprefix("T ").split("\n", 1)
    for block in Path(__file__).with_name("windowed_descriptions.txt").read_text().split("\nT ")
)


@pytest.mark.parametrize("name", sorted(DESCRIPTIONS))
def test_nodes_and_stores_have_kafkas_names_and_places(name: str) -> None:
    builder = StreamsBuilder("ref")
    TOPOLOGIES[name](builder)
    assert builder.describe().strip() == DESCRIPTIONS[name].strip()
