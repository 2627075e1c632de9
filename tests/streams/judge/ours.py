"""Moldau's answer to a case: its test driver, on the same steps."""

from __future__ import annotations

import traceback
from collections.abc import Mapping

from moldau.streams import Bytes, StreamsBuilder, Topology, TopologyTestDriver
from tests.streams.judge.case import Advance, Answer, Case, Made
from tests.streams.judge.contents import contents
from tests.streams.judge.functions import SEEN
from tests.streams.judge.topologies import TOPOLOGIES

# As in java/Judge.java.
SETTINGS = {
    "application.id": "judge",
    "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
    "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
    "statestore.cache.max.bytes": "0",
}
BYTES = Bytes()


def built(name: str, settings: Mapping[str, str]) -> Topology:
    builder = StreamsBuilder("judge", settings={**SETTINGS, **settings})
    made = TOPOLOGIES[name](builder)
    return made if isinstance(made, Topology) else builder.build()


def answer(case: Case) -> Answer:
    """What a failing topology made so far counts, as it does in Kafka; the error is told as text."""
    SEEN.clear()
    describe, steps, stores, error = "", list[list[Made]](), {}, ""
    try:
        topology = built(case.topology, case.settings)
        describe = topology.describe()
        with TopologyTestDriver(topology, {**SETTINGS, **case.settings}, initial_wall_clock_ms=0) as driver:
            for step in case.steps:
                if isinstance(step, Advance):
                    driver.advance_wall_clock_time(step.milliseconds)
                else:
                    topic = driver.create_input_topic(step.topic, key=BYTES, value=BYTES)
                    topic.pipe_input(step.key, step.value, timestamp=step.timestamp, headers=step.headers)
                steps.append(_made(driver))
            stores = contents(driver, case.steps)
    except Exception:
        error = traceback.format_exc()
    return Answer(describe, steps, stores, list(SEEN), error)


def _made(driver: TopologyTestDriver) -> list[Made]:
    """What topics got since it was last asked."""
    made = list[Made]()
    for name in sorted(driver.produced_topic_names):
        for record in driver.create_output_topic(name, key=BYTES, value=BYTES).read_records_to_list():
            made.append(Made(name, record.key, record.value, record.timestamp, tuple(record.headers)))
    return made
