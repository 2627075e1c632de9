"""The same files under Apache Kafka and here: each reads what the other wrote, after clean stops and after kills."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.log.answers import Isolation
from moldau.log.directory import Directory
from moldau.log.disk import Files, OsDisk
from moldau.log.log import Log
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.cluster import Cluster, Partition
from moldau.testing.ports import free_port
from moldau.wire import messages as m
from moldau.wire.records import Record, batches, build, records
from tests.broker.conftest import ManualClock, World
from tests.log.logs import NOW, TOPIC_ID, append, config, create, end, files_of, sequenced

pytestmark = pytest.mark.needs("java", "kafka-jars")

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class Kafka:
    """Apache Kafka on one folder: started, stopped and killed at will."""

    def __init__(self, libs: Path, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.data = folder / "data"
        self.java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*"]
        text = PROPERTIES.format(port=self.port, controller=free_port(), data=self.data)
        (folder / "server.properties").write_text(text)
        self.process: subprocess.Popen[bytes] | None = None
        self._java("kafka.tools.StorageTool", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", self._properties())

    def errors(self) -> list[str]:
        return [line for line in (self.folder / "broker.log").read_text().splitlines() if " ERROR " in line]

    def _properties(self) -> str:
        return str(self.folder / "server.properties")

    def _java(self, *arguments: str) -> None:
        subprocess.run([*self.java, *arguments], check=True, capture_output=True, timeout=120)

    def start(self) -> None:
        with (self.folder / "broker.log").open("ab") as out:
            command = [*self.java, "kafka.Kafka", self._properties()]
            self.process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.folder / "broker.log").read_text()[-3000:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise AssertionError("Kafka does not start")

    def stop(self, *, kill: bool = False) -> None:
        if self.process is not None:
            self.process.kill() if kill else self.process.terminate()
            self.process.wait(120)
            self.process = None

    def produce(self, values: list[bytes], **settings: str) -> None:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{self.port}", **settings})
        if "transactional.id" in settings:
            producer.init_transactions(60)
            producer.begin_transaction()
        for value in values:
            producer.produce("t", value, b"key", partition=0)
        assert producer.flush(60) == 0
        if "transactional.id" in settings:
            (producer.abort_transaction if settings["client.id"] == "abort" else producer.commit_transaction)(60)

    def consume(self, count: int) -> list[bytes | None]:
        """The first records that a reader of committed records sees."""
        settings = {"bootstrap.servers": f"127.0.0.1:{self.port}", "group.id": "g", "isolation.level": "read_committed"}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", 0, 0)])
        found: list[bytes | None] = []
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found.append(message.value())
        consumer.close()
        return found


@pytest.fixture
def kafka(kafka_libs: Path, tmp_path: Path) -> Iterator[Kafka]:
    broker = Kafka(kafka_libs, tmp_path)
    broker.start()
    yield broker
    broker.stop(kill=True)


def moldau(data: Path) -> tuple[Directory, Log]:
    directory = Directory(Files(OsDisk()), str(data))
    directory.open()
    assert directory.offline is None
    log = directory.load("t", 0, config(segment_bytes=8_000), now_ms=int(time.time() * 1000))
    assert log.offline is None, log.offline
    log.advance_high_watermark(log.end_offset)
    return directory, log


def committed(log: Log) -> list[bytes | None]:
    """What a reader of committed records sees, judged by the log's own list of aborted transactions."""
    found: list[bytes | None] = []
    offset = log.start_offset
    while (read := log.read(offset, 1 << 20, isolation=Isolation.COMMITTED)).span:
        aborted = dict(read.aborted or ())
        for batch in batches(read.span.read()):
            batch.verify()
            offset = batch.next_offset
            if batch.is_control:
                aborted.pop(batch.producer_id, None)
            elif batch.base_offset < aborted.get(batch.producer_id, 2**63):
                found += [record.value for record in records(batch)]
    return found


def partitions(data: Path) -> list[Partition]:
    """All partitions as the metadata log describes them."""
    cluster = Cluster()
    for segment in sorted((data / "__cluster_metadata-0").glob("*.log")):
        for batch in batches(segment.read_bytes()):
            for record in [] if batch.is_control else records(batch):
                cluster.replay(metadata_records.decode(record.value or b""))
    return [part for topic in cluster.topics.values() for part in topic.partitions.values()]


