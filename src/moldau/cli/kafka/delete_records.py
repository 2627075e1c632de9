"""kafka-delete-records: deletes records up to the offsets in a JSON file."""

from __future__ import annotations

from typing import Any

from moldau.admin import TopicPartition, topics
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import spoken, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, Terse, connect, read_json
from moldau.client import ClientError

EXAMPLE = '{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}'


def run(options: Options) -> int:
    require(options, "bootstrap-server", "offset-json-file")
    before = wanted(read_json(options["offset-json-file"]))
    with connect(options) as client:
        print("Executing records delete operation")
        done = topics.delete_records(client, before)
        print("Records delete operation completed:")
        for place in java_order.partitions(done):
            result = done[place]
            where = f"partition: {place[0]}-{place[1]}"
            if isinstance(result, ClientError):
                print(f"{where}\terror: {spoken(result.error, words_of(result))}")
            else:
                print(f"{where}\tlow_watermark: {result}")
    return OK


def wanted(document: Any) -> dict[TopicPartition, int]:
    """Read the offsets of a document, each partition once."""
    if not isinstance(document, dict):
        raise Terse("The input string is not a valid JSON")
    if document.get("version", 1) != 1:
        raise Terse(f"Not supported version field value {document['version']}")
    if "partitions" not in document:
        raise Terse("Missing partitions field")
    try:
        rows = [(str(row["topic"]), int(row["partition"]), int(row["offset"])) for row in document["partitions"]]
    except (TypeError, KeyError, ValueError):
        raise Terse('A partition is written {"topic": "name", "partition": 0, "offset": 10}') from None
    places = [(topic, partition) for topic, partition, _ in rows]
    if twice := sorted({place for place in places if places.count(place) > 1}):
        listed = ",".join(f"{topic}-{partition}" for topic, partition in twice)
        raise Terse(f"Offset json file contains duplicate topic partitions: {listed}")
    return {(topic, partition): offset for topic, partition, offset in rows}


TOOL = Tool(
    "kafka-delete-records",
    "This tool helps to delete records of the given partitions down to the specified offset.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("offset-json-file", "file", f"Delete up to the offsets of this file: {EXAMPLE}. Offset -1 is the end."),
    ),
    run,
)
