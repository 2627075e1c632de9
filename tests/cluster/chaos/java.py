"""Kafka's own tools for system tests as users of the cluster, each in a JVM: they print as JSON what they were told."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from tests.cluster.chaos.clients import PATIENCE_S, Worker
from tests.cluster.chaos.judge import Judge
from tests.cluster.simulation.properties import Broken, Property
from tests.conformance.differential.brokers import LOGGING

NEEDS = ("java", "kafka-jars")
INPUT, OUTPUT, GROUP = "java-in", "java-out", "java"
TOPICS = {INPUT: 1}
JAVA = ["java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *LOGGING]
PAUSE_S = 3.0
PRODUCER = "enable.idempotence=true\nretries=2147483647\ndelivery.timeout.ms=300000\nrequest.timeout.ms=4000\n"
CONSUMER = "request.timeout.ms=5000\ndefault.api.timeout.ms=20000\n"


class Tool(Worker):
    """A tool in a JVM, started again whenever it ends."""

    main = ""

    def __init__(self, name: str, judge: Judge, servers: str, libs: Path) -> None:
        super().__init__(name, judge, servers)
        self.libs, self.servers = libs, servers
        self.process: subprocess.Popen[str] | None = None
        self.guard = Lock()  # of the process: it is ended by another thread
        self.starts = 0

    def arguments(self, folder: Path) -> Sequence[str]:
        raise NotImplementedError

    def heard(self, said: dict[str, Any]) -> None:
        raise NotImplementedError

    def work(self) -> None:
        with tempfile.TemporaryDirectory(prefix="chaos-java-") as folder:
            while not self.stopping.is_set():
                self.starts += 1
                self.run_once(Path(folder))
                self.stopping.wait(PAUSE_S)

    def run_once(self, folder: Path) -> None:
        command = [*JAVA, "-cp", f"{self.libs}/*", f"org.apache.kafka.tools.{self.main}", *self.arguments(folder)]
        with (folder / "errors").open("ab") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        with self.guard:
            self.process = process
            if self.stopping.is_set():
                process.terminate()
        try:
            assert process.stdout is not None
            with process.stdout:
                for line in process.stdout:
                    if line.startswith("{"):
                        self.heard(json.loads(line))
        finally:
            with self.guard:
                self.process = None
            process.kill()
            process.wait()

    def end(self) -> None:
        """Ask the tool to end; it is killed if it does not."""
        self.stopping.set()
        with self.guard:
            if self.process is not None:
                self.process.terminate()
                killer = Timer(PATIENCE_S, self.process.kill)
                killer.daemon = True
                killer.start()

    def finish(self) -> None:
        self.end()
        super().finish()


class VerifiableProducer(Tool):
    """Sends numbers, idempotently."""

    main = "VerifiableProducer"

    def arguments(self, folder: Path) -> Sequence[str]:
        (folder / "producer").write_text(PRODUCER)
        config = ["--command-config", str(folder / "producer"), "--value-prefix", str(self.starts)]
        return ["--bootstrap-server", self.servers, "--topic", INPUT, "--throughput", "50", *config]

    def heard(self, said: dict[str, Any]) -> None:
        if said["name"] == "producer_send_success":
            self.progress += 1
            self.judge.acknowledge((said["topic"], said["partition"]), said["offset"], said["value"].encode())
        elif said["name"] == "producer_send_error" and not self.stopping.is_set():
            raise Broken(Property.SEQUENCE, f"{self.name} was refused {said}")


class VerifiableConsumer(Tool):
    """Reads in a group, and commits."""

    main = "VerifiableConsumer"

    def arguments(self, folder: Path) -> Sequence[str]:
        (folder / "consumer").write_text(CONSUMER)
        config = ["--command-config", str(folder / "consumer"), "--session-timeout", "6000", "--verbose"]
        return ["--bootstrap-server", self.servers, "--topic", INPUT, "--group-id", GROUP, *config]

    def heard(self, said: dict[str, Any]) -> None:
        if said["name"] == "record_data":
            place = said["topic"], said["partition"]
            self.judge.read(GROUP, place, said["offset"], said["value"].encode())
        elif said["name"] == "offsets_committed" and said["success"]:
            self.progress += 1
            for one in said["offsets"]:
                self.judge.commit(GROUP, (one["topic"], one["partition"]), one["offset"])


class Copier(Tool):
    """Copies the input in transactions, some of which it aborts, up to the end that it found; then it starts again."""

    main = "TransactionalMessageCopier"

    def arguments(self, folder: Path) -> Sequence[str]:
        names = ["--transactional-id", "copier", "--consumer-group", "copier", "--transaction-timeout", "20000"]
        how = ["--transaction-size", "20", "--enable-random-aborts", "--use-group-metadata"]
        topics = ["--input-topic", INPUT, "--input-partition", "0", "--output-topic", OUTPUT]
        return ["--broker-list", self.servers, *topics, *names, *how]

    def heard(self, said: dict[str, Any]) -> None:
        self.progress += 1
        self.judge.counts["reports of the copier"] += 1


class CopyReader(Worker):
    """Reads the copies, committed ones only: each record of the input must come once, and in its order."""

    def __init__(self, name: str, judge: Judge, servers: str) -> None:
        super().__init__(name, judge, servers)
        self.settings |= {
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }
        self.copies: Counter[bytes] = Counter()

    def work(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        from tests.cluster.chaos.clients import is_record, told

        consumer = Consumer(self.settings)
        try:
            consumer.assign([TopicPartition(OUTPUT, 0, 0)])
            while not self.stopping.is_set():
                for message in consumer.consume(500, 0.1):
                    if is_record(self.name, message):
                        _, offset, name = told(message)
                        self.copies[name] += 1
                        self.progress += 1
                        self.judge.counts["copies read"] += 1
                        if self.copies[name] > 1:
                            raise Broken(Property.ONCE, f"{name!r} was copied twice, again at {offset}")
        finally:
            consumer.close()

    def lacks(self) -> list[str]:
        """Say which records of the input were not copied yet."""
        with self.judge.lock:
            known = self.judge.ledgers[INPUT, 0].places.keys()
        if extra := self.copies.keys() - known:
            raise Broken(Property.ATOMIC, f"copies without an original: {sorted(extra)[:3]}")
        missing = known - self.copies.keys()
        return [f"{len(missing)} records were not copied: {sorted(missing)[:3]}"] if missing else []
