"""Foreign-key joins on levels: there and back, with a mirror of the left table behind the answers."""

import random

import pytest

from moldau.operators.context import TopologyError
from moldau.operators.record import Produced
from moldau.streams import TopologyTestDriver
from moldau.wire.numbers import murmur2
from tests.streams.judge.ours import SETTINGS, built
from tests.streams.judge.topologies import TOPOLOGIES

from .in_memory import Conveyor
from .test_restoring import batches, conveyor

JOINS = sorted(name for name in TOPOLOGIES if name.startswith("foreign_") and name != "foreign_self_join")
SEEDS = 2


def essence(records: list[Produced]) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(record.key, record.value, record.timestamp) for record in records]


def left_over(records: list[Produced]) -> dict[bytes | None, bytes]:
    """The table that a changelog makes. Counts that have come to nothing are as good as none."""
    latest = {record.key: record.value for record in records}
    return {key: value for key, value in latest.items() if value and any(value)}


@pytest.mark.parametrize("name", JOINS)
def test_fed_one_by_one_records_are_joined_as_the_driver_joins_them(name: str) -> None:
    for seed in range(SEEDS):
        one_by_one, at_once = conveyor(name, {}), conveyor(name, {})
        made = batches(["left", "right"], random.Random(seed))
        with TopologyTestDriver(built(name, {}), {**SETTINGS, "application.id": "app"}) as driver:
            for batch in made:
                at_once.batch(batch)
                for raw in batch:
                    one_by_one.batch([raw])
                    driver.pipe(raw.topic, raw.key, raw.value, raw.timestamp)
            expected = list(driver.outputs.get("out", ()))
        assert essence(one_by_one.outputs.get("out", [])) == essence(expected)
        assert left_over(at_once.outputs.get("out", [])) == left_over(expected)


@pytest.mark.parametrize("name", ["foreign_left_join", "foreign_join_count"])
def test_tables_with_different_numbers_of_partitions_are_joined_on_a_foreign_key(name: str) -> None:
    """An answer goes to the partition of the left table from which the question came."""
    counts = {"left": 3, "right": 2}
    for seed in range(SEEDS):
        many = Conveyor(built(name, {}), counts, SETTINGS)
        with TopologyTestDriver(built(name, {}), {**SETTINGS, "application.id": "app"}) as driver:
            for batch in batches(["left", "right"], random.Random(seed)):
                for raw in batch:
                    driver.pipe(raw.topic, raw.key, raw.value, raw.timestamp)
                many.batch([raw._replace(partition=murmur2(raw.key or b"") % counts[raw.topic]) for raw in batch])
            expected = list(driver.outputs.get("out", ()))
        assert left_over(many.outputs.get("out", [])) == left_over(expected)


def test_a_table_that_is_joined_with_itself_is_refused_with_a_sentence() -> None:
    with pytest.raises(TopologyError, match="what goes into a foreign-key join and what comes out of it"):
        conveyor("foreign_self_join", {})
