"""What a cluster carries while its nodes are replaced: programs of Kafka's and groups, and what they saw of it.

Records flow in two ways. `numbers`: Kafka's VerifiableProducer writes it; groups of both protocols and a share group
read it. `source` to `copies`: Kafka's TransactionalMessageCopier moves records in transactions.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.wire.records import batches, records
from tests.cli.kafka.running import run
from tests.cluster.clients import logs_of, place
from tests.cluster.mixed import Cluster, eventually
from tests.conformance.differential.brokers import LOGGING
from tests.conformance.java_tools import MAIN

NUMBERS, SOURCE, COPIES = "numbers", "source", "copies"
PARTITIONS, RATE, PREFILLED = 4, 200, 40_000
GROUPS = {"readers-classic": "classic", "readers-consumer": "consumer"}
MEMBERS = 2
COMMIT = 1  # in the key of a transaction's marker
SHARE = "sharers"
STOP_S = 90.0
MOVES_S = 120.0
JAVA = ["java", "-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *LOGGING]
IDEMPOTENT = "enable.idempotence=true\nretries=2147483647\nmax.in.flight.requests.per.connection=5\nlinger.ms=5\n"


@dataclass
class Program:
    """A program of Kafka's that runs until it is told to stop, and writes lines of JSON."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes]
    position: int = 0  # up to which its output has been read
    told: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def failures(self) -> str:
        return (self.folder / f"{self.name}.err").read_text()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what it has told under a name; a line that is still being written is left out."""
        with (self.folder / f"{self.name}.out").open("rb") as printed:
            printed.seek(self.position)
            text, end, _ = printed.read().rpartition(b"\n")
        self.position += len(text) + len(end)
        for line in text.splitlines():
            if line.startswith(b"{"):
                event = json.loads(line)
                self.told[event.get("name", "")].append(event)
        return self.told[name]

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_S)


@contextmanager
def program(libs: Path, folder: Path, tool: str, *words: str) -> Iterator[Program]:
    """Run one of Kafka's programs; it is ended whatever happens."""
    with (folder / f"{tool}.out").open("wb") as out, (folder / f"{tool}.err").open("wb") as err:
        command = [*JAVA, "-cp", f"{libs}/*", MAIN[tool], *words]
        process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
    try:
        yield Program(tool, folder, process)
    finally:
        process.kill()
        process.wait(STOP_S)


class Reader(threading.Thread):
    """A member of a group that reads `numbers`, and remembers what it read in its order and what went wrong."""

    def __init__(self, made: Cluster, group: str, protocol: str) -> None:
        super().__init__(daemon=True)
        self.group = group
        self.read: list[tuple[int, int, int]] = []  # partition, offset, number
        self.errors: list[str] = []
        self.assignments = 0
        self.ends = threading.Event()
        settings = made.client(group_id=group, group_protocol=protocol, auto_offset_reset="earliest")
        self.consumer = Consumer(settings | {"error_cb": self.failed, "log_level": 0})

    def failed(self, error: Any) -> None:
        """Connections that break are nothing that a program must act on."""
        if error.fatal():
            self.errors.append(str(error))

    def assigned(self, *_: Any) -> None:
        self.assignments += 1

    def run(self) -> None:
        self.consumer.subscribe([NUMBERS], on_assign=self.assigned)
        while not self.ends.is_set():
            for record in self.consumer.consume(500, 0.2):
                if record.error():
                    self.errors.append(str(record.error()))
                else:
                    self.read.append(row(record))
        self.consumer.close()

    def stop(self) -> None:
        self.ends.set()
        self.join(STOP_S)
        assert not self.is_alive(), f"a member of {self.group} does not end"


