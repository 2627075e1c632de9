"""Ask Apache Kafka, and write its answers down: `python -m tests.conformance.access.record`; it needs its jars."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.client.apache import apache_kafka
from tests.conformance.access.play import play

RECORDED = Path(__file__).with_name("recorded.json.gz")
AUTHORIZER = """
connections.max.reauth.ms=0
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
delegation.token.secret.key=shared by all brokers
auto.create.topics.enable=true
group.streams.initial.rebalance.delay.ms=0
"""


def record(libs: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, apache_kafka(libs, Path(folder), AUTHORIZER) as kafka:
        found = play(kafka.ports["SASL_PLAINTEXT"])
    # No time of writing in the file: the same answers are the same bytes.
    RECORDED.write_bytes(gzip.compress(json.dumps(found, separators=(",", ":")).encode(), mtime=0))


def recorded() -> dict[str, Any]:
    return json.loads(gzip.decompress(RECORDED.read_bytes()))


if __name__ == "__main__":
    from tests.needs import find

    jars = find("kafka-jars")
    assert jars.path is not None, jars.reason
    record(jars.path)
