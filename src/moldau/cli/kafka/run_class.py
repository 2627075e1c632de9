"""kafka-run-class: runs a tool by the name of its class in Kafka, for example `kafka.tools.DumpLogSegments`."""

from __future__ import annotations

from moldau.cli.kafka.running import Script, complain

CLASSES = {
    "kafka.Kafka": "kafka-server-start",
    "kafka.admin.AclCommand": "kafka-acls",
    "kafka.admin.ConfigCommand": "kafka-configs",
    "kafka.admin.TopicCommand": "kafka-topics",
    "kafka.tools.ConsoleConsumer": "kafka-console-consumer",
    "kafka.tools.ConsoleProducer": "kafka-console-producer",
    "kafka.tools.DumpLogSegments": "kafka-dump-log",
    "kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "kafka.tools.StorageTool": "kafka-storage",
    "org.apache.kafka.tools.AclCommand": "kafka-acls",
    "org.apache.kafka.tools.BrokerApiVersionsCommand": "kafka-broker-api-versions",
    "org.apache.kafka.tools.ConsoleProducer": "kafka-console-producer",
    "org.apache.kafka.tools.ConsumerPerformance": "kafka-consumer-perf-test",
    "org.apache.kafka.tools.DeleteRecordsCommand": "kafka-delete-records",
    "org.apache.kafka.tools.DumpLogSegments": "kafka-dump-log",
    "org.apache.kafka.tools.FeatureCommand": "kafka-features",
    "org.apache.kafka.tools.GetOffsetShell": "kafka-get-offsets",
    "org.apache.kafka.tools.GroupsCommand": "kafka-groups",
    "org.apache.kafka.tools.LeaderElectionCommand": "kafka-leader-election",
    "org.apache.kafka.tools.LogDirsCommand": "kafka-log-dirs",
    "org.apache.kafka.tools.MetadataQuorumCommand": "kafka-metadata-quorum",
    "org.apache.kafka.tools.ProducerPerformance": "kafka-producer-perf-test",
    "org.apache.kafka.tools.StreamsResetter": "kafka-streams-application-reset",
    "org.apache.kafka.tools.TopicCommand": "kafka-topics",
    "org.apache.kafka.tools.TransactionsCommand": "kafka-transactions",
    "org.apache.kafka.tools.VerifiableConsumer": "kafka-verifiable-consumer",
    "org.apache.kafka.tools.VerifiableProducer": "kafka-verifiable-producer",
    "org.apache.kafka.tools.consumer.ConsoleConsumer": "kafka-console-consumer",
    "org.apache.kafka.tools.consumer.ConsoleShareConsumer": "kafka-console-share-consumer",
    "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand": "kafka-consumer-groups",
    "org.apache.kafka.tools.consumer.group.ShareGroupCommand": "kafka-share-groups",
    "org.apache.kafka.tools.reassign.ReassignPartitionsCommand": "kafka-reassign-partitions",
}


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
