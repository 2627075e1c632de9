"""kafka-console-share-consumer: prints the records that a share group gets."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from moldau.cli.kafka import clients
from moldau.cli.kafka import console_consumer as plain
from moldau.cli.kafka.deserializers import Undecodable
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, require
from moldau.cli.kafka.java_text import log
from moldau.cli.kafka.message_formatter import Shown
from moldau.cli.kafka.running import BOOTSTRAP, OK, complain, tell_usage

if TYPE_CHECKING:
    from confluent_kafka import ShareConsumer

LOGGER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
GROUP = "console-share-consumer"
STEP_S = 0.2


def run(options: Options) -> int:
    require(options, "topic", "bootstrap-server")
    if len(options.given("reject", "release")) == 2:
        raise Usage("At most one of --reject and --release may be specified.")
    try:
        return consume(options, settings(options))
    except plain.Failed as error:
        return complain(str(error))


def settings(options: Options) -> dict[str, Any]:
    given = clients.properties(options, "consumer-config", "consumer-property")
    group = clients.group_id(options, given, "consumer-config")
    own = {"bootstrap.servers": options["bootstrap-server"], "group.id": GROUP if group is None else group}
    own["share.acknowledgement.mode"] = "explicit"
    return clients.librdkafka({"client.id": GROUP, **given, **own}, "ShareConsumer")


def consume(options: Options, given: dict[str, Any]) -> int:
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer(given)
    copy = Copy(consumer, plain.formatter(options) or _plain, options)
    code = OK
    try:
        sys.stdout.flush()
        with plain.stopped_by_signals():
            consumer.subscribe([options["topic"]])
            copy.run()
    except plain.Stopped as stopped:
        code = stopped.code
    finally:
        consumer.close()
        print(f"Processed a total of {copy.count} messages", file=sys.stderr)
    return code


class Copy:
    """A loop that copies records from a share consumer to standard output."""

    def __init__(self, consumer: ShareConsumer, line: plain.Line, options: Options) -> None:
        self.count = 0
        self._consumer = consumer
        self._line = line
        self._most = options["max-messages"]
        self._timeout_s = options["timeout-ms"] / 1000 if (options["timeout-ms"] or -1) >= 0 else float("inf")
        self._goes_on = "reject-message-on-error" in options
        self._fate = next(iter(options.given("reject", "release")), "accept").upper()

    def run(self) -> None:
        from confluent_kafka import AcknowledgeType

        heard = time.monotonic()
        while self._most < 0 or self.count < self._most:
            batch = [one for one in self._consumer.poll(STEP_S) or () if one.error() is None]
            if batch:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._timeout_s:
                log("ERROR", "Error processing message, terminating consumer process: ", LOGGER, plain.TIMEOUT)
                return
            for message in batch if self._most < 0 else batch[: self._most - self.count]:
                self.count += 1
                printed = write(self._line, message, self._goes_on)
                self._consumer.acknowledge(message, AcknowledgeType[self._fate if printed else "REJECT"])
            sys.stdout.buffer.flush()


def write(line: plain.Line, message: Any, goes_on: bool) -> bool:
    """Print a record; return whether that succeeded."""
    try:
        sys.stdout.buffer.write(line(plain.shown(message)))
        return True
    except Undecodable as error:
        if not goes_on:
            raise plain.Failed(f"{plain.UNREADABLE}: {error}") from None
        log("ERROR", "Error processing message, rejecting this message: ", LOGGER, f"{plain.UNREADABLE}: {error}")
        return False


def _plain(record: Shown) -> bytes:
    return (b"null" if record.value is None else record.value) + b"\n"


OTHERS = ("consumer.config", "skip-message-on-error", "include", "partition", "offset", "from-beginning")
OTHERS += ("isolation-level", "bootstrap-server")
FLAGS = tuple(flag for flag in plain.FLAGS if flag.name not in OTHERS)
TOOL = Tool(
    "kafka-console-share-consumer",
    "This tool helps to read data from Kafka topics using share groups and outputs it to standard output.",
    (
        *FLAGS,
        BOOTSTRAP,
        clients.old_file("consumer-config"),
        Flag("reject-message-on-error", help="Reject a record that cannot be printed, and continue."),
        Flag("reject", help="Reject each record after it is printed."),
        Flag("release", help="Release each record after it is printed."),
    ),
    run,
    tell_usage,
)
