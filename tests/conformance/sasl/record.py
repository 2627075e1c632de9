"""Ask Apache Kafka, and write its answers down: `python -m tests.conformance.sasl.record` where there are its jars."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.client.apache import apache_kafka
from tests.conformance.sasl.scenarios import SCENARIOS, play

RECORDED = Path(__file__).with_name("recorded.json")


def record(libs: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, apache_kafka(libs, Path(folder)) as kafka:
        port = kafka.ports["SASL_PLAINTEXT"]
        answers = {name: play(port, steps) for name, steps in SCENARIOS.items()}
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    from tests.needs import find

    found = find("kafka-jars")
    assert found.path is not None, found.reason
    record(found.path)