@dataclass
class Load:
    """All that runs, and the judgement of it."""

    made: Cluster
    producer: Program
    copier: Program
    sharer: Program
    readers: list[Reader] = field(default_factory=list[Reader])

    def progress(self) -> dict[str, int]:
        """Return how far everybody is."""
        groups: dict[str, int] = defaultdict(int)
        for reader in self.readers:
            groups[reader.group] += len(reader.read)
        return {
            "produced": len(self.producer.events("producer_send_success")),
            "copied": len(self.copier.events("")),
            "shared": len(self.sharer.events("offsets_acknowledged")),
            **groups,
        }

    def check(self) -> None:
        """See that nobody has been told of an error, and that everybody goes on."""
        before = self.progress()
        eventually(lambda: all(count > before[name] for name, count in self.progress().items()), MOVES_S)
        self.check_errors()

    def check_errors(self) -> None:
        assert self.producer.events("producer_send_error") == []
        assert [error for reader in self.readers for error in reader.errors] == []
        for running in (self.producer, self.copier, self.sharer):
            assert "Exception" not in running.failures, running.failures[-2000:]

    def longest_gap_ms(self) -> int:
        """Return the longest time without an acknowledged record."""
        times = [event["timestamp"] for event in self.producer.events("producer_send_success")]
        return max(later - sooner for sooner, later in pairwise(times))

    def finish(self) -> None:
        """Stop writing, let everybody read to the end, and judge."""
        self.producer.stop()
        acked = self.producer.events("producer_send_success")
        assert self.producer.events("tool_data")[-1]["sent"] == len(acked)
        written = {(event["partition"], event["offset"]): int(event["value"]) for event in acked}
        assert sorted(written.values()) == list(range(len(acked))), "each number is acknowledged once"
        assert stored(self.made, NUMBERS) == written, "what was acknowledged is there, where it was said to be, once"
        for group in GROUPS:
            self.check_group(group, written)
        self.check_shared(set(written))
        self.copier.stop()
        self.check_copies()
        self.check_errors()

    def check_group(self, group: str, written: dict[tuple[int, int], int]) -> None:
        """Every record was read once, in order; whoever joins now has nothing left to read."""
        members = [reader for reader in self.readers if reader.group == group]
        eventually(lambda: sum(len(reader.read) for reader in members) >= len(written), MOVES_S)
        for reader in members:
            reader.stop()
        read = [row for reader in members for row in reader.read]
        assert len(read) == len(written), f"{group} has read {len(read) - len(written)} records twice"
        assert {(partition, offset): number for partition, offset, number in read} == written
        for reader in members:
            for index in range(PARTITIONS):
                offsets = [offset for partition, offset, _ in reader.read if partition == index]
                assert offsets == sorted(offsets)
        asker = Consumer(self.made.client(group_id=group))
        try:
            committed = asker.committed([TopicPartition(NUMBERS, index) for index in range(PARTITIONS)], 30)
            ends = {index: 1 + max(at for part, at in written if part == index) for index in range(PARTITIONS)}
            assert {one.partition: one.offset for one in committed} == ends, f"{group} goes on where it was"
        finally:
            asker.close()

    def check_shared(self, written: set[tuple[int, int]]) -> None:
        """Every record was given out, and nothing is left to do.

        Acknowledgements to a leader that goes away may fail, as in Kafka; what it has not taken is given out again.
        """

        def taken() -> set[tuple[int, int]]:
            rows = (row for event in self.sharer.events("records_consumed") for row in event["partitions"])
            return {(row["partition"], offset) for row in rows for offset in row["offsets"]}

        def lag() -> list[str]:
            done = run("kafka-share-groups", "--bootstrap-server", self.made.bootstrap, "--describe", "--group", SHARE)
            return [line.split()[-1] for line in done.lines() if NUMBERS in line]

        eventually(lambda: taken() >= written, MOVES_S)
        assert taken() == written
        eventually(lambda: lag() == ["0"] * PARTITIONS, MOVES_S)
        failed = sum(not event["success"] for event in self.sharer.events("offsets_acknowledged"))
        print(f"acknowledgements of the share group that failed: {failed}")
        self.sharer.stop()

    def check_copies(self) -> None:
        """The copies that were committed are the beginning of the source; no transaction but the last was aborted."""
        copied = list(read_committed(self.made, COPIES))
        assert copied == list(range(len(copied))) and copied
        aborted = [batch for batch in control_batches(self.made, COPIES) if not is_commit(batch)]
        assert len(aborted) <= 1, f"{len(aborted)} transactions failed"


