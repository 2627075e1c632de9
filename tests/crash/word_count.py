"""kill -9 under a word count of Kafka Streams that runs exactly once: each occurrence of a word is counted once.

The application (java/WordCount.java) has a repartition topic, a store with a changelog, and transactions over all of
them. It writes a count for each occurrence of a word, so that a reader of committed records must find 1, 2, 3 ... for
every word: a record that is lost, doubled, or read although its transaction was aborted shows at once.
"""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau import testing

NEEDS = ("java", "javac", "kafka-jars")
PROTOCOLS = ("classic", "streams")
SOURCE = Path(__file__).parent / "java" / "WordCount.java"
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
BROKER = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
APPLICATION = {
    "application.id": "word-count",
    "processing.guarantee": "exactly_once_v2",
    "num.stream.threads": "2",
    "commit.interval.ms": "100",
    "statestore.cache.max.bytes": "0",
    "auto.offset.reset": "earliest",
    "replication.factor": "-1",
}
INPUT, OUTPUT, PARTITIONS = "input", "output", 3
WORDS = [f"word{number}" for number in range(40)]
LINES = (20, 200)  # in each round
LOAD_S = (0.0, 0.8)  # from the last line to the kill
PATIENCE_S = 90.0


class Trial:
    """The broker, or a cluster of some, the application, and what it must have counted."""

    def __init__(self, kafka_libs: Path, protocol: str = "classic", seed: int = 1, brokers: int = 1) -> None:
        self.random = random.Random(seed)
        self.brokers = brokers
        self.libs = kafka_libs
        self.protocol = protocol
        self.expected: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self.context = self.started()
        self.broker = self.context.__enter__()
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(topic, PARTITIONS) for topic in (INPUT, OUTPUT)]).values():
            made.result(PATIENCE_S)
        servers = {"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0}
        self.producer = Producer({**servers, "enable.idempotence": True, "linger.ms": 1})
        self.reader = Consumer({**servers, "group.id": "reader", "isolation.level": "read_committed"})
        self.reader.assign([TopicPartition(OUTPUT, index, 0) for index in range(PARTITIONS)])
        self.folder = tempfile.TemporaryDirectory(prefix="word-count-")
        self.application = self.start_application()
        return self

    def __exit__(self, *error: Any) -> None:
        """The application is not asked to close: in a rebalance it would wait for members that are gone."""
        self.application.kill()
        self.application.communicate()
        self.reader.close()
        self.context.__exit__(*error)
        self.folder.cleanup()

    def started(self) -> AbstractContextManager[testing.Broker | testing.Cluster]:
        return testing.broker(BROKER) if self.brokers == 1 else testing.cluster(self.brokers, BROKER, proxied=False)

    def start_application(self) -> subprocess.Popen[bytes]:
        settings = {
            **APPLICATION,
            "bootstrap.servers": self.broker.bootstrap_servers,
            "group.protocol": self.protocol,
            "state.dir": f"{self.folder.name}/state",
        }
        arguments = [f"{name}={value}" for name, value in settings.items()]
        command = ["java", *JVM, "-cp", f"{self.libs}/*", str(SOURCE), *arguments]
        with open(f"{self.folder.name}/log", "ab") as log:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def stop_application(self) -> None:
        """Ask it to close, which it does by itself when nobody holds its stdin."""
        assert self.application.stdin is not None
        self.application.stdin.close()
        self.application.wait(60)

    def start_anew(self) -> None:
        """Start the application without its local state, which must then count everything again."""
        shutil.rmtree(f"{self.folder.name}/state", ignore_errors=True)
        self.seen.clear()
        self.application = self.start_application()

    @property
    def log(self) -> str:
        return Path(self.folder.name, "log").read_text(errors="replace")

    def round(self) -> None:
        """Words, kill -9 while they are counted, start again; then all of them must be there."""
        self.feed()
        time.sleep(self.random.uniform(*LOAD_S))
        self.kill_a_broker()
        self.check()

    def kill_a_broker(self) -> None:
        if isinstance(self.broker, testing.Broker):
            self.broker.kill()
            self.broker.restart()
        else:
            node = self.random.randint(1, self.brokers)
            self.broker.kill(node)
            time.sleep(self.random.uniform(*LOAD_S))
            self.broker.start_again(node)

    def feed(self) -> None:
        for number in range(self.random.randint(*LINES)):
            words = self.random.choices(WORDS, k=self.random.randint(1, 8))
            self.expected.update(words)
            self.producer.produce(INPUT, " ".join(words), partition=number % PARTITIONS)
        self.producer.poll(0)

    def check(self) -> None:
        """Read on until everything was counted; no count is left out and none comes twice."""
        assert self.producer.flush(PATIENCE_S) == 0, "not all words could be written"
        deadline = time.monotonic() + PATIENCE_S
        while self.seen != self.expected:
            for message in self.reader.consume(1000, 0.2):
                if message.error() is None:
                    self.take(message)
            late = f"{self.seen.total()} of {self.expected.total()} words are counted"
            assert time.monotonic() < deadline, f"{late}\n{self.log[-10_000:]}"
            assert self.application.poll() is None, f"the application ended: {late}\n{self.log[-10_000:]}"

    def take(self, message: Any) -> None:
        word, count = message.key().decode(), int(message.value())
        assert count == self.seen[word] + 1, f"{word} was counted {self.seen[word]} times, and now {count}"
        self.seen[word] = count
