"""`python -m tests.conformance.balancing`: the balancer on real clusters, with clients that must not notice.

Three brokers become five and three again, and a broker that was killed is healed, while a producer with acks=all and a
group of consumers are at work. Once with Moldau alone, once with Apache Kafka alone, once with both. It ends with exit
code 1 if anything was lost, a throttle stays, or the brokers are not balanced.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.admin import clusters, topics
from moldau.balance import throttles
from moldau.client import Client, check, messages
from moldau.testing.ports import free_ports
from tests import needs
from tests.cluster.mixed import KAFKA, MOLDAU, START_S, Cluster, Member, cluster, eventually

NEEDS = ("java", "kafka-jars")
BOTH = "broker,controller"
SCENARIOS = {
    "moldau": {1: (MOLDAU, BOTH), 2: (MOLDAU, BOTH), 3: (MOLDAU, BOTH)},
    "kafka": {1: (KAFKA, BOTH), 2: (KAFKA, "broker"), 3: (KAFKA, "broker")},
    "mixed": {1: (KAFKA, BOTH), 2: (MOLDAU, "broker"), 3: (KAFKA, "broker")},
}
TOPIC, PARTITIONS, READERS = "load", 9, 2
BULK, BULK_BYTES = "bulk", 30_000_000
PAUSE_S = 0.002
QUIET = {"log_level": 0}  # that brokers go away is meant
WAIT_S = 240.0
DRAIN = ("--drain", "4", "--drain", "5")


class Load:
    """A producer and a group of consumers, each in threads of its own, until `stop`."""

    def __init__(self, made: Cluster) -> None:
        self.made = made
        self.stopped = threading.Event()
        self.sent = 0
        self.failures: list[str] = []
        self.read: Counter[int] = Counter()
        self.threads = [threading.Thread(target=self.produce)]
        self.threads += [threading.Thread(target=self.consume) for _ in range(READERS)]
        for thread in self.threads:
            thread.start()

    def produce(self) -> None:
        producer = Producer(self.made.client(acks="all", enable_idempotence=True, linger_ms=5) | QUIET)
        while not self.stopped.is_set():
            done = lambda error, _: self.failures.append(str(error)) if error else None  # noqa: E731
            producer.produce(TOPIC, str(self.sent), partition=self.sent % PARTITIONS, on_delivery=done)
            self.sent += 1
            producer.poll(0)
            time.sleep(PAUSE_S)
        if producer.flush(60):
            self.failures.append("records were never acknowledged")

    def consume(self) -> None:
        consumer = Consumer(self.made.client(group_id="watchers", auto_offset_reset="earliest") | QUIET)
        consumer.subscribe([TOPIC])
        quiet_since = time.monotonic()
        while not self.stopped.is_set() or (len(self.read) < self.sent and time.monotonic() - quiet_since < 20):
            for record in consumer.consume(500, 0.5):
                if not record.error():
                    self.read[int(record.value() or b"-1")] += 1
                    quiet_since = time.monotonic()
        consumer.close()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join(120)
        assert not self.failures, self.failures[:3]
        lost = set(range(self.sent)) - self.read.keys()
        assert not lost, f"{len(lost)} of {self.sent} records were lost, among them {sorted(lost)[:5]}"
        twice = sum(count > 1 for count in self.read.values())
        tell(f"{self.sent} records sent and read, {twice} of them twice (groups may, after a change of coordinator)")


def tell(line: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {line}", flush=True)


def started(made: Cluster, *words: str) -> subprocess.Popen[str]:
    """Start a command of moldau."""
    command = [sys.executable, "-m", "moldau", *words, "-b", made.bootstrap]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ})


def run(made: Cluster, *words: str) -> str:
    process = started(made, *words)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, f"moldau {' '.join(words)}: {process.returncode}\n{out}"
    return out


def planned(made: Cluster, *words: str) -> dict[str, Any]:
    return json.loads(run(made, "cluster", "balance", "--plan", "-o", "json", *words))


def add(made: Cluster, kind: str, *nodes: int) -> None:
    """Add brokers, or start them again."""
    first = made.members[1]
    voters = ",".join(
        f"{one.id}@127.0.0.1:{one.controller_port}" for one in made.members.values() if "controller" in one.roles
    )
    for node in nodes:
        if node not in made.members:
            port, other = free_ports(2)
            one = Member(kind, node, "broker", first.folder.parent / f"node{node}", first.libs, port, other)
            made.members[node] = one
            one.write(voters, 3, {"default.replication.factor": "3"})
            one.format()
        made[node].start()
    for node in nodes:
        made[node].await_port()
    with client(made) as kafka:
        eventually(lambda: {*nodes} <= {one.id for one in clusters.described(kafka).brokers}, START_S)


def leave(made: Cluster, *nodes: int) -> None:
    """Stop brokers, which have nothing any more, and let the cluster forget them."""
    with client(made) as kafka:
        for node in nodes:
            made[node].leave()
            check(kafka.send(messages.UnregisterBrokerRequest(node)))
        eventually(lambda: not {*nodes} & {one.id for one in clusters.described(kafka, fenced=True).brokers}, START_S)


@contextmanager
def client(made: Cluster) -> Iterator[Client]:
    with Client({"bootstrap.servers": made.bootstrap}) as kafka:
        yield kafka


def fill(made: Cluster) -> None:
    """Make the topics, and put something into one that takes a while to be moved."""
    admin = AdminClient(made.client())
    new = [NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"}), NewTopic(BULK, 6, 3)]
    for future in admin.create_topics(new).values():
        future.result(60)
    producer = Producer(made.client())
    for number in range(BULK_BYTES // 10_000):
        producer.produce(BULK, os.urandom(10_000), partition=number % 6)
        producer.poll(0.001)
    assert producer.flush(60) == 0


def balanced(made: Cluster, brokers: set[int]) -> None:
    """Check that only these brokers have replicas, each its share, and that nothing is left behind."""
    facts = planned(made)
    replicas = {row["broker"]: row["replicas"]["before"] for row in facts["brokers"]}
    share = sum(replicas.values()) / len(brokers)
    assert {id for id, count in replicas.items() if count} == brokers, replicas
    assert all(0.7 * share <= replicas[id] <= 1.3 * share for id in brokers), replicas
    leaders = {row["broker"]: row["leaders"]["before"] for row in facts["brokers"]}
    tell(f"replicas {replicas}, leaders {leaders}, bytes left to move {facts['bytes']}")
    clean(made)


def clean(made: Cluster) -> None:
    """Check that no throttle is set, and every replica in sync."""
    with client(made) as kafka:
        listed = [throttles.Resource(throttles.Kind.BROKER, "")]
        listed += [throttles.Resource(throttles.Kind.TOPIC, one.name) for one in topics.listed(kafka)]
        assert not any(throttles.own(kafka, listed).values())
        eventually(lambda: not lagging(kafka), 60)


def lagging(kafka: Client) -> list[str]:
    found = [(topic.name, part) for topic in topics.listed(kafka) for part in topic.partitions]
    return [f"{name}-{part.index}" for name, part in found if part.is_under_replicated or part.leader < 0]


def killed_and_resumed(made: Cluster) -> None:
    """Kill the balancer while it moves, and let another process finish."""
    process = started(made, "cluster", "balance", "--throttle", "2MB")
    with client(made) as kafka:
        rates = [throttles.Resource(throttles.Kind.BROKER, "")]
        eventually(lambda: any(throttles.own(kafka, rates).values()), 120)
        time.sleep(1)
        process.kill()
        process.communicate()
        left = set(throttles.own(kafka, rates).values())
    assert process.returncode == -signal.SIGKILL and left, "it was to be killed on its way"
    tell(f"its throttle stayed: {left}; another process: {run(made, 'cluster', 'balance', '--resume').strip()}")


def healed(made: Cluster, node: int) -> None:
    """Let a balancer that runs for good carry out a plan; then kill a broker, and wait until its replicas are
    elsewhere."""
    process = started(made, "balancer", "--heal-after", "8s", "--look-every", "1s", "--throttle", "20MB")
    try:
        assert process.stdout is not None and "ready" in process.stdout.readline()
        tell(run(made, "cluster", "balance", "--throttle", "20MB").strip().splitlines()[-1])
        made[node].stop(signal.SIGKILL)
        begin = time.monotonic()
        with client(made) as kafka:

            def gone() -> bool:
                held = [part for topic in topics.listed(kafka) for part in topic.partitions if node in part.replicas]
                return not held and not lagging(kafka)

            eventually(gone, WAIT_S)
            tell(f"broker {node} was healed {time.monotonic() - begin:.0f} s after its end")
            time.sleep(3)
            clean(made)
    finally:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        print("".join(f"    {line}\n" for line in out.splitlines()), end="")
    assert process.returncode == 0, process.returncode


def scenario(libs: Path, folder: Path, name: str) -> None:
    nodes = SCENARIOS[name]
    newcomer = KAFKA if name == "kafka" else MOLDAU
    with cluster(libs, folder / name, nodes, default_replication_factor="3") as made:
        with client(made) as kafka:
            eventually(lambda: len(clusters.described(kafka).brokers) == len(nodes), START_S)
        fill(made)
        load = Load(made)
        steps: list[tuple[str, Callable[[], object]]] = [
            ("brokers 4 and 5 are added", lambda: add(made, newcomer, 4, 5)),
            ("the balancer is killed on its way", lambda: killed_and_resumed(made)),
            ("five brokers are balanced", lambda: run(made, "cluster", "balance", "--throttle", "20MB")),
            ("", lambda: balanced(made, {1, 2, 3, 4, 5})),
            ("brokers 4 and 5 are drained", lambda: run(made, "cluster", "balance", *DRAIN, "--throttle", "20MB")),
            ("", lambda: drained(made, {4, 5})),
            ("they leave", lambda: leave(made, 4, 5)),
            ("", lambda: balanced(made, {1, 2, 3})),
            ("broker 4 comes back", lambda: add(made, newcomer, 4)),
            ("a running balancer fills it and heals broker 3, which is killed", lambda: healed(made, 3)),
        ]
        try:
            for title, step in steps:
                if title:
                    tell(title)
                step()
        finally:
            load.stop()


def drained(made: Cluster, nodes: set[int]) -> None:
    facts = planned(made, *DRAIN)
    assert not sum(row["replicas"]["before"] for row in facts["brokers"] if row["broker"] in nodes)
    clean(made)


def main() -> int:
    lacking, libs = needs.missing(NEEDS), needs.find("kafka-jars").path
    chosen = sys.argv[1:] or list(SCENARIOS)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="moldau-balancing-") as scratch:
        for name in chosen:
            print(f"== {name}", flush=True)
            if lacking and any(kind == KAFKA for kind, _ in SCENARIOS[name].values()):
                print(f"left out: {lacking.tool}: {lacking.reason}")
                continue
            try:
                scenario(libs or Path(scratch), Path(scratch), name)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"FAILED {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
