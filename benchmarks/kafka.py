"""Apache Kafka's side: its jars from Maven, its properties, its JVM as Kafka's own scripts start it."""

import base64
import os
import subprocess
from pathlib import Path

from tests import needs

from benchmarks.places import BenchError

VERSION = needs.KAFKA_VERSION
JVM = (
    *("java", "-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


def libs() -> Path:
    """The folder of jars, filled once by Maven; what is missing is told in a sentence."""
    for tool in ("java", "kafka-jars"):
        found = needs.find(tool)
        if not found.path:
            raise BenchError(f"No {tool} here ({found.reason}). To have it: {needs.table()[tool].had_by}.")
    return found.path


def java(*arguments: str) -> list[str]:
    """A JVM with Kafka on its class path."""
    return [*JVM, "-cp", f"{libs()}/*", *arguments]


def command(home: Path, port: int, settings: dict[str, str]) -> list[str]:
    """Write the properties, format an empty data directory, and say how to start."""
    properties = home / "server.properties"
    data = home / "data"
    rows = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{port + 1}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    } | settings
    if "listeners" in settings:
        rows["listeners"] += f",CONTROLLER://127.0.0.1:{port + 1}"
    properties.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
    if not data.exists():
        format_storage(java("kafka.tools.StorageTool"), properties, random_id())
    return java("kafka.Kafka", str(properties))


def random_id() -> str:
    """For a cluster."""
    return base64.urlsafe_b64encode(os.urandom(16)).decode()[:22]


def format_storage(storage_tool: list[str], properties: Path, cluster: str) -> None:
    """By Kafka's tool or ours; never part of a measured start."""
    tool = [*storage_tool, "format", f"--cluster-id={cluster}", "-c", str(properties)]
    done = subprocess.run(tool, capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"The storage could not be formatted: {done.stderr.strip()[-500:]}")
