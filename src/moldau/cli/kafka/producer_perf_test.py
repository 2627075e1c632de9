"""kafka-producer-perf-test: measures how fast records are written, and the latency of each."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from moldau.cli.kafka import clients
from moldau.cli.kafka.flags import Flag, Mistake, Options, key_values
from moldau.cli.kafka.running import COMMAND_CONFIG, OK, Terse
from moldau.cli.kafka.subcommands import ParsedTool

WINDOW_MS = 5000
WITHOUT_WINDOWS = 2**63
SAMPLES = 500_000
TRANSACTION_MS = 3000
MOST_BYTES = 1 << 30  # of a file of payloads
LETTERS = bytes(range(65, 91))
VARIANTS = 1000  # random payloads made in advance, so that making them is not measured


def run(options: Options) -> int:
    check(options)
    settings, transactional = producer_settings(options)
    measure(options, settings, transactional)
    return OK


def check(options: Options) -> None:
    for old, new in (("producer-props", "command-property"), ("producer.config", "command-config")):
        if old in options and new in options:
            raise Mistake(f"Options --{old} and --{new} cannot be specified together.")
    if options["num-records"] <= 0:
        raise Mistake("--num-records should be greater than zero")
    if options["record-size"] is not None and options["record-size"] <= 0:
        raise Mistake("--record-size should be greater than zero")
    if options["warmup-records"] >= options["num-records"]:
        raise Mistake(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records."
        )
    duration = options["transaction-duration-ms"]
    if duration is not None and duration <= 0:
        raise Mistake("--transaction-duration-ms should be greater than zero")


def producer_settings(options: Options) -> tuple[dict[str, Any], bool]:
    """Return the settings of the producer, and whether it writes in transactions."""
    pairs = options.all("command-property") + options.all("producer-props")
    for pair in pairs:
        if pair.count("=") != 1 or not pair.partition("=")[2]:
            raise Mistake(f"Invalid property: {pair}")
    given = {
        "client.id": "perf-producer-client",
        **clients.file_settings(options, "producer.config"),
        **key_values(pairs),
    }
    if "bootstrap-server" in options:
        given["bootstrap.servers"] = options["bootstrap-server"]
    if "bootstrap.servers" not in given:
        raise Mistake(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    if "transactional-id" in options:
        given["transactional.id"] = options["transactional-id"]
    elif "transaction-duration-ms" in options:
        given.setdefault("transactional.id", f"performance-producer-{uuid.uuid4()}")
    if given.get("acks", "all") in ("all", "-1"):
        given.setdefault("enable.idempotence", "true")
    return clients.librdkafka(given, "Producer"), "transactional.id" in given


def payloads(options: Options) -> Callable[[int], bytes]:
    """Return the function that gives the payload of each record."""
    if "payload-file" in options:
        kept = read_payloads(options["payload-file"], options["payload-delimiter"])
        return lambda number: random.choice(kept)
    if options["record-size"] is not None:
        made = [bytes(random.choices(LETTERS, k=options["record-size"])) for _ in range(VARIANTS)]
        return lambda number: made[number % VARIANTS]
    return lambda number: b"%d" % number


def read_payloads(name: str, delimiter: str) -> list[bytes]:
    path = Path(name)
    print(f"Reading payloads from: {path.absolute()}")
    if not path.exists() or not 0 < path.stat().st_size <= MOST_BYTES:
        raise Terse("File does not exist or empty file provided.")
    parts = path.read_text(errors="replace").split(delimiter.encode().decode("unicode_escape"))
    while parts and not parts[-1]:
        parts.pop()
    print(f"Number of messages read: {len(parts)}")
    return [part.encode() for part in parts]


class Stats:
    """The latencies and rates of a window and of the whole run."""

    def __init__(self, count: int, window_ms: int = WINDOW_MS) -> None:
        self.window_ms = window_ms
        self.start = self.window_start = now_ms()
        self.sampling = count // min(count, SAMPLES)
        self.latencies: list[int] = []
        self.seen = self.count = self.bytes = self.total = self.most = 0
        self.window_count = self.window_bytes = self.window_total = self.window_most = 0

    def record(self, latency: int, size: int, time_ms: int) -> None:
        self.count += 1
        self.bytes += size
        self.total += latency
        self.most = max(self.most, latency)
        self.window_count += 1
        self.window_bytes += size
        self.window_total += latency
        self.window_most = max(self.window_most, latency)
        if self.seen % self.sampling == 0:
            self.latencies.append(latency)
        self.seen += 1
        if time_ms - self.window_start >= self.window_ms:
            self.print_window(time_ms)

    def print_window(self, time_ms: int) -> None:
        elapsed = max(1, time_ms - self.window_start)
        rate = 1000.0 * self.window_count / elapsed
        megabytes = 1000.0 * self.window_bytes / elapsed / (1024 * 1024)
        average = self.window_total / max(1, self.window_count)
        print(
            f"{self.window_count} records sent, {rate:.1f} records/sec ({megabytes:.2f} MB/sec), "
            f"{average:.1f} ms avg latency, {self.window_most:.1f} ms max latency.",
            flush=True,
        )
        self.window_start = time_ms
        self.window_count = self.window_bytes = self.window_total = self.window_most = 0

    def total_line(self, steady: str = "") -> str:
        elapsed = max(1, now_ms() - self.start)
        rate = 1000.0 * self.count / elapsed
        megabytes = 1000.0 * self.bytes / elapsed / (1024 * 1024)
        kept = sorted(self.latencies) or [0]
        half, most, nearly, last = (kept[min(int(p * len(kept)), len(kept) - 1)] for p in (0.5, 0.95, 0.99, 0.999))
        return (
            f"{self.count} {steady}records sent, {rate:.6f} records/sec ({megabytes:.2f} MB/sec), "
            f"{self.total / max(1, self.count):.2f} ms avg latency, {self.most:.2f} ms max latency, "
            f"{half} ms 50th, {most} ms 95th, {nearly} ms 99th, {last} ms 99.9th."
        )


def now_ms() -> int:
    return int(time.time() * 1000)


def measure(options: Options, settings: dict[str, Any], transactional: bool) -> None:
    from confluent_kafka import Producer

    warming = options["warmup-records"]
    stats = Stats(options["num-records"], options["reporting-interval"])
    steady = None if not warming else Stats(options["num-records"] - warming, WITHOUT_WINDOWS)

    def delivered(error: Any, message: Any) -> None:
        if error is None:
            latency, size, time_ms = round(message.latency() * 1000), len(message.value()), now_ms()
            stats.record(latency, size, time_ms)
            if steady is not None and stats.count > warming:
                if not steady.count:
                    steady.start = steady.window_start = time_ms
                steady.record(latency, size, time_ms)
        else:
            print(f"org.apache.kafka.common.KafkaException: {error.str()}")

    if warming:
        print(
            f"Warmup first {warming} records. Steady state results will print after the complete test summary.",
            flush=True,
        )
    producer = Producer({**settings, "on_delivery": delivered})
    if transactional:
        producer.init_transactions()
    send(producer, options, transactional)
    producer.flush()
    print(stats.total_line())
    if steady is not None:
        print(steady.total_line("steady state "))


def send(producer: Any, options: Options, transactional: bool) -> None:
    topic, payload = options["topic"], payloads(options)
    duration_ms = options["transaction-duration-ms"] or TRANSACTION_MS
    began = 0
    for number in paced(options["num-records"], options["throughput"]):
        if transactional and not began:
            producer.begin_transaction()
            began = now_ms()
        clients.send(producer, topic, payload(number), poll_s=0.05)
        if transactional and now_ms() - began >= duration_ms:
            producer.commit_transaction()
            began = 0
    if transactional and began:
        producer.commit_transaction()


def paced(count: int, rate: float) -> Iterator[int]:
    """Yield the numbers of records, at most so many a second; a negative rate is no limit."""
    start = time.monotonic()
    for number in range(count):
        yield number
        if rate >= 0:
            ahead = (number + 1) / max(rate, 1e-9) - (time.monotonic() - start)
            if ahead > 0.002:
                time.sleep(ahead)


TOOL = ParsedTool(
    "kafka-producer-perf-test",
    "kafka-producer-perf-test",
    "This tool is used to verify the producer performance. To enable transactions, name a transactional id or a "
    "duration of transactions.",
    (
        Flag("topic", "TOPIC", "write to this topic", required=True),
        Flag("num-records", "NUM-RECORDS", "write this many records", int, required=True),
        Flag("record-size", "RECORD-SIZE", "size of a record in bytes", int),
        Flag("payload-file", "PAYLOAD-FILE", "take records from a file at random"),
        Flag("payload-monotonic", help="write increasing numbers"),
        Flag("payload-delimiter", "PAYLOAD-DELIMITER", "text between records in the file", default="\\n"),
        Flag("throughput", "THROUGHPUT", "limit of records a second; -1 is no limit", float, required=True),
        Flag("bootstrap-server", "BOOTSTRAP-SERVERS", "connect to these brokers", since="4.2"),
        Flag("producer-props", "PROP-NAME=PROP-VALUE", "set settings", many=True, deprecated="command-property"),
        Flag("command-property", "PROP-NAME=PROP-VALUE", "set settings of the producer", many=True, since="4.2"),
        Flag("producer.config", "CONFIG-FILE", "read settings from a file", deprecated="command-config"),
        COMMAND_CONFIG,
        clients.PRINT_METRICS,
        Flag("transactional-id", "TRANSACTIONAL-ID", "write in transactions under this id"),
        Flag("transaction-duration-ms", "TRANSACTION-DURATION", "duration of a transaction in ms", int),
        Flag("warmup-records", "WARMUP-RECORDS", "number of first records that are not counted", int, 0, since="4.2"),
        Flag("reporting-interval", "INTERVAL-MS", "time between two reports in ms", int, WINDOW_MS, since="4.2"),
    ),
    run=run,
    helps=True,
    one_of=("record-size", "payload-file", "payload-monotonic"),
)
