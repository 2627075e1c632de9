"""Kafka's tools on three nodes: what they print on Moldau is what they print on Kafka, and so do our own.

A script of command lines is played on three Kafka nodes by Java's tools, and twice on three Moldau nodes: by Java's
tools and by ours. Each play has a topic of its own. Names, ports and numbers that must differ are made alike.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.kafka.running import run
from tests.cluster.clients import admin, is_placed, place, placements, produce
from tests.cluster.mixed import KAFKA, MOLDAU, Cluster, cluster, eventually
from tests.conformance.java_tools import BROKER_LAST, CONTROLLER, Tools

pytestmark = pytest.mark.needs("java", "kafka-jars")
NODES, READY_S, SEEN_S = (1, 2, 3), 150.0, 15.0
JAVA, OURS = "java", "ours"
TRACE = re.compile(r"\s+at |Tools\$Ended|org\.apache\.kafka\.[\w.]+Exception: ")
# What a node says in its own words: of these lines the exit code and the number of lines are compared.
OWN_WORDS = {
    "kafka-features @ upgrade --feature metadata.version=31",
    "kafka-features downgrade --feature metadata.version=29 --dry-run",
    "kafka-features upgrade --feature nothing.version=1",
    "kafka-cluster unregister --id 77",
    "kafka-cluster unregister --id 77 @",
    "kafka-leader-election --election-type preferred --topic {topic} --partition 9",
}
ACCESS = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
# Command lines in their order. {topic} has its replicas on 1 and 2, the file `there` moves it to 3, `back` changes the
# order of its replicas. "*" waits until a move or a change is done.
SCRIPT = """
kafka-metadata-quorum describe --status
kafka-metadata-quorum describe --replication
kafka-metadata-quorum @ describe --status
kafka-metadata-quorum @ describe --replication
kafka-features describe
kafka-features @ describe
kafka-features @ upgrade --feature metadata.version=30
kafka-features @ upgrade --feature metadata.version=31
kafka-features downgrade --feature metadata.version=29 --dry-run
kafka-features downgrade --feature share.version=0 --dry-run
kafka-features disable --feature streams.version --dry-run
kafka-features upgrade --feature nothing.version=1
kafka-cluster cluster-id
kafka-cluster cluster-id @
kafka-cluster list-endpoints
kafka-cluster list-endpoints --include-fenced-brokers
kafka-cluster list-endpoints @
kafka-cluster list-endpoints @ --include-fenced-brokers
kafka-cluster unregister --id 77
kafka-cluster unregister --id 77 @
kafka-configs @ --alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2
kafka-configs @ --describe --entity-type brokers --entity-default
kafka-configs @ --alter --entity-type brokers --entity-name 2 --add-config message.max.bytes=2000000
kafka-configs @ --describe --entity-type brokers --entity-name 2
kafka-configs @ --alter --entity-type brokers --entity-name 2 --delete-config message.max.bytes
kafka-configs @ --alter --entity-type brokers --entity-default --delete-config log.cleaner.threads
kafka-configs @ --describe --entity-type topics --entity-name {topic}
kafka-configs @ --describe --entity-type users
kafka-acls @ --add --allow-principal User:{topic} --operation Read --topic {topic}
kafka-acls @ --list --topic {topic}
kafka-acls @ --remove --force --allow-principal User:{topic} --operation Read --topic {topic}
kafka-acls @ --list --topic {topic}
kafka-topics --describe --topic {topic}
kafka-reassign-partitions --execute --reassignment-json-file {files}/there.json --throttle 1000
kafka-reassign-partitions --list
kafka-reassign-partitions @ --list
kafka-reassign-partitions --verify --reassignment-json-file {files}/there.json --preserve-throttles
kafka-configs --describe --topic {topic}
kafka-configs --describe --broker 3
kafka-reassign-partitions --execute --reassignment-json-file {files}/back.json
kafka-reassign-partitions --cancel --reassignment-json-file {files}/there.json
* 1,2
kafka-reassign-partitions --list
kafka-configs --describe --topic {topic}
kafka-configs --describe --broker 3
kafka-topics --describe --topic {topic}
kafka-reassign-partitions --execute --reassignment-json-file {files}/there.json --throttle 100000000
* 1,3
kafka-reassign-partitions --verify --reassignment-json-file {files}/there.json
kafka-configs --describe --topic {topic}
kafka-configs --describe --broker 3
kafka-reassign-partitions --execute --reassignment-json-file {files}/turn.json
* 1,3
kafka-leader-election --election-type preferred --topic {topic} --partition 0
kafka-leader-election --election-type preferred --topic {topic} --partition 0
kafka-leader-election --election-type unclean --topic {topic} --partition 0
kafka-leader-election --election-type preferred --topic {topic} --partition 9
kafka-topics --describe --topic {topic}
kafka-reassign-partitions --execute --reassignment-json-file {files}/nowhere.json
kafka-reassign-partitions @ --cancel --reassignment-json-file {files}/there.json
"""
FILES = {"there": [1, 3], "back": [2, 1], "turn": [3, 1], "nowhere": [1, 9]}


class Printed(NamedTuple):
    """What a command line led to, made alike."""

    line: str
    code: int
    out: str
    complaint: str


@dataclass
class Play:
    """Tools on a cluster."""

    made: Cluster
    tools: Tools
    folder: Path
    topic: str

    def printed(self, side: str, expected: Sequence[Printed] = ()) -> list[Printed]:
        """Play the script. A broker may not have heard yet of what was just changed: who only looks, looks again."""
        for name, replicas in FILES.items():
            parts = [{"topic": self.topic, "partition": 0, "replicas": replicas}]
            (self.folder / f"{name}.json").write_text(json.dumps({"version": 1, "partitions": parts}))
        place(self.made, self.topic, [1, 2], 1)
        eventually(lambda: is_placed(self.made, self.topic, 1, [1, 2]))
        produce(self.made, self.topic, range(2000), value=b" " * 1000)
        found: list[Printed] = []
        for line in SCRIPT.strip().splitlines():
            deadline = time.monotonic() + SEEN_S
            while (done := self.play(side, line)) is not None:
                is_late = time.monotonic() > deadline or " --describe" not in line or not expected
                if is_late or compared(done) == compared(expected[len(found)]):
                    found.append(done)
                    break
        return found

    def play(self, side: str, line: str) -> Printed | None:
        first, *rest = line.format(topic=self.topic, files=self.folder).split(" ")
        if first == "*":
            wanted = [int(node) for node in rest[0].split(",")]
            eventually(lambda: placements(self.made, self.topic)[0][1] == wanted, READY_S)
            return None
        controllers = ",".join(f"127.0.0.1:{one.controller_port}" for one in self.made.members.values())
        where = {"@": [CONTROLLER, controllers]}
        words = [part for word in rest for part in where.get(word, [word])]
        if side == JAVA:
            done = self.tools(first, *words, check=False)
            return self.alike(line, done.exit, done.out, done.err)
        broker = [] if CONTROLLER in words else ["--bootstrap-server", self.made.bootstrap]
        mine = run(first, *([*words, *broker] if first in BROKER_LAST else [*broker, *words]))
        return self.alike(line, mine.code, mine.out, mine.err)

    def alike(self, line: str, code: int, out: str, err: str) -> Printed:
        told = [
            one
            for one in err.splitlines()
            if one.strip() and not re.match(r"exit \d|Tools\$Ended|\[|\s+at |Caused", one)
        ]
        complaint = re.sub(r"^(java|joptsimple|org)\.[\w.$]+(Exception|Error): ", "", told[0]) if told else ""
        lines = [one for one in self.neutral(out).splitlines() if one and not TRACE.match(one)]
        return Printed(line, code, "\n".join(sorted(lines)), self.neutral(complaint))

    def neutral(self, text: str) -> str:
        """Write names and numbers that are this play's own as those of any play."""
        for one in self.made.members.values():
            for name, port in (("broker", one.port), ("controller", one.controller_port)):
                text = text.replace(f"127.0.0.1:{port}", f"{name}{one.id}")
                text = re.sub(rf"(127\.0\.0\.1\s+){port}\s+", rf"\1{name}{one.id} ", text)
        text = re.sub(rf"{self.folder}/\w+/(node\d)/\w+", r"\1", text)  # each node chooses its directory
        text = text.replace(self.topic, "TOPIC").replace(str(self.folder), "FILES")
        text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
        text = re.sub(
            r"(LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|Epoch):\s+-?\d+", r"\1: #", text
        )
        text = re.sub(r"^Feature: moldau\.version.*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"[A-Za-z0-9_-]{22}(?=\"|\s*\t)", "DIRECTORY", text)
        text = re.sub(r"(?<=\t)-?\d+ *(?=\t)", "#", text)
        return re.sub(r"(Leader|Follower)\s*\t", "Voter\t", text)


def compared(printed: Printed) -> tuple[object, ...]:
    if printed.line in OWN_WORDS:
        return printed.code, len(printed.out.splitlines()), bool(printed.complaint)
    return printed


@contextmanager
def three(libs: Path, folder: Path, kind: str) -> Iterator[Cluster]:
    nodes = dict.fromkeys(NODES, (kind, "broker,controller"))
    with cluster(libs, folder, nodes, **ACCESS) as made:
        eventually(lambda: set(admin(made).list_topics(timeout=10).brokers) == set(NODES), READY_S)
        yield made


def test_tools_print_on_moldau_what_they_print_on_kafka(
    kafka_libs: Path, tmp_path: Path, jvm: subprocess.Popen[str]
) -> None:
    with three(kafka_libs, tmp_path / KAFKA, KAFKA) as made:
        expected = Play(made, Tools(jvm, made.bootstrap), tmp_path, "topic-of-kafka").printed(JAVA)
    problems: list[str] = []
    with three(kafka_libs, tmp_path / MOLDAU, MOLDAU) as made:
        for side in (JAVA, OURS):
            printed = Play(made, Tools(jvm, made.bootstrap), tmp_path, f"topic-{side}").printed(side, expected)
            problems += [
                f"{side}: {want.line}\n  Kafka:  {want[1:]}\n  Moldau: {got[1:]}"
                for want, got in zip(expected, printed, strict=True)
                if compared(want) != compared(got)
            ]
    assert not problems, "\n".join(problems)
