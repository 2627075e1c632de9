"""kafka-consumer-perf-test: measures how fast records are read."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moldau.cli.kafka import clients
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, tell_usage

MEGABYTE = 1024 * 1024
STEP_S = 0.1
TAKEN = 10_000  # records at a time
# Letters of Java's SimpleDateFormat -> strftime; S is milliseconds.
LETTERS = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S", "h": "%I", "a": "%p", "z": "%Z", "Z": "%z"}
HEADER = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "
HEADER += "fetch.MB.sec, fetch.nMsg.sec"


@dataclass(slots=True)
class Read:
    """The amount of data read so far, and the times of it."""

    start_ms: int
    records: int = 0
    bytes: int = 0
    joining_ms: int = 0
    join_began_ms: int = 0
    reported: tuple[int, int, int, int] = field(default=(0, 0, 0, 0))  # time, records, bytes, joining


def run(options: Options) -> int:
    require(options, "bootstrap-server", "topic") if "include" not in options else None
    wanted = number_of_records(options)
    if "hide-header" not in options:
        first = "time, threadId" if "show-detailed-stats" in options else "start.time, end.time"
        print(f"{first}, {HEADER}")
    read = consume(options, wanted)
    end_ms = now_ms()
    if "show-detailed-stats" not in options:
        print(total(read, end_ms, options["date-format"]))
    return OK


def number_of_records(options: Options) -> int:
    if len(options.given("messages", "num-records")) != 1:
        raise Usage('Exactly one of the following arguments is required: "[num-records]", "[messages]"')
    return options["num-records"] if "num-records" in options else options["messages"]


def consumer_settings(options: Options) -> dict[str, Any]:
    given = {"client.id": "perf-consumer-client", **clients.properties(options, "consumer.config", "command-property")}
    given |= {
        "bootstrap.servers": options["bootstrap-server"],
        "group.id": options["group"] or f"perf-consumer-{random.randrange(100000)}",
        "receive.buffer.bytes": str(options["socket-buffer-size"]),
        "max.partition.fetch.bytes": str(options["fetch-size"]),
        "auto.offset.reset": "latest" if "from-latest" in options else "earliest",
        "check.crcs": "false",
    }
    return clients.librdkafka(given, "Consumer")


def now_ms() -> int:
    return int(time.time() * 1000)


def consume(options: Options, wanted: int) -> Read:
    from confluent_kafka import Consumer

    consumer = Consumer(consumer_settings(options))
    began = now_ms()
    read = Read(began, join_began_ms=began, reported=(began, 0, 0, 0))

    def assigned(consumer: Any, partitions: Any) -> None:
        read.joining_ms += now_ms() - read.join_began_ms

    def revoked(consumer: Any, partitions: Any) -> None:
        read.join_began_ms = now_ms()

    topic = options["topic"] if "topic" in options else f"^({options['include']})$"
    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    heard = began
    while read.records < wanted and now_ms() - heard <= options["timeout"]:
        batch = consumer.consume(min(TAKEN, wanted - read.records), STEP_S)
        records = [message for message in batch if message.error() is None]
        if records:
            heard = now_ms()
        read.records += len(records)
        read.bytes += sum(len(one) for one in records)
        if (
            records
            and "show-detailed-stats" in options
            and now_ms() - read.reported[0] >= options["reporting-interval"]
        ):
            report(read, options["date-format"])
    consumer.close()
    if read.records < wanted:
        print(
            "WARNING: Exiting before consuming the expected number of records: timeout "
            f"({options['timeout']} ms) exceeded. You can use the --timeout option to increase the timeout."
        )
    return read


def report(read: Read, form: str) -> None:
    """Print a line about the data since the last line."""
    then, records, size, joined = read.reported
    time_ms = now_ms()
    elapsed, joining = time_ms - then, read.joining_ms - joined
    fetching = elapsed - joining
    megabytes, count = (read.bytes - size) / MEGABYTE, read.records - records
    rates = (1000.0 * megabytes / fetching, 1000.0 * count / fetching) if fetching > 0 else (0.0, 0.0)
    print(
        f"{date(time_ms, form)}, 0, {read.bytes / MEGABYTE:.4f}, {1000.0 * megabytes / elapsed:.4f}, {read.records}, "
        f"{1000.0 * count / elapsed:.4f}, {joining}, {fetching}, {rates[0]:.4f}, {rates[1]:.4f}",
        flush=True,
    )
    read.reported = (time_ms, read.records, read.bytes, read.joining_ms)


def total(read: Read, end_ms: int, form: str) -> str:
    elapsed_s = max(1, end_ms - read.start_ms) / 1000
    fetching = end_ms - read.start_ms - read.joining_ms
    megabytes, fetching_s = read.bytes / MEGABYTE, max(1, fetching) / 1000
    return (
        f"{date(read.start_ms, form)}, {date(end_ms, form)}, {megabytes:.4f}, {megabytes / elapsed_s:.4f}, "
        f"{read.records}, {read.records / elapsed_s:.4f}, {read.joining_ms}, {fetching}, "
        f"{megabytes / fetching_s:.4f}, {read.records / fetching_s:.4f}"
    )


def date(time_ms: int, form: str) -> str:
    """Write a time in a format of Java's SimpleDateFormat."""
    moment = datetime.fromtimestamp(time_ms / 1000)

    def written(match: re.Match[str]) -> str:
        letter = match[0][0]
        if letter == "S":
            return f"{time_ms % 1000:03d}"
        return moment.strftime(LETTERS[letter]) if letter in LETTERS else match[0]

    return re.sub(r"([A-Za-z])\1*", written, form)


TOOL = Tool(
    "kafka-consumer-perf-test",
    "This tool is used to verify the consumer performance.",
    (
        BOOTSTRAP,
        Flag("topic", "topic", "Read this topic."),
        Flag("include", "regular expression", "Read all topics whose names match.", since="4.2"),
        Flag("group", "gid", "Join this group."),
        Flag("fetch-size", "size", "Fetch this many bytes of a partition at once.", int, MEGABYTE),
        Flag("from-latest", help="Start at the end if the group has no offset."),
        Flag("socket-buffer-size", "size", "Size of the socket's buffer.", int, 2 * MEGABYTE),
        clients.old_file("consumer.config"),
        COMMAND_CONFIG,
        clients.COMMAND_PROPERTY,
        clients.PRINT_METRICS,
        Flag("show-detailed-stats", help="Print a line at each interval instead of one at the end."),
        Flag("timeout", "milliseconds", "Stop when no record has arrived for this long.", int, 10_000, optional=True),
        Flag("num-records", "count", "Read this many records.", int, since="4.2"),
        Flag("messages", "count", "Read this many records.", int, deprecated="num-records"),
        Flag("reporting-interval", "interval_ms", "Time between two lines in ms.", int, 5000),
        Flag("date-format", "date format", "Print times in this format.", default="yyyy-MM-dd HH:mm:ss:SSS"),
        Flag("hide-header", help="Print no header."),
    ),
    run,
    tell_usage,
    "Warning: --{old} is deprecated. Use --{new} instead.",
)
