"""Scenarios: records that go into a topology, and what came out of it; and how ours are run.

A file has a topology a block: T its name, R a record that goes in, O one that came out of the record with that number,
X that the application ended.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from moldau.operators.errors import StreamsError
from moldau.streams import StreamsBuilder, String, TopologyTestDriver
from tests.streams.windowed_topologies import TOPOLOGIES

SETTINGS = {"statestore.cache.max.bytes": 0, "default.key.serde": "string", "default.value.serde": "string"}


@dataclass
class Scenario:
    number: int
    inputs: list[tuple[str, str | None, str | None, int]] = field(default_factory=list)
    outputs: list[tuple[str, ...]] = field(default_factory=list)


def scenarios(path: Path) -> dict[str, list[Scenario]]:
    found: dict[str, list[Scenario]] = defaultdict(list)
    name = ""
    for line in path.read_text().splitlines():
        kind, *fields = line.split("\t")
        if kind == "T":
            name = fields[0]
            found[name].append(Scenario(len(found[name])))
        elif kind == "R":
            topic, key, value, time = fields
            found[name][-1].inputs.append((topic, optional(key), optional(value), int(time)))
        elif kind == "O":
            found[name][-1].outputs.append(tuple(fields))
        elif kind == "X":
            found[name][-1].outputs.append(("X", fields[0]))
    return found


def optional(text: str) -> str | None:
    return None if text == "\\N" else text


def shown(text: str | None) -> str:
    return "\\N" if text is None else text


def run(name: str, scenario: Scenario, restart: bool = False) -> list[tuple[str, ...]]:
    builder = StreamsBuilder("ref")
    TOPOLOGIES[name](builder)
    driver = TopologyTestDriver(builder, SETTINGS)
    out = driver.create_output_topic("out", String(), String())
    found: list[tuple[str, ...]] = []
    for number, (topic, key, value, time) in enumerate(scenario.inputs):
        try:
            into = driver.create_input_topic(topic, String(), String())
            into.pipe_input(key, value, time, [("n", str(number).encode())])
        except StreamsError:
            found.append(("X", str(number)))
            break
        for record in out.read_records_to_list():
            headers = "".join(f"{name}={(value or b'').decode()}" for name, value in record.headers)
            found.append((str(number), shown(record.key), shown(record.value), str(record.timestamp), headers))
        if restart:
            driver.restart()
    driver.close()
    return found
