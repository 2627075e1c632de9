"""The flows of the fleet make what its judge expects, and the judge sees what is lost, doubled or out of order."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.flows.loading import builder_of
from moldau.streams import TopologyTestDriver
from tests.spark.chaos import FIRST_MS, KEYS
from tests.spark.fleet import INPUTS, KINDS, Flow, Tally, fleet, written

FED = 250
Rows = list[tuple[str, str]]


def rows_of(flow: Flow, folder: Path) -> Rows:
    file = written(flow, folder)
    with TopologyTestDriver(builder_of(str(file))) as driver:
        inputs = [driver.create_input_topic(name) for name in INPUTS[: 1 + (flow.kind == "join")]]
        for number in range(FED):
            for topic in inputs:
                topic.pipe_input(str(number % KEYS), str(number), FIRST_MS + number)
        return driver.create_output_topic(flow.target).read_key_values_to_list()


def judged(flow: Flow, rows: Rows) -> dict[str, str]:
    tally = Tally()
    for key, value in rows:
        tally.note(flow, key, value)
    return tally.mistakes([flow], FED)


@pytest.mark.parametrize("flow", fleet(len(KINDS)), ids=lambda flow: flow.kind)
def test_each_flow_makes_what_the_judge_expects_and_nothing_else_passes(flow: Flow, tmp_path: Path) -> None:
    rows = rows_of(flow, tmp_path)
    assert not judged(flow, rows)
    at = len(rows) // 2
    assert judged(flow, rows[:at] + rows[at + 1 :]), "one is lost"
    assert judged(flow, [*rows[: at + 1], *rows[at:]]), "one is doubled"
    assert judged(flow, rows[:-1]), "the last one is missing"
    assert judged(flow, rows[::-1]), "out of order"


def test_a_flow_that_is_broken_on_purpose_fails(tmp_path: Path) -> None:
    for flow in fleet(len(KINDS)):
        flow.broken(tmp_path).touch()
        with pytest.raises(Exception, match="broken on purpose"):
            rows_of(flow, tmp_path)
