"""kafka-get-offsets: prints offsets of partitions, by position or time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from moldau.admin import TopicPartition, offsets, topics
from moldau.cli.kafka.exceptions import spoken, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, OLD_BROKERS, Terse, complain, connect
from moldau.cli.kafka.topic_filter import TopicFilter
from moldau.client import Client, ClientError

TIMES = {
    "earliest": offsets.EARLIEST,
    "latest": offsets.LATEST,
    "max-timestamp": offsets.MAX_TIMESTAMP,
    "earliest-local": offsets.EARLIEST_LOCAL,
    "latest-tiered": offsets.LATEST_TIERED,
    "earliest-pending-upload": offsets.EARLIEST_PENDING_UPLOAD,
}
MOST = 2**31 - 1
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
Allows = Callable[[TopicPartition], bool]


def run(options: Options) -> int:
    require(options, "bootstrap-server")
    try:
        wanted, time = chosen(options), moment(options["time"])
        with connect(options, client_id="GetOffsetShell") as client:
            print_offsets(client, options, wanted, time)
    except Terse as error:
        return complain(f"Error occurred: {error}")
    except ClientError as error:
        return complain(f"Error occurred: {spoken(error.error, words_of(error))}")
    return OK


def chosen(options: Options) -> Allows:
    """Return the filter of partitions."""
    if "topic-partitions" in options:
        if options.given("topic", "partitions"):
            raise Terse("--topic-partitions cannot be used with --topic or --partitions")
        rules = [rule(text) for text in options["topic-partitions"].split(",")]
        return lambda place: any(allows(place) for allows in rules)
    names = TopicFilter(options["topic"] or ".*")
    numbers = partition_numbers(options["partitions"] or "")
    return lambda place: names.allows(place[0]) and (not numbers or place[1] in numbers)


def partition_numbers(text: str) -> set[int]:
    parts = text.split(",") if text else []
    if not all(re.fullmatch(r"[+-]?\d+", part) for part in parts):
        raise Terse(f"--partitions expects a comma separated list of numeric partition ids, but received: {text}")
    return {int(part) for part in parts}


def rule(text: str) -> Allows:
    """Parse `topic:1`, `topic:0-3`, `topic:5-`, `topic` or `:2`; the topic is a regular expression."""
    match = _RULE.fullmatch(text)
    if not match:
        raise Terse(f"Invalid rule specification: {text}")
    names = TopicFilter(match[1] or ".*")
    one = int(match[2]) if match[2] else None
    first, end = (one, one + 1) if one is not None else (int(match[3] or 0), int(match[4] or MOST))
    return lambda place: names.allows(place[0]) and first <= place[1] < end


def moment(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    if not re.fullmatch(r"[+-]?\d{1,19}", text):
        signs = (
            "-1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered / "
            "-6 or earliest-pending-upload"
        )
        raise Terse(f"Malformed time argument {text}. Please use {signs}, or a specified long format timestamp")
    return int(text)


def print_offsets(client: Client, options: Options, wanted: Allows, time: int) -> None:
    there = topics.listed(client, internal="exclude-internal-topics" not in options)
    places = [(topic.name, part.index) for topic in there for part in topic.partitions]
    places = [place for place in places if wanted(place)]
    if not places:
        raise Terse("Could not match any topic-partitions with the specified filters")
    by_place = offsets.at(client, dict.fromkeys(places, time))
    for topic, partition in sorted(by_place, key=lambda place: f"{place[0]}-{place[1]}"):
        offset = by_place[topic, partition]
        if offset.error:
            why = f"due to error: {spoken(offset.error)}"
            print(f"Skip getting offsets for topic-partition {topic}-{partition} {why}", file=sys.stderr)
        elif offset.offset >= 0:
            print(f"{topic}:{partition}:{offset.offset}")


TOOL = Tool(
    "kafka-get-offsets",
    "An interactive shell for getting topic-partition offsets.",
    (
        BOOTSTRAP,
        OLD_BROKERS,
        COMMAND_CONFIG,
        Flag("topic-partitions", "topic1:1,topic2:0-3,topic3", "Choose partitions, topics by regular expressions."),
        Flag("topic", "topic", "Choose topics by a regular expression."),
        Flag("partitions", "partition ids", "Choose partitions of these topics, separated by commas."),
        Flag("time", "timestamp", f"Choose a time in ms, or {', '.join(TIMES)}.", default="latest"),
        Flag("exclude-internal-topics", help="Omit internal topics."),
    ),
    run,
    lambda tool, sentence: complain(f"Error occurred: {sentence}"),
)
