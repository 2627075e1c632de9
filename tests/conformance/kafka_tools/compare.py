"""Playing a case on both sides, and what is left of their output once it is made alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from moldau.client import Client
from tests.cli.kafka import running as ours
from tests.conformance.java_tools import Tools
from tests.conformance.kafka_tools.cases import NUMBERS, SORTED, Case

WAIT_S = 120
FIRST_MS = 1_700_000_000_000
SIDES = ("java", "ours")
# Lines of a log, and of a trace: only Java has them.
NOISE = re.compile(r"exit \d+|Tools\$Ended.*|\[.*|\s+at .*|\s+\.\.\. .*|Caused by.*|The consumer rebalance protocol.*|")


class Said(NamedTuple):
    """What a side said, made alike: exit code, lines of output, and the first line of its complaint."""

    code: int
    out: tuple[str, ...]
    first: str


@dataclass(frozen=True, slots=True)
class Scene:
    """What the cases are about."""

    names: dict[str, str]
    run: Tools

    def said(self, case: Case, side: str) -> Said:
        words = [word.format(**self.names, own=self.own(side)) for word in case.words.split(" ") if word]
        if side == "java":
            done = self.run(case.tool, *words, stdin=case.stdin, check=False)
            return self.alike(case, side, done.exit, done.out, done.err)
        broker = () if "--bootstrap-server" in words else ("--bootstrap-server", self.names["servers"])
        mine = ours.run(case.tool, *broker, *words, stdin=case.stdin)
        return self.alike(case, side, mine.code, mine.out, mine.err)

    def own(self, side: str) -> str:
        return f"{self.names['topic']}-{side}"

    def alike(self, case: Case, side: str, code: int, out: str, err: str) -> Said:
        out = out.replace(self.own(side), self.own("side"))
        if case.how == NUMBERS:
            out = re.sub(r"Epoch: \d+", "Epoch: #", out)
            out = re.sub(r"\d{5,}", lambda number: "#" * len(number[0]), out)
            out = re.sub(r"#+ +\t|(?<=\t)\d+ +\t|(?<=Watermark:)\s+\d+|(?<=Lag:)\s+\d+", "#\t", out)
        lines = [line for line in out.splitlines() if not re.match(r"\s+at |Tools\$Ended", line)]
        told = [line for line in err.splitlines() if line.strip() and not NOISE.fullmatch(line)]
        first = told[0].replace(self.own(side), self.own("side")) if told else ""
        return Said(code, tuple(sorted(lines) if case.how == SORTED else lines), _without_class(first))


def _without_class(line: str) -> str:
    """Java names the class of what it throws; ours has the words alone. A usage line has blanks of its own."""
    line = re.sub(r"^(java|joptsimple|org)\.[\w.$]+(Exception|Error): ", "", line)
    return "usage" if line.startswith("usage:") else line


def differences(scene: Scene, case: Case) -> list[str]:
    """What differs; nothing if all is the same."""
    java, mine = scene.said(case, "java"), scene.said(case, "ours")
    found = []
    if java.code != mine.code:
        found.append(f"exit code {java.code} of Java, {mine.code} of ours")
    if java.out != mine.out:
        found.append("output\n" + "\n".join(_diff(java.out, mine.out)))
    if java.first != mine.first and "usage" not in (java.first, mine.first):
        found.append(f"complaint\n  java: {java.first}\n  ours: {mine.first}")
    return found


def _diff(java: Sequence[str], mine: Sequence[str]) -> Iterator[str]:
    from difflib import unified_diff

    yield from (f"  {line}" for line in unified_diff(java, mine, "java", "ours", lineterm="", n=0))


@contextmanager
def scene(run: Tools, stem: str, files: Path) -> Iterator[Scene]:
    """Make what the cases need on the tools' broker."""
    servers = run.bootstrap
    names = {name: f"{stem}-{name}" for name in ("group", "classic", "new", "txn", "share")}
    with Client({"bootstrap.servers": servers}) as client:
        broker = str(min(client.refresh().brokers))
    names |= {"topic": stem, "servers": servers, "files": str(files), "broker": broker}
    create(servers, [stem, *(f"{stem}-{stem}-{side}" for side in SIDES)])
    fill(servers, stem)
    commit(servers, names["group"], stem)
    write_files(files, stem, int(broker))
    with ExitStack() as stack:
        stack.enter_context(member(servers, names["classic"], stem, **{"client.id": "ada"}))
        new = {"group.protocol": "consumer", "client.id": "bob", "group.instance.id": "one"}
        stack.enter_context(member(servers, names["new"], stem, **new))
        transact(servers, names["txn"], stem)
        names["coordinator"] = str(coordinator(servers, names["group"]))
        yield Scene(names, run)


def create(servers: str, names: list[str]) -> None:
    for name in names:
        partitions = "3" if name == names[0] else "1"
        ours.Kafka(servers).ok("kafka-topics", "--create", "--topic", name, "--partitions", partitions)


def fill(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number in range(30):
        headers = [("h", b"x")] if number % 2 else None
        time_ms = FIRST_MS + number * 60_000
        producer.produce(topic, str(number), f"k{number}", partition=number % 3, timestamp=time_ms, headers=headers)
    assert producer.flush(WAIT_S) == 0


def commit(servers: str, group: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, index, 3 + index) for index in range(3)], asynchronous=False)
    consumer.close()


@contextmanager
def member(servers: str, group: str, topic: str, **config: Any) -> Iterator[None]:
    """A member that has all partitions, and keeps them."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, **config})
    consumer.subscribe([topic])
    settled, done = Event(), Event()

    def poll() -> None:
        while not done.is_set():
            consumer.poll(0.1)
            if not settled.is_set() and len(consumer.assignment()) == 3:
                # Not from another thread: it would wait for an answer that `poll` here has taken.
                consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
                settled.set()

    thread = Thread(target=poll)
    thread.start()
    try:
        assert settled.wait(WAIT_S), f"{group} did not settle"
        yield
    finally:
        done.set()
        thread.join()
        consumer.close()


def transact(servers: str, name: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, "in a transaction", partition=0)
    producer.commit_transaction(WAIT_S)


def coordinator(servers: str, group: str) -> int:
    """The partition of __consumer_offsets that has a group."""
    from moldau.admin import topics
    from moldau.wire.numbers import coordinator_hash

    with Client({"bootstrap.servers": servers}) as client:
        (found,) = topics.described(client, ["__consumer_offsets"])
    return coordinator_hash(group) % len(found.partitions)


def write_files(folder: Path, topic: str, broker: int) -> None:
    places = [{"topic": topic, "partition": index} for index in range(2)]

    def write(name: str, document: Any) -> None:
        (folder / name).write_text(json.dumps(document))

    write("delete.json", {"version": 1, "partitions": [{**places[1], "offset": 1}]})
    write("elect.json", {"partitions": [*places, {"topic": topic, "partition": 77}]})
    write("plan.json", {"version": 1, "partitions": [{**place, "replicas": [broker]} for place in places]})
    write("topics.json", {"version": 1, "topics": [{"topic": topic}]})
    (folder / "broken.json").write_text("{")
