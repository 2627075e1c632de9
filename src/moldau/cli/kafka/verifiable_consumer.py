"""kafka-verifiable-consumer: prints the records of a topic and the events of its group as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.cli.kafka import clients
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.running import COMMAND_CONFIG, OK, Terse
from moldau.cli.kafka.subcommands import ParsedTool
from moldau.cli.kafka.verifiable import event, stopping, text
from moldau.client.librdkafka import take

STEP_S = 0.2
TAKEN = 500  # records at a time, as max.poll.records
RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


def run(options: Options) -> int:
    from confluent_kafka import Consumer

    stopped = stopping()
    consumer = Consumer(settings(options))
    event("startup_complete")
    consumer.subscribe([options["topic"]], on_assign=_assigned, on_revoke=_revoked)
    left = options["max-messages"]
    while left != 0 and not stopped.is_set():
        batch = take(consumer, TAKEN if left < 0 else min(TAKEN, left), STEP_S)
        records = [one for one in batch if one.error() is None]
        if records:
            consumed(records, "verbose" in options)
            left = left if left < 0 else left - len(records)
            if "enable-autocommit" not in options:
                commit(consumer, records)
    consumer.close()
    event("shutdown_complete")
    return OK


def settings(options: Options) -> dict[str, Any]:
    protocol = options["group-protocol"].lower()
    if protocol not in ("classic", "consumer"):
        raise Terse(f"--group-protocol is classic or consumer, not {options['group-protocol']}")
    given = {
        "bootstrap.servers": options["bootstrap-server"],
        "group.id": options["group-id"],
        "group.protocol": protocol,
        "enable.auto.commit": str("enable-autocommit" in options).lower(),
        "auto.offset.reset": {"none": "error"}.get(options["reset-policy"], options["reset-policy"]),
    }
    if options["group-instance-id"]:
        given["group.instance.id"] = options["group-instance-id"]
    if protocol == "classic":
        given["session.timeout.ms"] = str(options["session-timeout"])
        given["partition.assignment.strategy"] = options["assignment-strategy"]
    elif options["group-remote-assignor"]:
        given["group.remote.assignor"] = options["group-remote-assignor"]
    return clients.librdkafka({**clients.file_settings(options, "consumer.config"), **given}, "Consumer")


def _places(partitions: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"topic": one.topic, "partition": one.partition} for one in partitions]


def _assigned(consumer: Any, partitions: Sequence[Any]) -> None:
    event("partitions_assigned", partitions=_places(partitions))


def _revoked(consumer: Any, partitions: Sequence[Any]) -> None:
    event("partitions_revoked", partitions=_places(partitions))


def by_partition(records: Sequence[Any]) -> dict[tuple[str, int], list[Any]]:
    found: dict[tuple[str, int], list[Any]] = {}
    for one in records:
        found.setdefault((one.topic(), one.partition()), []).append(one)
    return found


def consumed(records: Sequence[Any], verbose: bool) -> None:
    summaries = []
    for (topic, partition), few in by_partition(records).items():
        where = {"topic": topic, "partition": partition}
        offsets = [one.offset() for one in few]
        summaries.append({**where, "count": len(few), "minOffset": offsets[0], "maxOffset": offsets[-1]})
        if verbose:
            for one in few:
                event("record_data", key=text(one.key()), value=text(one.value()), **where, offset=one.offset())
    event("records_consumed", count=len(records), partitions=summaries)


def commit(consumer: Any, records: Sequence[Any]) -> None:
    from confluent_kafka import KafkaException, TopicPartition

    places = by_partition(records)
    ends = [TopicPartition(*place, few[-1].offset() + 1) for place, few in places.items()]
    shown = [{"topic": one.topic, "partition": one.partition, "offset": one.offset} for one in ends]
    try:
        consumer.commit(offsets=ends, asynchronous=False)
        event("offsets_committed", offsets=shown, success=True)
    except KafkaException as error:
        event("offsets_committed", offsets=shown, error=str(error), success=False)


TOOL = ParsedTool(
    "kafka-verifiable-consumer",
    "verifiable-consumer",
    "This tool consumes messages from a specific topic and emits consumer events (e.g. group rebalances, received "
    "messages, and offsets committed) as JSON objects to STDOUT.",
    (
        Flag("bootstrap-server", "HOST1:PORT1[,HOST2:PORT2[...]]", "connect to these brokers", required=True),
        Flag("topic", "TOPIC", "read this topic", required=True),
        Flag("group-protocol", "GROUP_PROTOCOL", "protocol of the group: classic or consumer", default="classic"),
        Flag("group-remote-assignor", "GROUP_REMOTE_ASSIGNOR", "assignor of the consumer protocol"),
        Flag("group-id", "GROUP_ID", "join this group", required=True),
        Flag("group-instance-id", "GROUP_INSTANCE_ID", "name of a static member"),
        Flag("max-messages", "MAX-MESSAGES", "stop after this many records; -1 is no limit", int, -1),
        Flag("session-timeout", "TIMEOUT_MS", "session timeout of the member in ms", int, 30_000),
        Flag("verbose", help="print each record"),
        Flag("enable-autocommit", help="let the consumer commit automatically"),
        Flag(
            "reset-policy",
            "RESET_POLICY",
            "where to start without an offset: earliest, latest or none",
            default="earliest",
        ),
        Flag("assignment-strategy", "ASSIGNMENT_STRATEGY", "assignor of the classic protocol", default=RANGE),
        Flag("consumer.config", "CONFIG_FILE", "read settings from a file", deprecated="command-config"),
        COMMAND_CONFIG,
    ),
    run=run,
    helps=True,
)
