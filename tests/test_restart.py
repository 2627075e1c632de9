"""`moldau restart --rolling` and `moldau up --brokers 3` as users have them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from moldau.admin import health
from moldau.admin.health import Trouble
from moldau.admin.topics import PartitionState, TopicState
from moldau.cli.restart import controller_last, stops
from moldau.cli.running_platforms import Record, Run, RunningPart, find
from moldau.client import Client, ClientError
from moldau.platform import CONTROLLERS, LOGS, PARTS
from moldau.testing import eventually
from tests.test_platform import free_offset, moldau, up

PORT = PARTS["broker"].port
WAIT_S = 120.0
META = "meta.properties"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "data"


@contextmanager
def three(home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    offset = free_offset()
    more = ("--set", "group.initial.rebalance.delay.ms=0")
    process = up("--brokers", "3", "--only", "broker", "--data-dir", str(home), "--port-offset", str(offset), *more)
    try:
        assert process.stdout is not None
        assert any(line.strip() == "ready" for line in process.stdout), process.communicate(timeout=60)[1]
        yield process, ",".join(f"127.0.0.1:{PORT + offset + number}" for number in range(3))
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=WAIT_S)


def pids() -> dict[str, int]:
    return {row["part"]: row["process"] for row in json.loads(moldau("status", "-o", "json").stdout)}


class Traffic:
    """A producer with acks=all, a consumer of a group, and somebody who looks whether a partition cannot be written to;
    in threads of their own, until they are stopped.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.topic, self.stopped = topic, threading.Event()
        self.sent, self.acknowledged = 0, list[int]()
        self.read, self.failures = dict[int, list[int]](), list[KafkaError]()
        common = {"bootstrap.servers": servers, "error_cb": self.failed}
        self.producer = Producer({**common, "acks": "all", "enable.idempotence": True, "linger.ms": 5})
        self.consumer = Consumer({**common, "group.id": "g", "auto.offset.reset": "earliest"})
        self.consumer.subscribe([topic])
        self.client, self.unwritable = Client({"bootstrap.servers": servers}), list[Trouble]()
        self.threads = [threading.Thread(target=body) for body in (self.produce, self.consume, self.watch)]

    def failed(self, error: KafkaError) -> None:
        if error.fatal():
            self.failures.append(error)

    def produce(self) -> None:
        while not self.stopped.wait(0.01):
            self.producer.produce(self.topic, str(self.sent), on_delivery=self.delivered)
            self.sent += 1
            self.producer.poll(0)
        self.producer.flush(WAIT_S)

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            value = message.value()
            assert value is not None
            self.acknowledged.append(int(value))

    def consume(self) -> None:
        while not (self.stopped.is_set() and self.seen >= self.sent):
            message = self.consumer.poll(0.2)
            if message is None:
                continue
            error, value, partition = message.error(), message.value(), message.partition()
            if error is not None:
                self.failures.append(error)
            else:
                assert value is not None and partition is not None
                self.read.setdefault(partition, []).append(int(value))

    def watch(self) -> None:
        while not self.stopped.wait(0.1):
            with suppress(ClientError):  # the broker that was asked has just stopped
                found = health.judge(health.look(self.client))
                self.unwritable += [one for one in found if one.reason in (health.NO_LEADER, health.UNDER_MIN_ISR)]

    @property
    def seen(self) -> int:
        return sum(map(len, self.read.values()))

    def __enter__(self) -> Traffic:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join(WAIT_S)
        self.consumer.close()
        self.client.close()


def test_clients_notice_nothing_of_a_rolling_restart_which_stops_where_it_is_not_safe(home: Path) -> None:
    with three(home) as (process, servers):
        first = servers.partition(",")[0]
        assert moldau("topic", "create", "t", "-p", "6", "-b", first).returncode == 0
        before = pids()
        with Traffic(servers, "t") as traffic:
            eventually(lambda: traffic.seen > 20, WAIT_S, "the first records")
            done = moldau("restart", "--rolling")
            assert done.returncode == 0, done.stderr
            then = traffic.seen
            eventually(lambda: traffic.seen > then + 20, WAIT_S, "records afterwards")
        assert done.stderr.count("is in sync") == 3 and "Restarted broker" in done.stdout
        assert not [name for name, pid in pids().items() if before[name] == pid]
        assert not traffic.failures and not traffic.unwritable
        assert sorted(traffic.acknowledged) == list(range(traffic.sent))
        assert sorted(one for values in traffic.read.values() for one in values) == list(range(traffic.sent))
        assert all(values == sorted(values) for values in traffic.read.values())

        logs = "".join(one.read_text() for one in (home / LOGS).glob("broker*.log"))
        assert "DUPLICATE_BROKER_REGISTRATION" not in logs, "nobody waited for the end of the session before"

        refused_while_one_is_silent(pids())
        stopped_when_one_does_not_come_back(home, process, servers)


