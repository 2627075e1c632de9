"""Rounds of faults under load: after each the cluster must be well again, and at the end all promises kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Self

from moldau.client import Client, ClientError
from moldau.wire import messages as m
from tests.cluster.chaos import java
from tests.cluster.chaos.clients import GroupMember, IdempotentProducer, Reader, Transactor, Worker
from tests.cluster.chaos.faults import FAULTS, Chaos, Nodes
from tests.cluster.chaos.judge import Judge
from tests.cluster.chaos.mixed_nodes import Mixed
from tests.cluster.simulation.properties import Broken, Property

PARTITIONS = 3
PLAIN, ATOMIC = "plain", "atomic"
TOPICS = {PLAIN: PARTITIONS, ATOMIC: PARTITIONS}
WELL_S = 120.0
END_S = 30.0
JAVA = java.VerifiableConsumer, java.Copier
LOOK_S = 0.1
SETTINGS = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "1500",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.min.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "log.segment.bytes": str(1 << 20),
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "auto.create.topics.enable": "false",
}


class Trial:
    """A cluster, those who use it, and the judge."""

    def __init__(self, nodes: Nodes, seed: int, libs: Path | None = None) -> None:
        """`libs`: where Kafka's jars are, if its tools are to use the cluster too."""
        self.nodes = nodes
        self.random = Random(seed)
        self.chaos = Chaos(nodes, self.random)
        self.judge = Judge(TOPICS | (java.TOPICS if libs else {}))
        self.faults: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}  # seconds from the end of a fault until all was well
        self.client = Client({"bootstrap.servers": nodes.bootstrap_servers})
        servers = nodes.bootstrap_servers
        self.members = [
            GroupMember(f"{protocol}-{number}", self.judge, servers, protocol, PLAIN, **settings)
            for protocol, settings in GROUPS.items()
            for number in (1, 2)
        ]
        self.reader = Reader("reader", self.judge, servers, ATOMIC, PARTITIONS)
        self.writers: list[IdempotentProducer] = [
            *(IdempotentProducer(f"p{number}", self.judge, servers, PLAIN, PARTITIONS) for number in (1, 2)),
            *(Transactor(f"t{number}", self.judge, servers, ATOMIC, PARTITIONS, seed + number) for number in (1, 2)),
        ]
        for writer in self.writers:
            # Three Kafka nodes refuse producers for their sequence too, after `kill -9` of all.
            writer.begins_anew = isinstance(nodes, Mixed)
        self.sources = [java.VerifiableProducer("java-p", self.judge, servers, libs)] if libs else []
        self.tools = [one(one.main, self.judge, servers, libs) for one in JAVA] if libs else []
        self.copies = [java.CopyReader("copies", self.judge, servers)] if libs else []

    @property
    def workers(self) -> list[Worker]:
        return [*self.writers, *self.members, self.reader, *self.sources, *self.tools, *self.copies]

    def __enter__(self) -> Self:
        create_topics(self.client, TOPICS | ({**java.TOPICS, java.OUTPUT: 1} if self.tools else {}))
        for group in GROUPS:
            self.put_at_start(group)
        for worker in self.workers:
            worker.start()
        self.await_well("set up")
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.end()
        for worker in self.workers:
            worker.join(END_S)
        self.client.close()

    def put_at_start(self, group: str) -> None:
        """Commit 0 everywhere: from now on the group has a position, and must not lose it."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.nodes.bootstrap_servers, "group.id": group, "log_level": 0}
        consumer = Consumer(settings)
        try:
            offsets = [TopicPartition(PLAIN, index, 0) for index in range(PARTITIONS)]
            wait_for(lambda: commits(consumer, offsets), f"{group} cannot commit", 30)
        finally:
            consumer.close()

    def round(self, name: str | None = None) -> str:
        """Let something befall the cluster, end it, and look whether all is well again. Returns what it was."""
        chances = [often for often, _ in FAULTS.values()]
        name = name or self.random.choices(list(FAULTS), chances)[0]
        self.faults[name] += 1
        FAULTS[name][1](self.chaos)
        self.chaos.calm()
        began = time.monotonic()
        self.await_well(name)
        self.slowest[name] = max(self.slowest.get(name, 0.0), time.monotonic() - began)
        self.judge.audit(self.client, self.nodes.brokers)
        return name

    def await_well(self, after: str) -> None:
        """Wait until every replica is in sync, and everybody who uses the cluster gets on."""
        before = {worker: worker.progress for worker in self.workers}

        def meanwhile() -> None:
            self.check_workers()
            self.chaos.put_back_late(self.client)

        wait_for(lambda: unwell(self.client, len(self.nodes.brokers)), f"after {after}", WELL_S, meanwhile)
        stuck = lambda: [w.name for w in self.workers if w.progress == before[w] and w.is_alive()]  # noqa: E731
        wait_for(stuck, f"no progress after {after}", WELL_S, self.check_workers)

    def check_workers(self) -> None:
        for worker in self.workers:
            worker.check()

    def finish(self) -> None:
        """End the load, let readers read to the end, and check all promises."""
        for worker in (*self.writers, *self.sources):
            worker.end()
        for worker in (*self.writers, *self.sources):
            worker.finish()
        self.judge.audit(self.client, self.nodes.brokers)
        wait_for(self.open_transactions, "transactions do not end", WELL_S, self.look_again)
        self.judge.audit(self.client, self.nodes.brokers, anew=True)
        wait_for(lambda: self.judge.check_readers("reader", [ATOMIC]), "", WELL_S, self.check_workers)
        for group, topic in (*((group, PLAIN) for group in GROUPS), (java.GROUP, java.INPUT)):
            wait_for(lambda group=group, topic=topic: self.judge.lacks(group, [topic]), "", WELL_S, self.check_workers)
        for copies in self.copies:
            wait_for(copies.lacks, "", WELL_S, self.check_workers)
        for worker in self.workers:
            worker.finish()
        self.judge.check()
        verify(self.nodes.bootstrap_servers)

    def look_again(self) -> None:
        self.judge.audit(self.client, self.nodes.brokers)

    def open_transactions(self) -> list[str]:
        with self.judge.lock:
            return [str(one) for one in self.judge.transactions if None in self.judge.outcomes(one)]


GROUPS: dict[str, dict[str, Any]] = {
    "classic": {"session_timeout_ms": 6000, "heartbeat_interval_ms": 500},
    "consumer": {"group_protocol": "consumer"},
}


def commits(consumer: Any, offsets: list[Any]) -> list[str]:
    from confluent_kafka import KafkaException

    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        return [str(error)]
    return []


def create_topics(client: Client, topics: dict[str, int]) -> None:
    rows = [m.CreateTopicsRequest_CreatableTopic(name, count, 3) for name, count in topics.items()]
    client.send(m.CreateTopicsRequest(rows, 30_000))
    wait_for(lambda: unwell(client, 3), "topics", WELL_S)


def unwell(client: Client, count: int) -> list[str]:
    """Say what is not as it should be: brokers that are missing, partitions that are not in sync everywhere."""
    try:
        answer = client.send(m.MetadataRequest(None), timeout_s=5)
    except ClientError as error:
        return [str(error)]
    found = [f"{len(answer.brokers)} brokers"] if len(answer.brokers) != count else []
    for topic in answer.topics:
        for part in topic.partitions:
            if part.leader_id < 0 or not len(part.isr_nodes) == len(part.replica_nodes) == count:
                where = f"leader {part.leader_id}, replicas {part.replica_nodes}, ISR {part.isr_nodes}"
                found.append(f"{topic.name}-{part.partition_index}: {where}")
    return found or ([] if answer.topics else ["no topics"])


def wait_for(
    problems: Callable[[], list[str]], what: str, seconds: float, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Wait until there are no problems any more."""
    deadline = time.monotonic() + seconds
    while found := problems():
        meanwhile()
        if time.monotonic() > deadline:
            raise Broken(Property.GOES_ON, f"{what}: {'; '.join(found[:5])}")
        time.sleep(LOOK_S)


def verify(servers: str) -> None:
    """Let `moldau cluster verify` compare all replicas, those of internal topics too."""
    command = [sys.executable, "-m", "moldau", "cluster", "verify", "--bootstrap-servers", servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ)
    if done.returncode:
        raise Broken(Property.ONE_HISTORY, done.stdout + done.stderr)
