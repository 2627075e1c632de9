"""kafka-console-producer: writes lines of standard input as records."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from moldau.cli.kafka import clients
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, key_values, require
from moldau.cli.kafka.java_text import log
from moldau.cli.kafka.line_reader import BadLine, Line, LineReader, line_reader, lines
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, FAILED, OK, OLD_BROKERS, complain, tell_usage
from moldau.client.java_settings import read_file

LINE_READERS = ("org.apache.kafka.tools.LineMessageReader", "kafka.tools.ConsoleProducer$LineMessageReader")
WARNING = "Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead."
EXCEPTION = "org.apache.kafka.common.KafkaException"
# The flags and the settings that they change.
SETTINGS = {
    "timeout": "linger.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "socket-buffer-size": "send.buffer.bytes",
    "max-memory-bytes": "buffer.memory",
    "batch-size": "batch.size",
    "max-partition-memory-bytes": "batch.size",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "delivery.timeout.ms",
}
# The defaults of a Java producer: the partition of a key, and no duplicates.
DEFAULTS = {"partitioner": "murmur2_random", "client.id": "console-producer", "delivery.timeout.ms": "60000"}


def run(options: Options) -> int:
    require(options, "topic")
    check_address(options["bootstrap-server"])
    try:
        reader = line_reader(reader_properties(options))
    except BadLine as error:
        return complain(f"{EXCEPTION}: {error}")
    return send_all(options, reader)


def check_address(text: str | None) -> None:
    if not text:
        raise Usage("Error while validating the bootstrap address\n")
    if not all(re.search(r":\d{1,5}$", part.strip()) for part in text.split(",")):
        raise Usage("Please provide valid host:port like host1:9091,host2:9092\n")


def reader_properties(options: Options, readers: tuple[str, ...] = LINE_READERS) -> dict[str, str]:
    """Return the properties of the reader: those of the file, then those of the flags."""
    if "property" in options and "reader-property" in options:
        raise Usage("Options --property and --reader-property cannot be specified together.")
    if options["line-reader"] not in readers:
        raise Usage(f"The reader {options['line-reader']} is a class of Java, which cannot be run here.")
    given = read_file(options["reader-config"]) if "reader-config" in options else {}
    return {**given, **key_values(options.all("reader-property") + options.all("property"))}


def producer_settings(options: Options) -> dict[str, Any]:
    given = {**DEFAULTS, **clients.properties(options, "producer.config", "producer-property")}
    given |= {name: str(options[flag]) for flag, name in SETTINGS.items() if flag in options}
    given["bootstrap.servers"] = options["bootstrap-server"]
    given["compression.type"] = (options["compression-codec"] or "gzip") if "compression-codec" in options else "none"
    if given.get("acks", "all") in ("all", "-1"):
        given.setdefault("enable.idempotence", "true")
    return {**clients.librdkafka(given, "Producer"), "delivery.report.only.error": True}


def send_all(options: Options, reader: LineReader, typed: Callable[[Line], Line] | None = None) -> int:
    """Send the records of standard input, each after `typed` has encoded it."""
    from confluent_kafka import KafkaException, Producer

    topic, failed = options["topic"], Failed(options["topic"])
    producer = Producer({**producer_settings(options), "on_delivery": failed})
    try:
        for record in records(reader):
            key, value, headers = typed(record) if typed else record
            clients.send(producer, topic, value, key, headers=headers or None)
            if "sync" in options and (producer.flush(), failed.count)[1]:
                return FAILED
    except BadLine as error:
        return complain(f"{EXCEPTION}: {error}")
    except KafkaException:
        traceback.print_exc(limit=0)
        return FAILED
    finally:
        producer.flush()
    return OK


def records(reader: LineReader) -> Iterator[Line]:
    """Read records from standard input; on a terminal, prompt for each line."""
    prompts = sys.stdin.isatty() and sys.stdout.isatty()
    for number, line in enumerate(lines(_prompted() if prompts else sys.stdin.buffer), 1):
        yield Line(None, line, []) if reader.is_plain else reader.read(line.decode(), number)


def _prompted() -> Iterator[bytes]:
    while True:
        print(">", end="", flush=True)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield line


class Failed:
    """A callback that reports each record that could not be delivered, and counts them."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.count = 0

    def __call__(self, error: Any, message: Any) -> None:
        if error is None:
            return
        self.count += 1
        key, value = message.key(), message.value()
        sizes = [("null" if data is None else f"{len(data)} bytes") for data in (key, value)]
        what = f"Error when sending message to topic {self.topic} with key: {sizes[0]}, value: {sizes[1]} with error:"
        log("ERROR", f"{what} {error.str()}", "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback")


FLAGS = (
    Flag("topic", "topic", "Write to this topic."),
    BOOTSTRAP,
    OLD_BROKERS,
    Flag("sync", help="Wait until each record is written."),
    Flag("compression-codec", "codec", "Compress with none, gzip, snappy, lz4 or zstd. (gzip)", optional=True),
    Flag("batch-size", "size", "Size of a batch in bytes.", int),
    Flag("message-send-max-retries", "times", "Retry a batch this many times.", int),
    Flag("retry-backoff-ms", "ms", "Wait this long before a retry.", int),
    Flag("timeout", "ms", "Wait this long for more records of a batch.", int),
    Flag("request-required-acks", "acks", "Acknowledgements to wait for: 0, 1, -1 or all."),
    Flag("request-timeout-ms", "ms", "Wait this long for the answer of a broker.", int),
    Flag("metadata-expiry-ms", "ms", "Refresh metadata after this time.", int),
    Flag("max-block-ms", "ms", "Wait this long for a broker.", int),
    Flag("max-memory-bytes", "bytes", "Memory for records that wait to be sent.", int),
    Flag("max-partition-memory-bytes", "bytes", "Size of a batch in bytes.", int, deprecated="batch-size"),
    Flag("line-reader", "class", "Read lines with this class; only LineMessageReader exists.", default=LINE_READERS[0]),
    Flag("socket-buffer-size", "bytes", "Size of the socket's buffer.", int),
    Flag("property", "name=value", "Same as --reader-property.", deprecated="reader-property"),
    Flag(
        "reader-property",
        "name=value",
        "Choose how lines are read: parse.key, parse.headers, ignore.error, key.separator, headers.delimiter, "
        "headers.separator, headers.key.separator, null.marker. A line is `headers<TAB>key<TAB>value`.",
        since="4.2",
    ),
    Flag("reader-config", "file", "Read these properties from a file."),
    clients.old_property("producer-property"),
    clients.COMMAND_PROPERTY,
    clients.old_file("producer.config"),
    COMMAND_CONFIG,
)
TOOL = Tool(
    "kafka-console-producer",
    "This tool helps to read data from standard input and publish it to Kafka.",
    FLAGS,
    run,
    tell_usage,
    WARNING,
)
