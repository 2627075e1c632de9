"""Apache Kafka from its jars and Moldau, with the same settings, each on free ports of the loopback address."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from moldau.testing import broker
from moldau.testing.ports import free_ports
from tests.conformance.differential.case import LONG_MS, Case
from tests.conformance.differential.target import Target

SESSION_MS = 400_000
# The least that one node needs, and what makes answers differ visibly from defaults.
SETTINGS = {
    "node.id": "1",
    "broker.rack": "rack",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Members and locks outlive pauses of a slow machine; the scripts rely on the limits being below 500,000 ms.
    **{
        f"group.{kind}.{limit}session.timeout.ms": str(SESSION_MS)
        for kind in ("consumer", "share", "streams")
        for limit in ("", "max.")
    },
    "group.share.record.lock.duration.ms": str(LONG_MS),
    "group.share.max.record.lock.duration.ms": str(LONG_MS),
}
ALONE = """
process.roles=broker,controller
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
log.dirs={data}
"""
# A run is too short for the second compiler and a parallel collector to pay for themselves.
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m"]
# Only errors are written, but the loggers say that they are at INFO, as they are with Kafka's own scripts.
LOGGING = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-Dlog4j2.level=INFO"]
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
START_S = 120.0
# The first producer ids come from the controller a moment later.
FIRST_ID = Case("ready", "InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1000})


@contextmanager
def pair(libs: Path, folder: Path) -> Iterator[tuple[Target, Target]]:
    """Both brokers; they are ended whatever happens."""
    with apache_kafka(libs, folder) as kafka, moldau() as here:
        kafka.until(FIRST_ID, 4, lambda answer: not answer.error_code)
        try:
            yield kafka, here
        finally:
            kafka.close()


@contextmanager
def moldau() -> Iterator[Target]:
    """Moldau alone, ready to give out producer ids."""
    with broker(SETTINGS) as running:
        target = Target("Moldau", running.port, running.data_dir)
        target.written = lambda: running.log
        try:
            target.until(FIRST_ID, 4, lambda answer: not answer.error_code)
            yield target
        finally:
            target.close()


@contextmanager
def apache_kafka(libs: Path, folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Target]:
    port, controller = free_ports(2)
    data, properties, log = folder / "kafka", folder / "server.properties", folder / "kafka.log"
    lines = [f"{name}={value}" for name, value in {**SETTINGS, **(settings or {})}.items()]
    properties.write_text("\n".join(lines) + ALONE.format(port=port, controller=controller, data=data))
    java = [*JAVA, *LOGGING, "-cp", f"{libs}/*"]
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run(formatting, check=True, capture_output=True, timeout=START_S)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(properties)], stdout=out, stderr=out, stdin=subprocess.DEVNULL
        )
    try:
        await_port(process, port, log)
        yield Target("Kafka", port, str(data), (controller,))
    finally:
        process.kill()
        process.wait()


def await_port(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until the broker takes connections."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, f"Kafka ended:\n{log.read_text()[-3000:]}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"Kafka does not start:\n{log.read_text()[-3000:]}")
