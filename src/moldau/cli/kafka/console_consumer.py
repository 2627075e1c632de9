"""kafka-console-consumer: prints the records of topics."""

from __future__ import annotations

import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka import clients, message_formatter
from moldau.cli.kafka.deserializers import Undecodable
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, key_values, require
from moldau.cli.kafka.java_text import log
from moldau.cli.kafka.message_formatter import Shown
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, FAILED, OK, ZOOKEEPER, complain, tell_usage
from moldau.client.java_settings import read_file
from moldau.client.librdkafka import take

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
LOGGER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TIMEOUT = "org.apache.kafka.common.errors.TimeoutException"
UNREADABLE = "org.apache.kafka.common.errors.SerializationException"
STEP_S = 0.2  # the longest wait of the consumer, so that signals are noticed
MOST = 1000  # records taken at a time
# The defaults of a Java consumer.
DEFAULTS = {
    "allow.auto.create.topics": "true",
    "client.id": "console-consumer",
    "isolation.level": "read_uncommitted",
    "topic.metadata.refresh.interval.ms": "5000",
}
Line = Callable[[Shown], bytes]


class Stopped(BaseException):
    """Raised by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Failed(Exception):
    """An error that ends the reading."""


def run(options: Options) -> int:
    check(options)
    given = consumer_properties(options)
    line = formatter(options)
    return consume(options, clients.librdkafka(given, "Consumer"), line)


def check(options: Options) -> None:
    if len(options.given("topic", "include")) != 1:
        raise Usage("Exactly one of the following arguments is required: [topic], [include]")
    if "partition" in options:
        if "topic" not in options:
            raise Usage("The topic is required when partition is specified.")
        if "from-beginning" in options and "offset" in options:
            raise Usage("Options from-beginning and offset cannot be specified together.")
    elif "offset" in options:
        raise Usage("The partition is required when offset is specified.")
    require(options, "bootstrap-server")


def consumer_properties(options: Options) -> dict[str, str]:
    """Return the settings of the consumer, under Java's names."""
    given = clients.properties(options, "consumer.config", "consumer-property")
    group = clients.group_id(options, given, "consumer.config")
    if group is not None and "partition" in options:
        raise Usage("Options group and partition cannot be specified together.")
    own = {"auto.offset.reset": _reset(options, given), "bootstrap.servers": options["bootstrap-server"]}
    if "isolation-level" in options:
        own["isolation.level"] = options["isolation-level"]
    # Nobody will ask for the offsets of a group with a random name.
    commits = {} if group is not None else {"enable.auto.commit": "false"}
    if group is None:
        group = f"console-consumer-{random.randrange(100000)}"
    return {**DEFAULTS, **commits, **given, **own, "group.id": group, "enable.auto.offset.store": "false"}


def _reset(options: Options, given: Mapping[str, str]) -> str:
    earliest = "from-beginning" in options
    reset = given.get("auto.offset.reset")
    if reset is None:
        return "earliest" if earliest else "latest"
    if earliest and reset != "earliest":
        raise Failed(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove one option"
        )
    return reset


