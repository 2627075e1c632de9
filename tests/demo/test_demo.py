"""`moldau demo` as a user has it, on a machine without Java: it says so, and the shop is open."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from moldau.demo.topics import ORDERS, TOPICS
from moldau.platform import PARTS
from moldau.testing import eventually
from tests.test_platform import free_offset

WAIT_S = 120


def first_order(servers: str, registry: SchemaRegistryClient) -> dict[str, object]:
    """What a stranger's clients read."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "strangers", "auto.offset.reset": "earliest"})
    consumer.subscribe([ORDERS.name])
    try:
        message = consumer.poll(WAIT_S)
        assert message is not None and message.error() is None
        context = SerializationContext(ORDERS.name, MessageField.VALUE)
        return AvroDeserializer(registry)(message.value(), context)  # type: ignore[return-value]
    finally:
        consumer.close()


def test_without_java_the_shop_is_open_and_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    offset = free_offset()
    places = {"XDG_RUNTIME_DIR": str(tmp_path), "TMPDIR": str(tmp_path), "JAVA_HOME": str(tmp_path / "none")}
    command = [sys.executable, "-m", "moldau", "demo", "--rate", "100", "--port-offset", str(offset)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **places}
    )
    try:
        assert process.stdout is not None
        shown = list(itertools.takewhile(lambda line: line != "ready\n", process.stdout))
        assert any("moldau consume shop.orders -s avro" in line for line in shown)
        registry = SchemaRegistryClient({"url": f"http://127.0.0.1:{PARTS['registry'].port + offset}"})
        subjects = {topic.subject for topic in TOPICS}
        eventually(lambda: set(registry.get_subjects()) == subjects, timeout_s=WAIT_S, what="schemas of the shop")
        order = first_order(f"127.0.0.1:{PARTS['broker'].port + offset}", registry)
        assert str(order["id"]).startswith("o0") and order["amount"]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "runs without its streams applications. JAVA_HOME is" in errors
    assert list(tmp_path.glob("moldau-*")) == []
