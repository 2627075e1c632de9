"""Kafka's own command-line tools, run in one JVM by java/Tools.java."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

DRIVER = Path(__file__).parent / "java" / "Tools.java"
SECONDS = 60
FLAGS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]

# The name of the script in Kafka's bin folder, without .sh -> the class that it runs.
MAIN = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
}
WITHOUT_BROKER = {"kafka-dump-log", "transactional-message-copier"}  # or with an option of another name
CONTROLLER = "--bootstrap-controller"
BROKER_LAST = {"kafka-cluster"}  # the subcommand has the option


@dataclass(frozen=True, slots=True)
class Output:
    exit: int
    out: str
    err: str

    def lines(self) -> list[str]:
        return [line.strip() for line in self.out.splitlines() if line.strip()]


@dataclass(slots=True)
class Tools:
    process: subprocess.Popen[str]
    bootstrap: str

    def __call__(self, tool: str, *arguments: str, stdin: str = "", check: bool = True) -> Output:
        is_named = tool in WITHOUT_BROKER or CONTROLLER in arguments
        broker = [] if is_named else ["--bootstrap-server", self.bootstrap]
        args = [*arguments, *broker] if tool in BROKER_LAST else [*broker, *arguments]
        request = {"main": MAIN[tool], "args": args, "stdin": stdin}
        assert self.process.stdin and self.process.stdout
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, f"the JVM ended while it ran {tool}: exit {self.process.wait(5)}"
        output = Output(**json.loads(answer))
        shown = f"{tool} {' '.join(args)}: exit {output.exit}\n{output.out}\n{output.err}"
        assert not check or output.exit == 0, shown
        return output


def alone(tool: str, kafka_libs: Path, *arguments: str) -> Output:
    """A tool in a JVM of its own: one that does its last work when the JVM ends."""
    command = ["java", *FLAGS, "-cp", f"{kafka_libs}/*", MAIN[tool], *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    return Output(done.returncode, done.stdout, done.stderr)


@contextmanager
def started(kafka_libs: Path) -> Iterator[subprocess.Popen[str]]:
    """The JVM, for brokers of any address."""
    command = ["java", *FLAGS, "-cp", f"{kafka_libs}/*", str(DRIVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
