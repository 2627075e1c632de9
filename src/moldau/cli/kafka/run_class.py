"""kafka-run-class: runs a tool by the name of its class in Kafka, for example `kafka.tools.DumpLogSegments`."""

from __future__ import annotations

from moldau.cli.kafka.running import Script, complain

# The classes of each package, and the tools that they are.
PACKAGES = {
    "kafka": "Kafka:server-start",
    "kafka.admin": "AclCommand:acls ConfigCommand:configs TopicCommand:topics",
    "kafka.tools": """
        ConsoleConsumer:console-consumer ConsoleProducer:console-producer DumpLogSegments:dump-log
        GetOffsetShell:get-offsets StorageTool:storage
    """,
    "org.apache.kafka.tools": """
        AclCommand:acls BrokerApiVersionsCommand:broker-api-versions ConsoleProducer:console-producer
        ConsumerPerformance:consumer-perf-test DeleteRecordsCommand:delete-records DumpLogSegments:dump-log
        FeatureCommand:features GetOffsetShell:get-offsets GroupsCommand:groups LeaderElectionCommand:leader-election
        LogDirsCommand:log-dirs MetadataQuorumCommand:metadata-quorum ProducerPerformance:producer-perf-test
        StreamsResetter:streams-application-reset TopicCommand:topics TransactionsCommand:transactions
        VerifiableConsumer:verifiable-consumer VerifiableProducer:verifiable-producer
    """,
    "org.apache.kafka.tools.consumer": """
        ConsoleConsumer:console-consumer ConsoleShareConsumer:console-share-consumer
    """,
    "org.apache.kafka.tools.consumer.group": "ConsumerGroupCommand:consumer-groups ShareGroupCommand:share-groups",
    "org.apache.kafka.tools.reassign": "ReassignPartitionsCommand:reassign-partitions",
}
PAIRS = ((package, *pair.split(":")) for package, pairs in PACKAGES.items() for pair in pairs.split())
CLASSES = {f"{package}.{name}": f"kafka-{tool}" for package, name, tool in PAIRS}


def run(arguments: list[str]) -> int:
    from moldau.cli import kafka

    rest = list(arguments)
    while rest and rest[0] in ("-daemon", "-loggc"):
        rest = rest[1:]
    if not rest:
        return complain("USAGE: kafka-run-class classname [opts]")
    if rest[0] not in CLASSES:
        return complain(f"There is no tool for the class {rest[0]} here; there are {', '.join(sorted(CLASSES))}.")
    return kafka.run(CLASSES[rest[0]], rest[1:])


TOOL = Script(
    "kafka-run-class", "`kafka-run-class CLASS ...`; switches for the JVM before the class have no effect here.", run
)
