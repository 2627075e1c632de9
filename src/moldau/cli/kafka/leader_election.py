"""kafka-leader-election: elects the leaders of partitions."""

from __future__ import annotations

from typing import Any

from moldau.admin import TopicPartition, elections
from moldau.admin.elections import ElectionType
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import spoken
from moldau.cli.kafka.flags import HAS_BEEN_DEPRECATED, Flag, Options, Tool
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, Terse, reach, read_json
from moldau.client import Error

SCOPES = ("topic", "all-topic-partitions", "path-to-json-file")


def run(options: Options) -> int:
    check(options)
    kind = election_type(options["election-type"])
    wanted = partitions(options)
    with reach(options, default_api_timeout_ms="30000") as client:
        done = elections.elect(client, kind, wanted)
    report(kind, done)
    return OK


def check(options: Options) -> None:
    missing = [flag for flag in ("bootstrap-server", "election-type") if flag not in options]
    if missing:
        raise Terse(f"Missing required option(s): {', '.join(missing)}")
    if "admin.config" in options and "command-config" in options:
        raise Terse("Options --admin.config and --command-config cannot be specified together.")
    if len(options.given(*SCOPES)) != 1:
        raise Terse(f"One and only one of the following options is required: {', '.join(SCOPES)}")
    if "topic" in options and "partition" not in options:
        raise Terse("Missing required option(s): partition")
    if "topic" not in options and "partition" in options:
        raise Terse("Option partition is only allowed if topic is used")


def election_type(text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise Terse(f"Cannot parse argument '{text}' of option election-type") from None


def partitions(options: Options) -> list[TopicPartition] | None:
    """Return the partitions that were named; None for all."""
    if "topic" in options:
        return [(options["topic"], options["partition"])]
    return of_document(read_json(options["path-to-json-file"])) if "path-to-json-file" in options else None


def of_document(document: Any) -> list[TopicPartition]:
    if not isinstance(document, dict):
        raise Terse("Replica election data is empty")
    if "partitions" not in document:
        raise Terse('Replica election data is missing "partitions" field')
    try:
        found = [(str(row["topic"]), int(row["partition"])) for row in document["partitions"]]
    except (TypeError, KeyError, ValueError):
        raise Terse('A partition is written {"topic": "name", "partition": 0}') from None
    twice = [f"{topic}-{part}" for topic, part in dict.fromkeys(found) if found.count((topic, part)) > 1]
    if twice:
        raise Terse(f"Replica election data contains duplicate partitions: [{', '.join(twice)}]")
    return found


def report(kind: ElectionType, done: dict[TopicPartition, tuple[Error, str | None]]) -> None:
    good = [place for place, (error, _) in done.items() if not error]
    idle = [place for place, (error, _) in done.items() if error is Error.ELECTION_NOT_NEEDED]
    bad = [place for place in done if place not in (*good, *idle)]
    if good:
        print(f"Successfully completed leader election ({kind.name}) for partitions {names(good)}")
    if idle:
        print(f"Valid replica already elected for partitions {names(idle)}")
    for topic, partition in java_order.partitions(bad):
        why = spoken(*done[topic, partition])
        print(f"Error completing leader election ({kind.name}) for partition: {topic}-{partition}: {why}")
    if bad:
        raise Terse(f"{len(bad)} replica(s) could not be elected")


def names(places: list[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in java_order.partitions(places))


TOOL = Tool(
    "kafka-leader-election",
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("admin.config", "file", "Read settings of the client from this file.", deprecated="command-config"),
        Flag("path-to-json-file", "file", 'Choose partitions: {"partitions": [{"topic": "foo", "partition": 1}]}.'),
        Flag("topic", "topic", "Name the topic of the partition."),
        Flag("partition", "partition id", "Name the partition.", int),
        Flag("all-topic-partitions", help="Elect leaders of all partitions."),
        Flag("election-type", "type", "Choose preferred, or unclean: a replica that lags may become leader."),
    ),
    run,
    warning=HAS_BEEN_DEPRECATED,
)