def start_offset(options: Options) -> int:
    """Return where reading starts, as librdkafka numbers it."""
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END

    text = options["offset"] or ("earliest" if "from-beginning" in options else "latest")
    if text.lower() in ("earliest", "latest"):
        return OFFSET_BEGINNING if text.lower() == "earliest" else OFFSET_END
    if not re.fullmatch(r"\+?\d{1,18}", text):
        raise Usage(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(text)


def formatter_properties(options: Options) -> dict[str, str]:
    """Return the properties of the formatter: those of the file, then those of the flags."""
    if "property" in options and "formatter-property" in options:
        raise Usage("Options --property and --formatter-property cannot be specified together.")
    given = read_file(options["formatter-config"]) if "formatter-config" in options else {}
    for flag, name in (("key-deserializer", "key.deserializer"), ("value-deserializer", "value.deserializer")):
        if options[flag]:
            given[name] = options[flag]
    return given | key_values(options.all("formatter-property") + options.all("property"))


def formatter(options: Options) -> Line | None:
    """Return the function that prints a record; None if values are printed as they are."""
    given = formatter_properties(options)
    name = options["formatter"].rpartition(".")[2]
    if name not in FORMATTERS:
        raise Usage(f"The formatter {options['formatter']} is a class of Java, which cannot be run here.")
    return FORMATTERS[name](given)


def _default(given: Mapping[str, str]) -> Line | None:
    form = message_formatter.formatter(given)
    plain = form.is_plain and form.separators == message_formatter.SEPARATORS
    return None if plain else form.line


def _logging(given: Mapping[str, str]) -> Line:
    form = message_formatter.formatter(given)

    def line(record: Shown) -> bytes:
        kind = message_formatter.TIMESTAMP_TYPES.get(record.timestamp_type)
        stamp = f"{kind.decode()}:{record.timestamp}, " if kind else ""
        key = "null " if record.key is None else record.key.decode(errors="replace") + ", "
        value = "null" if record.value is None else record.value.decode(errors="replace")
        log("INFO", f"{stamp}key:{key}value:{value}", "org.apache.kafka.tools.consumer.LoggingMessageFormatter")
        return form.line(record)

    return line


def _internal(topic: str, kinds: tuple[int, ...]) -> Line:
    """Print records of an internal topic as JSON; omit those of other kinds."""
    from moldau.cli.kafka.internal_records import formatted

    return lambda record: formatted(topic, kinds, record.key, record.value)


FORMATTERS: dict[str, Callable[[Mapping[str, str]], Line | None]] = {
    "DefaultMessageFormatter": _default,
    "LoggingMessageFormatter": _logging,
    "NoOpMessageFormatter": lambda given: lambda record: b"",
    "OffsetsMessageFormatter": lambda given: _internal(OFFSETS, (0, 1)),
    "GroupMetadataMessageFormatter": lambda given: _internal(OFFSETS, (2,)),
    "TransactionLogMessageFormatter": lambda given: _internal(TRANSACTIONS, (0,)),
    "ShareGroupStateMessageFormatter": lambda given: _internal(SHARES, (0, 1)),
}


def consume(options: Options, settings: Mapping[str, Any], line: Line | None) -> int:
    """Read and print until the end, a timeout or a signal."""
    from confluent_kafka import Consumer

    start = start_offset(options) if "partition" in options else None
    consumer = Consumer(dict(settings))
    copy = Copy(consumer, line, options)
    code, failure = OK, ""
    try:
        sys.stdout.flush()  # its buffer is printed before the records
        with stopped_by_signals():
            begin(consumer, options, start)
            copy.run()
    except Stopped as stopped:
        code = stopped.code
    except Failed as error:
        code, failure = FAILED, str(error)
    finally:
        consumer.close()
        print(f"Processed a total of {copy.count} messages", file=sys.stderr)
    if failure:
        log("ERROR", "Unknown error when running consumer: ", LOGGER, failure)
    if "enable-systest-events" in options:
        print("shutdown_complete")
    return code


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise Stopped."""
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, frame: object) -> None:
    raise Stopped(number)


def begin(consumer: Consumer, options: Options, start: int | None) -> None:
    from confluent_kafka import TopicPartition

    if start is not None:
        consumer.assign([TopicPartition(options["topic"], options["partition"], start)])
    else:
        consumer.subscribe([options["topic"] if "topic" in options else f"^({options['include']})$"])


class Copy:
    """A loop that copies records from a consumer to standard output."""

    def __init__(self, consumer: Consumer, line: Line | None, options: Options) -> None:
        self.count = 0
        self._consumer = consumer
        self._line = line
        self._most = options["max-messages"]
        self._timeout_s = options["timeout-ms"] / 1000 if (options["timeout-ms"] or -1) >= 0 else float("inf")
        self._skips = "skip-message-on-error" in options
        self._out = sys.stdout.buffer

    def run(self) -> None:
        heard = time.monotonic()
        while self._most < 0 or self.count < self._most:
            wanted = MOST if self._most < 0 else min(MOST, self._most - self.count)
            batch = take(self._consumer, wanted, min(STEP_S, self._timeout_s))
            records = [message for message in batch if not self._is_failure(message)]
            if records:
                self._print(records)
                heard = time.monotonic()
            elif time.monotonic() - heard > self._timeout_s:
                log("ERROR", "Error processing message, terminating consumer process: ", LOGGER, TIMEOUT)
                return

    def _is_failure(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return False
        if error.fatal() or not (error.retriable() or error.name() in ("UNKNOWN_TOPIC_OR_PART", "_PARTITION_EOF")):
            raise Failed(error.str())
        return True

    def _print(self, records: Sequence[Message]) -> None:
        done = 0
        try:
            if self._line is None:
                self._out.write(b"".join([_value(message) for message in records]))
                done = len(records)
            else:
                for message in records:
                    done += 1
                    self._write(message, self._line)
        finally:
            self.count += done
            self._out.flush()
            for message in {(one.topic(), one.partition()): one for one in records[:done]}.values():
                self._consumer.store_offsets(message)

    def _write(self, message: Message, line: Line) -> None:
        try:
            self._out.write(line(shown(message)))
        except Undecodable as error:
            if not self._skips:
                raise Failed(f"{UNREADABLE}: {error}") from None
            log("ERROR", "Error processing message, skipping this message: ", LOGGER, f"{UNREADABLE}: {error}")


def _value(message: Message) -> bytes:
    value = message.value()
    return b"null\n" if value is None else value + b"\n"  # type: ignore[operator]


def shown(message: Any) -> Shown:
    kind, timestamp = message.timestamp()
    headers = message.headers() or ()
    return Shown(kind, timestamp, message.partition(), message.offset(), message.key(), message.value(), headers)


def run_and_report(options: Options) -> int:
    """Run the tool, and report an error that ends the reading."""
    try:
        return run(options)
    except Failed as error:
        return complain(str(error))


FLAGS = (
    Flag("topic", "topic", "Read this topic."),
    Flag("include", "regular expression", "Read all topics whose names match."),
    Flag("partition", "partition", "Read only this partition, from its end unless --offset is given.", int),
    Flag("offset", "offset", "Start at this offset of the partition: a number, earliest or latest."),
    clients.old_property("consumer-property"),
    clients.COMMAND_PROPERTY,
    clients.old_file("consumer.config"),
    COMMAND_CONFIG,
    Flag("formatter", "class", "Print records with this class of Kafka.", default=message_formatter.NAME),
    Flag("property", "name=value", "Same as --formatter-property.", deprecated="formatter-property"),
    Flag(
        "formatter-property",
        "name=value",
        "Print these parts: print.timestamp, print.key, print.offset, print.epoch, print.partition, print.headers, "
        "print.value, key.separator, line.separator, headers.separator, null.literal, key.deserializer, "
        "value.deserializer, headers.deserializer.",
        since="4.2",
    ),
    Flag("formatter-config", "file", "Read these properties from a file."),
    Flag("from-beginning", help="Start at the first record if the group has no offset yet."),
    Flag("max-messages", "number", "Stop after this many records.", int, -1),
    Flag("timeout-ms", "ms", "Stop when no record has arrived for this long.", int),
    Flag("skip-message-on-error", help="Skip a record that cannot be printed."),
    BOOTSTRAP,
    ZOOKEEPER,
    Flag("key-deserializer", "class", "Decode keys with this class of Kafka."),
    Flag("value-deserializer", "class", "Decode values with this class of Kafka."),
    Flag("enable-systest-events", help="Print an event when the consumer ends."),
    Flag("isolation-level", "level", "Choose read_committed or read_uncommitted."),
    Flag("group", "group", "Join this group."),
)
TOOL = Tool(
    "kafka-console-consumer",
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    FLAGS,
    run_and_report,
    tell_usage,
)
