"""Apache Iceberg's own sink in the plugin host: `python -m tests.connect.lake.hosted [--place machine|spark]`.

Two tasks write the records of a topic to a table of Iceberg's REST catalog, in a worker on this machine and then in one
on a standalone Spark master. The worker is ended and started again, killed and started again: in the end each record
is in the table, once, for the sink commits the offsets with its files.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

from confluent_kafka import Producer

from moldau.testing import broker, eventually
from tests.connect.chaos import JSON
from tests.connect.lake.rest_catalog import rest_catalog
from tests.connect.plugin.hosted import PATIENCE_S, check, each, hosting, restart
from tests.connect.running import BROKER
from tests.needs import SINK_VERSION

TOPIC, CONTROL, PARTITIONS, ROWS = "made", "control", 4, 500


def put(bootstrap_servers: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(first, first + ROWS):
        producer.produce(TOPIC, json.dumps({"id": number, "word": "x"}), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def config(bootstrap_servers: str, catalog: str) -> dict[str, str]:
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "topics": TOPIC,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": catalog,
        "iceberg.tables": "db.made",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.topic": CONTROL,
        "iceberg.control.commit.interval-ms": "2000",
        "iceberg.kafka.bootstrap.servers": bootstrap_servers,
    }


def written(catalog: str) -> Counter[int]:
    """Count the ids in the table; none while there is no table."""
    exceptions = import_module("pyiceberg.exceptions")
    loaded = import_module("pyiceberg.catalog").load_catalog("rest", type="rest", uri=catalog)
    try:
        table = loaded.load_table("db.made")
    except exceptions.NoSuchTableError:
        return Counter()
    return Counter(table.scan().to_arrow().column("id").to_pylist())


def run(name: str, place: str) -> str:
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moldau-hosted-")))
        kafka = stack.enter_context(broker(BROKER))
        catalog = stack.enter_context(rest_catalog(folder)).url
        import_module("pyiceberg.catalog").load_catalog("rest", type="rest", uri=catalog).create_namespace("db")
        kafka.create_topic(TOPIC, partitions=PARTITIONS)
        kafka.create_topic(CONTROL)
        group = stack.enter_context(hosting("iceberg-sink-jars", kafka.bootstrap_servers, folder, place))
        group.create("hosted", config(kafka.bootstrap_servers, catalog))
        total = 0
        for change in ("a start", "an end", "a kill"):
            if change == "an end":
                restart(group)
            put(kafka.bootstrap_servers, total)
            total += ROWS
            if change == "a kill":
                time.sleep(1.0)
                group.kill(0)
                group.start(0)

            def is_all_there(expected: int = total) -> bool:
                check(group, "hosted")
                return len(written(catalog)) >= expected

            eventually(is_all_there, PATIENCE_S, f"the rows after {change}")
        found = written(catalog)
    assert found == Counter(range(total)), found - Counter(range(total))
    return f"{name} {SINK_VERSION}, {place}: {total} records, each once, {time.monotonic() - began:.0f} s"


if __name__ == "__main__":
    sys.exit(each(__doc__, ("iceberg",), run))