def row(record: Any) -> tuple[int, int, int]:
    """Return partition, offset and number of a record."""
    return record.partition(), record.offset(), int(record.value())


def stored(made: Cluster, topic: str) -> dict[tuple[int, int], int]:
    """Return the numbers of a topic by partition and offset, read without a group."""
    consumer = Consumer(made.client(group_id="judge"))
    parts = [TopicPartition(topic, index, 0) for index in range(PARTITIONS)]
    count = sum(consumer.get_watermark_offsets(part, 30)[1] for part in parts)
    consumer.assign(parts)
    found: dict[tuple[int, int], int] = {}
    try:
        while len(found) < count and (records := consumer.consume(1000, 30)):
            for record in records:
                assert not record.error(), record.error()
                partition, offset, number = row(record)
                found[partition, offset] = number
    finally:
        consumer.close()
    return found


def read_committed(made: Cluster, topic: str) -> Iterator[int]:
    """Yield the committed numbers of a topic with one partition, to its end."""
    settings = made.client(group_id="judge", isolation_level="read_committed", enable_partition_eof=True)
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        while records := consumer.consume(1000, 30):
            for record in records:
                if record.error():
                    return
                yield row(record)[2]
    finally:
        consumer.close()


def control_batches(made: Cluster, topic: str) -> list[Any]:
    """Return the markers of transactions on the disk of the first broker."""
    node = next(one.id for one in made.members.values() if "broker" in one.roles)
    return [batch for batch in batches(logs_of(made, node, topic)[0]) if batch.is_control]


def is_commit(batch: Any) -> bool:
    (marker,) = records(batch)
    return int.from_bytes((marker.key or b"")[2:4], "big") == COMMIT


@contextmanager
def load(made: Cluster, libs: Path, folder: Path) -> Iterator[Load]:
    """Make the topics and start everybody; wait until all of them have begun."""
    brokers = [one.id for one in made.members.values() if "broker" in one.roles]
    place(made, NUMBERS, brokers, PARTITIONS, min_insync_replicas=str(len(brokers) - 1))
    place(made, SOURCE, brokers)
    place(made, COPIES, brokers, min_insync_replicas=str(len(brokers) - 1))
    prefill(made)
    config = folder / "producer.properties"
    config.write_text(IDEMPOTENT)
    where = ("--bootstrap-server", made.bootstrap)
    writing = (*where, "--topic", NUMBERS, "--throughput", str(RATE), "--acks", "-1", "--command-config", str(config))
    writing += ("--repeating-keys", "50")
    sharing = (*where, "--topic", NUMBERS, "--group-id", SHARE, "--offset-reset-strategy", "earliest")
    copying = ("--broker-list", made.bootstrap, "--input-topic", SOURCE, "--input-partition", "0")
    copying += ("--output-topic", COPIES, "--transactional-id", "copier", "--consumer-group", "copiers")
    with ExitStack() as stack:
        start = lambda tool, *words: stack.enter_context(program(libs, folder, tool, *words))  # noqa: E731
        running = Load(
            made,
            start("kafka-verifiable-producer", *writing),
            start("transactional-message-copier", *copying, "--transaction-size", "5"),
            start("kafka-verifiable-share-consumer", *sharing),
        )
        for group, protocol in GROUPS.items():
            running.readers += [Reader(made, group, protocol) for _ in range(MEMBERS)]
        stack.callback(lambda: [reader.ends.set() for reader in running.readers])
        for reader in running.readers:
            reader.start()
        eventually(lambda: all(running.progress().values()) and len(running.progress()) == 5, MOVES_S)
        yield running


def prefill(made: Cluster) -> None:
    """Write what the copier copies: it ends when it has copied what was there at its start."""
    producer = Producer(made.client(enable_idempotence=True, linger_ms=20))
    for number in range(PREFILLED):
        producer.produce(SOURCE, str(number), partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0
