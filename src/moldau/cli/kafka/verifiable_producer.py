"""kafka-verifiable-producer: writes numbers to a topic, and prints the result of each as JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

from moldau.cli.kafka import clients
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.producer_perf_test import paced
from moldau.cli.kafka.running import COMMAND_CONFIG, OK
from moldau.cli.kafka.subcommands import ParsedTool
from moldau.cli.kafka.verifiable import event, stopping, text

WITHOUT_END = 2**63 - 1


def run(options: Options) -> int:
    from confluent_kafka import Producer

    topic, sent, acked = options["topic"], 0, 0
    stopped, began = stopping(), time.time()

    def delivered(error: Any, message: Any) -> None:
        nonlocal acked
        what = {"key": text(message.key()), "value": text(message.value()), "topic": topic}
        if error is None:
            acked += 1
            event("producer_send_success", **what, partition=message.partition(), offset=message.offset())
        else:
            kind = "class org.apache.kafka.common.KafkaException"
            event("producer_send_error", **what, exception=kind, message=error.str())

    producer = Producer({**settings(options), "on_delivery": delivered})
    event("startup_complete")
    for key, value, timestamp in records(options):
        if stopped.is_set():
            break
        clients.send(producer, topic, value, key, timestamp=timestamp)
        sent += 1
    producer.flush()
    event("shutdown_complete")
    rate = acked / max(time.time() - began, 0.001)
    event("tool_data", sent=sent, acked=acked, target_throughput=options["throughput"], avg_throughput=rate)
    return OK


def settings(options: Options) -> dict[str, Any]:
    given = {
        "bootstrap.servers": options["bootstrap-server"],
        "acks": str(options["acks"]),
        "retries": "0",
        "partitioner": "murmur2_random",
    }
    return clients.librdkafka({**given, **clients.file_settings(options, "producer.config")}, "Producer")


def records(options: Options) -> Iterator[tuple[str | None, str, int]]:
    """Yield keys, values and timestamps; 0 stands for now."""
    most, prefix, keys = options["max-messages"], options["value-prefix"], options["repeating-keys"]
    created, start = options["message-create-time"], int(time.time() * 1000)
    names = count()
    for number in paced(WITHOUT_END if most < 0 else most, options["throughput"]):
        key = None if keys is None else str(next(names) % keys)
        value = str(number) if prefix is None else f"{prefix}.{number}"
        yield key, value, max(created, 0)
        if created >= 0:
            created += int(time.time() * 1000) - start


TOOL = ParsedTool(
    "kafka-verifiable-producer",
    "verifiable-producer",
    'This tool produces increasing integers to the specified topic and prints JSON metadata to stdout on each "send" '
    "request, making externally visible which messages have been acked and which have not.",
    (
        Flag("topic", "TOPIC", "write to this topic", required=True),
        Flag("bootstrap-server", "HOST1:PORT1[,HOST2:PORT2[...]]", "connect to these brokers", required=True),
        Flag("max-messages", "MAX-MESSAGES", "stop after this many records; -1 is no limit", int, -1),
        Flag("throughput", "THROUGHPUT", "limit of records a second; -1 is no limit", int, -1),
        Flag("acks", "ACKS", "acknowledgements to wait for: 0, 1 or -1", int, -1),
        Flag("producer.config", "CONFIG_FILE", "read settings from a file", deprecated="command-config"),
        COMMAND_CONFIG,
        Flag("message-create-time", "CREATETIME", "timestamp of the first record in ms", int, -1),
        Flag("value-prefix", "VALUE-PREFIX", "put this number and a dot before each value", int),
        Flag("repeating-keys", "REPEATING-KEYS", "use this many keys in turn", int),
    ),
    run=run,
    helps=True,
)