def refused_while_one_is_silent(before: dict[str, int]) -> None:
    os.kill(before["broker-2"], signal.SIGSTOP)
    try:
        refused = moldau("restart", "--rolling")
    finally:
        os.kill(before["broker-2"], signal.SIGCONT)
    assert refused.returncode == 1
    assert "not safe to stop a broker" in refused.stderr
    assert re.search("broker 2: (silent|fenced)|says nothing", refused.stderr), refused.stderr
    assert pids() == before


def stopped_when_one_does_not_come_back(home: Path, process: subprocess.Popen[str], server: str) -> None:
    eventually(lambda: moldau("cluster", "health", "-b", server).returncode == 0, WAIT_S, "its health")
    leader = json.loads(moldau("cluster", "quorum", "-o", "json", "-b", server).stdout)["leader"]
    name, place = ("broker-2", home / "nodes" / "2") if leader == 1 else ("broker", home)  # it is the first
    text = (place / META).read_text()
    (place / META).write_text(re.sub("node.id=.", "node.id=77", text))
    before = pids()
    stopped = moldau("restart", "--rolling", "--patience", "2")
    assert stopped.returncode == 1
    assert f"After 2 s {name} is not back" in stopped.stderr and f"moldau logs {name}" in stopped.stderr
    others = {*before} - {name}  # it may take more than two seconds to end
    eventually(lambda: {one for one, pid in pids().items() if before[one] == pid} == others, WAIT_S, "its end")
    assert process.poll() is None, "the platform goes on without it"


@pytest.mark.parametrize(("more", "what"), [(1, "broker-2"), (CONTROLLERS + 2, "controller of broker-3")])
def test_a_taken_port_of_several_brokers_is_told_and_nothing_is_left_running(home: Path, more: int, what: str) -> None:
    port = PORT + free_offset() + more
    with socket.create_server(("127.0.0.1", port)):
        offset = str(port - PORT - more)
        process = up("--brokers", "3", "--only", "broker", "--data-dir", str(home), "--port-offset", offset)
        _, errors = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert f"Port {port}, for the {what}, is taken by process {os.getpid()} (" in errors
    assert "--port-offset" in errors
    assert moldau("status").returncode == 3
    assert not listening(port - more + one for one in range(3)), "nothing is left running"


def listening(ports: Iterator[int]) -> list[int]:
    return [port for port in ports if socket.socket().connect_ex(("127.0.0.1", port)) == 0]


def test_one_broker_cannot_be_restarted_in_turn(home: Path) -> None:
    assert "No platform is running" in moldau("restart", "--rolling").stderr
    assert "Give --rolling" in moldau("restart").stderr


def test_the_active_controller_is_restarted_last() -> None:
    brokers = [RunningPart(name, "", 1) for name in ("broker", "broker-2", "broker-3")]
    assert [part.name for part in controller_last(brokers, 1)] == ["broker-2", "broker-3", "broker"]
    assert [part.name for part in controller_last(brokers, 3)] == ["broker", "broker-2", "broker-3"]


def topic(name: str, *replicas: int) -> TopicState:
    parts = [PartitionState(0, 1, 0, replicas, replicas)]
    return TopicState(name, bytes(16), False, tuple(parts))


def test_topics_that_cannot_go_on_without_a_replica_are_told() -> None:
    found = [topic("alone", 1), topic("pair", 1, 2), topic("three", 1, 2, 3)]
    single, strict = stops(found, {"pair": 2, "three": 2, "alone": 1})
    assert "alone have a single replica" in single and "pair need all replicas" in strict
    assert stops([topic("three", 1, 2, 3)], {"three": 2}) == []


def test_a_platform_is_found_while_it_writes_its_file(home: Path) -> None:
    runs = [Run(os.getpid(), str(home), "logs", 1.0, (RunningPart("broker", "x" * size, 1),)) for size in (1, 9000)]
    stopped = threading.Event()

    def write() -> None:
        while not stopped.is_set():
            for run in runs:
                record.write(run)

    with Record() as record:
        record.write(runs[0])
        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert all(find(str(home)) in runs for _ in range(300))
        finally:
            stopped.set()
            thread.join()