def serve_all(data: Path) -> bytes:
    """Start a node where Kafka has stopped: it leads every partition. Return the value of a record that it took."""
    before = partitions(data)
    assert len(before) >= 2, "a topic and transactions"
    assert {(part.leader, part.isr, part.eligible_leaders) for part in before} == {(-1, (), (1,))}
    world = World(data, clock=ManualClock(time.time() * 1000))
    parts = [part for topic in world.node.cluster.topics.values() for part in topic.partitions.values()]
    for old, new in zip(before, parts, strict=True):
        assert (new.leader, new.isr, new.eligible_leaders, new.last_known_leaders) == (1, (1,), (), ())
        assert (new.leader_epoch, new.partition_epoch) == (old.leader_epoch + 1, old.partition_epoch + 1)
    batch = bytes(build([Record(0, int(time.time() * 1000), b"key", b"ours")]))
    produced = [m.ProduceRequest_PartitionProduceData(0, batch)]
    topic = m.ProduceRequest_TopicProduceData(name="t", partition_data=produced)
    answer = world.call(m.ProduceRequest(None, -1, 1000, [topic]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    world.node.stop()
    epoch = json.loads((data / ".kafka_cleanshutdown").read_text())
    assert epoch == {"version": 0, "brokerEpoch": world.node.cluster.brokers[1].epoch}
    return b"ours"


def test_kafkas_dump_reads_all_files(kafka_libs: Path, tmp_path: Path) -> None:
    log = create(tmp_path, config(segment_bytes=10_000, index_interval_bytes=500))
    for i in range(200):
        append(log, sequenced(i, compression=i % 5, timestamp=NOW + i), epoch=i // 50)
    append(log, sequenced(0, producer_id=9, transactional=True), epoch=4)
    end(log, False, producer_id=9)
    log.close()
    names = [name for name in files_of(tmp_path) if name[:20].isdigit()]
    assert {name[20:] for name in names} == {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    dump = ["java", "-cp", f"{kafka_libs}/*", "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration"]
    files = ",".join(f"{tmp_path}/t-0/{name}" for name in names)
    done = subprocess.run([*dump, "--files", files], check=True, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("| offset:")] == [str(i) for i in range(202)]
    assert not [line for line in lines if "ismatch" in line or "out of order" in line or "xception" in line]
    assert any("producerId: 9 firstOffset: 200 lastOffset: 201 lastStableOffset: 202" in line for line in lines)
    assert any(line.startswith("producerId: 7 producerEpoch: 0") and "lastSequence: 199" in line for line in lines)
    assert "Found timestamp mismatch" not in done.stdout + done.stderr


def test_a_partition_goes_from_kafka_to_moldau_and_back(kafka: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    topic = NewTopic("t", 1, 1, config={"segment.bytes": "1048576"})
    admin.create_topics([topic])["t"].result(60)
    expected: list[bytes | None] = [b"%d" % i * 50 for i in range(2000)]
    kafka.produce([value for value in expected if value], **{"enable.idempotence": "true", "compression.type": "lz4"})
    kafka.produce([b"never"] * 5, **{"transactional.id": "x", "client.id": "abort"})
    kafka.produce([b"done"] * 5, **{"transactional.id": "x", "client.id": "commit"})
    expected += [b"done"] * 5
    kafka.stop()

    directory, log = moldau(kafka.data)
    assert directory.clean
    assert committed(log) == expected
    assert len(log.producers.by_id) == 2
    for i in range(300):
        append(log, sequenced(i, producer_id=990), epoch=log.leader_epochs.latest, now_ms=NOW)
    append(log, sequenced(0, producer_id=991, transactional=True), epoch=log.leader_epochs.latest)
    end(log, False, producer_id=991)
    assert len(log.segments) > 1
    expected += [b"v%d" % i for i in range(300)]
    directory.close()

    expected.append(serve_all(kafka.data))

    kafka.start()  # after our clean stop
    assert kafka.consume(len(expected)) == expected
    kafka.produce([b"more"], **{"enable.idempotence": "true"})
    expected += [b"more"]
    kafka.stop(kill=True)
    assert {(part.leader, part.isr, part.recovery_state) for part in partitions(kafka.data)} == {(1, (1,), 0)}

    directory, log = moldau(kafka.data)  # after Kafka's crash
    assert not directory.clean
    assert committed(log) == expected
    append(log, sequenced(300, producer_id=990), epoch=log.leader_epochs.latest)
    expected += [b"v300"]
    directory.release_lock()  # and after ours

    kafka.start()
    assert kafka.consume(len(expected)) == expected
    assert not [line for line in kafka.errors() if "slow controller event" not in line]  # the machine may be busy


def test_what_a_new_partition_says_of_its_topic_is_what_kafka_writes(tmp_path: Path) -> None:
    create(tmp_path)
    assert files_of(tmp_path)["partition.metadata"] == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    assert bytes(range(16)) == TOPIC_ID
