"""The loads of the coordinators: groups that share out partitions, commits of offsets, exactly-once copying."""

import contextlib
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from benchmarks import client, kafka, probe, topics
from benchmarks.brokers import Broker
from benchmarks.client import Options
from benchmarks.places import PROJECT, BenchError
from benchmarks.workloads import RUN_SECONDS, Effort, Sample, Samples, fill, load, measured

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
COPIER_JVM = ("java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
COPY_SECONDS = 120
WARM_SHARE = 0.3  # of the records that the Java copier copies before its rate counts: it compiles itself meanwhile
NUMBERS = itertools.count(1)
NO_SETTINGS: Mapping[str, str] = {}


def group_name() -> str:
    """A group that nobody had before, its name always of the same length."""
    return f"bench-group-{next(NUMBERS):06d}"


def per_request(sample: Sample) -> Sample:
    sample["cpu_us"] = sample["cpu"] / sample["n"] * 1e6
    return sample


def share_out(
    broker: Broker,
    effort: Effort,
    *,
    protocol: str,
    members: int,
    partitions: int,
    rounds: int,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Samples:
    """Raw members, a connection each; see members.c. `settings` are those of the brokers meanwhile."""
    rounds = max(3, effort.count(rounds))
    with topics.topic(broker, partitions) as topic, changed(broker, settings):
        while True:
            shape: Options = {"connections": members, "count": rounds, "topic": topic, "partitions": partitions}
            wait_for_coordinator(broker)
            sample = measured(broker, protocol, {"port": broker.port, "group": group_name()} | shape)
            yield per_request(sample)


@contextlib.contextmanager
def changed(broker: Broker, settings: Mapping[str, str]) -> Iterator[None]:
    """Dynamic settings of the brokers for the time of a block."""
    for name, value in settings.items():
        change(broker, name, value)
    try:
        yield
    finally:
        for name in settings if broker.alive else ():
            change(broker, name, None)


def change(broker: Broker, name: str, value: str | None) -> None:
    with socket.create_connection(("127.0.0.1", broker.port), 10) as connection:
        (error,) = struct.unpack_from(">h", probe.call(connection, probe.setting_frame(name, value)), 12)
    if error:
        raise BenchError(f"{broker.name} refused {name}={value} with error {error}.")


def wait_for_coordinator(broker: Broker) -> None:
    """A commit that succeeds: the offsets topic is there, and its coordinators are loaded."""
    with topics.topic(broker, 1) as topic:
        commit_once(broker, group_name(), topic, 1)


def commit_once(broker: Broker, group: str, topic: str, partitions: int) -> bytes:
    """The answer to a commit, as soon as it is a good one."""
    frame, good = probe.commit_frame(group, topic, partitions), probe.committed_answer(topic, partitions)
    deadline = time.monotonic() + RUN_SECONDS
    with socket.create_connection(("127.0.0.1", broker.port), 10) as connection:
        while time.monotonic() < deadline:
            probe.call(connection, probe.coordinator_frame(group))
            if probe.call(connection, frame) == good:
                return good
            time.sleep(0.05)
    raise BenchError(f"{broker.name} did not take a commit within {RUN_SECONDS} s.")


def flood_commits(broker: Broker, names: list[str], topic: str, partitions: int, count: int, depth: int) -> Sample:
    """Commits of all the partitions for one group after the other, over plain sockets; every answer is compared."""
    frame, answer = broker.home / "commit.frame", broker.home / "commit.answer"
    frame.write_bytes(b"".join(probe.commit_frame(name, topic, partitions) for name in names))
    for name in names[:8]:
        answer.write_bytes(commit_once(broker, name, topic, partitions))
    shape: Options = {"connections": 8, "depth": depth, "frame": str(frame), "answer": str(answer)}
    return measured(broker, "flood", {"port": broker.port, "count": count // 8 * 8} | shape)


def commits(broker: Broker, effort: Effort, *, count: int, partitions: int, depth: int) -> Samples:
    """Eight groups on eight connections, each commit of several partitions of one topic."""
    with topics.topic(broker, partitions) as topic:
        while True:
            names = [group_name() for _ in range(8)]
            yield per_request(flood_commits(broker, names, topic, partitions, effort.count(count), depth))


def member_commits(broker: Broker, effort: Effort, *, count: int, partitions: int, members: int) -> Samples:
    """librdkafka: members of as many groups, each with synchronous commits of all of its partitions."""
    count = effort.count(count) // members * members
    with topics.topic(broker, partitions) as topic:
        while True:
            shape: Options = {"group": group_name(), "connections": members, "count": count}
            options = load(broker, topic, count, 0, partitions) | shape | client.QUIET
            yield per_request(measured(broker, "commit", options))


def copying(
    broker: Broker, effort: Effort, *, count: int, size: int, run: Callable[[Broker, str, str, int], Sample]
) -> Samples:
    """Records of `size` bytes from one partition to another, in transactions of 1,000."""
    count = max(10_000, effort.count(count) // 1000 * 1000)
    with topics.topic(broker, 1) as source:
        fill(broker, load(broker, source, count, size, 1) | client.PRODUCE)
        while True:
            with topics.topic(broker, 1) as output:
                before = broker.cpu_seconds()
                sample = run(broker, source, output, count)
                sample["cpu_us"] = (broker.cpu_seconds() - before) / count * 1e6
                copied = topics.end_offset(broker, output)
            if copied != count + sample["transactions"]:  # a marker ends each
                raise BenchError(f"{broker.name} has {copied} records and markers where {count} were copied.")
            yield sample


def answer_of(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, timeout=COPY_SECONDS)
    if done.returncode:
        raise BenchError(f"A copier failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def copy_with_python(broker: Broker, source: str, output: str, count: int) -> Sample:
    command = [sys.executable, "-m", "benchmarks.copier", broker.address, source, output, str(count), "1000"]
    return json.loads(answer_of(command))


def copy_with_java(broker: Broker, source: str, output: str, count: int) -> Sample:
    """Kafka's own tool; its progress tells when it had copied how much."""
    options = {
        "--broker-list": broker.address,
        "--input-topic": source,
        "--input-partition": "0",
        "--output-topic": output,
        "--max-messages": str(count),
        "--consumer-group": output,
        "--transactional-id": output,
        "--transaction-size": "1000",
    }
    words = [word for pair in options.items() for word in pair]
    said = answer_of([*COPIER_JVM, "-cp", f"{kafka.libs()}/*", COPIER, *words])
    told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    times = {now["totalProcessed"]: moment(now["time"]) for now in reversed(told)}  # when it had copied so many
    warm = min((done for done in times if done >= count * WARM_SHARE), default=0)
    if max(times, default=0) != count or warm == count:
        raise BenchError(f"The Java copier did not come to its end: {said.strip()[-300:]}")
    # A transaction has at most 1,000 records, fewer where a fetch ends.
    return {"transactions": len(times) - 1, "per_second": (count - warm) / (times[count] - times[warm])}


def moment(text: str) -> float:
    """Seconds, from Java's 2026/11/15 07:49:01:123."""
    return datetime.strptime(text + "000", "%Y/%m/%d %H:%M:%S:%f").timestamp()


def restart_with_groups(broker: Broker, effort: Effort, *, groups: int, partitions: int) -> Samples:
    """A start with so many groups: exec to the first produce, and to the moment when every group is known."""
    groups = effort.count(groups) // 8 * 8
    while True:
        broker.wipe()
        broker.start()
        topics.create(broker, "read", partitions)
        flood_commits(broker, [f"bench-group-{n:06d}" for n in range(groups)], "read", partitions, groups, 4)
        broker.stop()
        os.sync()
        begin = time.monotonic()
        sample = {"start": broker.start()}
        wait_for_groups(broker, groups)
        sample["known"] = time.monotonic() - begin
        time.sleep(1)
        sample["rss"] = broker.rss_mb()
        broker.wipe()
        yield sample


def wait_for_groups(broker: Broker, groups: int) -> None:
    """Until ListGroups, which says so while any coordinator is being loaded, names them all."""
    deadline = time.monotonic() + RUN_SECONDS
    with socket.create_connection(("127.0.0.1", broker.port), 30) as connection:
        while time.monotonic() < deadline:
            error, found = struct.unpack_from(">hi", probe.call(connection, probe.frame(probe.LIST_GROUPS, b"")), 8)
            if not error and found >= groups:
                return
            time.sleep(0.02)
    raise BenchError(f"{broker.name} does not know its {groups} groups {RUN_SECONDS} s after the start.")
