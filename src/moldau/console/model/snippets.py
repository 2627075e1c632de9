"""A record as a command and as a program to copy. Its content is quoted, so that it stays data."""

from __future__ import annotations

import base64
import json
import shlex

from moldau.console.model.problems import Refused
from moldau.console.model.records import Part, Row

LARGEST = 64 << 10
REST = "http://127.0.0.1:8082"


def curl(topic: str, row: Row) -> str:
    """Return a command that writes the record again through a REST Proxy."""
    if row.key.is_cut or row.value.is_cut or len(row.key.data) + len(row.value.data) > LARGEST:
        raise Refused(f"The record is larger than {LARGEST} bytes: export it instead.")
    record = {name: base64.b64encode(part.data).decode() for name, part in _parts(row)}
    body = json.dumps({"records": [{**record, "partition": row.partition}]})
    kind = "Content-Type: application/vnd.kafka.binary.v2+json"
    return f"curl {shlex.quote(f'{REST}/topics/{topic}')} \\\n  -H {shlex.quote(kind)} \\\n  -d {shlex.quote(body)}"


def _parts(row: Row) -> list[tuple[str, Part]]:
    return [(name, part) for name, part in (("key", row.key), ("value", row.value)) if part.kind != "null"]


def python(topic: str, row: Row, bootstrap_servers: str) -> str:
    """Return a program that reads the record."""
    return f"""from confluent_kafka import Consumer, TopicPartition

consumer = Consumer({{"bootstrap.servers": {bootstrap_servers!r}, "group.id": "look", "enable.auto.commit": False}})
consumer.assign([TopicPartition({topic!r}, {row.partition}, {row.offset})])
record = consumer.poll(10)
print(record.timestamp(), record.key(), record.value(), record.headers())
consumer.close()
"""
