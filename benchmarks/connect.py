"""`python -m benchmarks.connect`: a worker of Connect beside Apache's, on one broker. Writes
docs/connect/benchmarks.md."""

import contextlib
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.needs import KAFKA_VERSION

from benchmarks import topics
from benchmarks.brokers import Broker, moldau_command
from benchmarks.connect_page import Keep, Only, Page, Row, Runs, Sample, Scale
from benchmarks.connect_workers import Worker, java, python
from benchmarks.places import CACHE, PORT, PROJECT, BenchError
from benchmarks.table import Metric

SOURCE, SINK = "FileStreamSource", "FileStreamSink"
JSON = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms."
IDLE, IDLE_S, SETTLE_S = 50, 20.0, 8.0
ROWS_MS = 25  # of latency
NUMBERS = itertools.count(1)
FIVE = {
    "transforms": "a,b,c,d,e",
    "transforms.a.type": f"{TRANSFORMS}HoistField$Value",
    "transforms.a.field": "line",
    "transforms.b.type": f"{TRANSFORMS}InsertField$Value",
    "transforms.b.static.field": "amount",
    "transforms.b.static.value": "17",
    "transforms.c.type": f"{TRANSFORMS}Cast$Value",
    "transforms.c.spec": "amount:int32",
    "transforms.d.type": f"{TRANSFORMS}ReplaceField$Value",
    "transforms.d.renames": "line:text",
    "transforms.e.type": f"{TRANSFORMS}InsertHeader",
    "transforms.e.header": "origin",
    "transforms.e.value.literal": "file",
    "value.converter": JSON,
    "value.converter.schemas.enable": "true",
}
BACK = {
    "transforms": "a,b,c,d,e",
    "transforms.a.type": f"{TRANSFORMS}ReplaceField$Value",
    "transforms.a.renames": "text:line",
    "transforms.b.type": f"{TRANSFORMS}MaskField$Value",
    "transforms.b.fields": "amount",
    "transforms.c.type": f"{TRANSFORMS}DropHeaders",
    "transforms.c.headers": "origin",
    "transforms.d.type": f"{TRANSFORMS}RegexRouter",
    "transforms.d.regex": "(.*)",
    "transforms.d.replacement": "x$1",
    "transforms.e.type": f"{TRANSFORMS}ExtractField$Value",
    "transforms.e.field": "line",
    "value.converter": JSON,
    "value.converter.schemas.enable": "true",
}


@dataclass(frozen=True)
class Place:
    """Where rows are measured: a broker, and the two workers."""

    broker: Broker
    home: Path
    scale: float

    def lines(self, size: int, count: int) -> Path:
        """Return a file with so many lines of a size."""
        count = int(count * self.scale)
        path = self.home / f"lines-{size}-{count}"
        if not path.exists():
            path.write_text("".join(f"{number:09d}".ljust(size - 1, "x") + "\n" for number in range(count)))
        return path


def end(broker: Broker, topic: str) -> Callable[[], int]:
    """Return what tells how many records of a topic can be read."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "-"})
    wanted = TopicPartition(topic, 0)
    return lambda: consumer.get_watermark_offsets(wanted, timeout=10.0)[1]


def counted(worker: Worker, records: int, config: dict[str, Any], is_done: Callable[[], bool]) -> Sample:
    """Run a connector until something is so; a second of nothing but its start is a part of it."""
    cpu, began, name = worker.cpu_s(), time.monotonic(), f"c{next(NUMBERS)}"
    with worker.connector(name, config):
        worker.wait(is_done, "end of the run", 0.01)
        seconds, cpu = time.monotonic() - began, worker.cpu_s() - cpu
    return {"per_second": records / seconds, "cpu": cpu / records * 1e6}


def source(place: Place, worker: Worker, size: int, count: int, more: dict[str, str]) -> Sample:
    path = place.lines(size, count)
    records = int(count * place.scale)
    with topics.topic(place.broker, 1) as topic:
        there = end(place.broker, topic)
        config = {"connector.class": SOURCE, "file": path, "topic": topic, "batch.size": 2000, **more}
        return counted(worker, records, config, lambda: there() >= records)


def sink(place: Place, worker: Worker, size: int, count: int, more: dict[str, str]) -> Sample:
    records, out = int(count * place.scale), place.home / f"out-{next(NUMBERS)}"
    line = b"x" * (size - 1)
    value = line
    if more:
        schema = b'{"type":"struct","fields":[{"type":"string","field":"text"},{"type":"int32","field":"amount"}]}'
        value = b'{"schema":%s,"payload":{"text":"%s","amount":17}}' % (schema, line)
    with topics.topic(place.broker, 1) as topic:
        fill(place.broker, topic, itertools.repeat(value, records), [("origin", b"file")] if more else [])
        config = {"connector.class": SINK, "file": out, "topics": topic, **more}
        found = counted(worker, records, config, lambda: out.exists() and out.stat().st_size >= size * records)
    written = out.stat().st_size
    out.unlink()
    if written != size * records:
        raise BenchError(f"{worker.name} wrote {written} bytes and not {size * records}.")
    return found


def fill(broker: Broker, topic: str, values: Iterable[bytes], headers: Sequence[Any] = ()) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5, "acks": "all"})
    for value in values:
        while True:
            try:
                producer.produce(topic, value, headers=list(headers))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(120):
        raise BenchError("The topic could not be filled.")


def to_topic(place: Place, worker: Worker) -> Sample:
    """Lines that are added to a file one by one, until a consumer has them."""
    path = place.home / f"in-{next(NUMBERS)}"
    path.write_text("")
    with topics.topic(place.broker, 1) as topic, reader(place.broker, topic) as read:
        name = f"c{next(NUMBERS)}"
        with worker.connector(name, {"connector.class": SOURCE, "file": path, "topic": topic}):
            worker.await_running(name)

            def add(number: int) -> None:
                with path.open("a") as file:
                    file.write(f"{number}\n")

            return timed(add, read)


def to_row(place: Place, worker: Worker) -> Sample:
    """Records that are produced one by one, until they stand in the sink's file."""
    out = place.home / f"out-{next(NUMBERS)}"
    producer = Producer({"bootstrap.servers": place.broker.address, "linger.ms": 0})
    with topics.topic(place.broker, 1) as topic:
        name = f"c{next(NUMBERS)}"
        with worker.connector(name, {"connector.class": SINK, "file": out, "topics": topic}):
            worker.await_running(name)

            def add(number: int) -> None:
                producer.produce(topic, f"{number}\n".encode())
                producer.flush(10)

            def read(number: int) -> None:
                worker.wait(lambda: f"{number}\n".encode() in out.read_bytes(), "line", 0.002)

            return timed(add, read)


def timed(add: Callable[[int], None], read: Callable[[int], None]) -> Sample:
    """Return the median and the longest of the times between adding and reading; the first is left out."""
    taken = []
    for number in range(ROWS_MS + 1):
        began = time.monotonic()
        add(number)
        read(number)
        taken.append(time.monotonic() - began)
        time.sleep(0.05 + 0.013 * (number % 20))  # at no fixed distance from whatever looks every so often
    return {"p50": statistics.median(taken[1:]), "longest": max(taken[1:])}


@contextlib.contextmanager
def reader(broker: Broker, topic: str, number_of: Callable[[bytes], int] = int) -> Iterator[Callable[[int], None]]:
    """Yield what waits for the record of a number."""
    given = {"bootstrap.servers": broker.address, "group.id": "-", "isolation.level": "read_committed"}
    consumer = Consumer({**given, "fetch.wait.max.ms": 5, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])

    def read(number: int) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is None or message.error() is not None:
                continue
            if number_of(message.value() or b"") == number:
                return
        raise BenchError(f"Line {number} never came.")

    try:
        yield read
    finally:
        consumer.close()


def first_record(place: Place, worker: Worker) -> Sample:
    """From the request that creates a connector to its first record in a topic."""
    path = place.lines(100, 100)
    with topics.topic(place.broker, 1) as topic, reader(place.broker, topic) as read:
        path = place.home / "one-line"
        path.write_text("0\n")
        began, name = time.monotonic(), f"c{next(NUMBERS)}"
        with worker.connector(name, {"connector.class": SOURCE, "file": path, "topic": topic}):
            read(0)
            return {"seconds": time.monotonic() - began}


def idle(place: Place, worker: Worker) -> Sample:
    """A worker of its own with fifty sources and sinks that have nothing to do, and how soon it is up."""
    path = place.home / "idle"
    path.write_text("")
    own = Worker(worker.name, worker.command, place.home / f"idle-{worker.name}", worker.port + 4, place.broker.address)
    with topics.topic(place.broker, 1) as topic:
        try:
            own.start(f"-idle{next(NUMBERS)}")
            for number in range(IDLE):
                mine = {"connector.class": SOURCE, "file": path, "topic": topic}
                if number % 2:
                    mine = {"connector.class": SINK, "file": f"{path}-{number}", "topics": topic}
                own.create(f"idle-{number}", mine)
            for number in range(IDLE):
                own.await_running(f"idle-{number}")
            time.sleep(SETTLE_S)
            cpu = own.cpu_s()
            time.sleep(IDLE_S)
            return {"cpu": (own.cpu_s() - cpu) / IDLE_S, "memory": own.memory_mb(), "up": own.up_s}
        finally:
            own.stop()


def loaded(run: Callable[..., Sample], size: int, count: int, more: dict[str, str]) -> Callable[..., Sample]:
    return lambda place, worker: run(place, worker, size, count, more)


FAST = (
    Metric("per_second", "records", "k/s", 1e-3, at_least=1.0, aim=2.0),
    Metric("cpu", "worker CPU", "s a million"),
)
LATENCY = (Metric("p50", "p50", "ms", 1e3, limit=150.0), Metric("longest", "longest", "ms", 1e3))
ROWS = (
    Row("FileStream source, lines of 100 B", loaded(source, 100, 600_000, {}), FAST, True),
    Row("FileStream source, lines of 1 KB", loaded(source, 1000, 200_000, {}), FAST, True),
    Row("FileStream sink, lines of 100 B", loaded(sink, 100, 600_000, {}), FAST, True),
    Row("FileStream sink, lines of 1 KB", loaded(sink, 1000, 200_000, {}), FAST, True),
    Row("source, five transforms, JSON with schemas", loaded(source, 100, 200_000, FIVE), FAST, True),
    Row("sink, five transforms, JSON with schemas", loaded(sink, 100, 200_000, BACK), FAST, True),
    Row("row to topic", to_topic, LATENCY),
    Row("topic to row", to_row, LATENCY),
    Row("config to first record", first_record, (Metric("seconds", "time", "s", limit=1.0),)),
    Row(
        f"{IDLE} idle connectors",
        idle,
        (
            Metric("cpu", "CPU", "% of a core", 100, limit=5.0),
            Metric("memory", "memory", "MB", limit=1000.0),
            Metric("up", "REST up", "s", limit=1.0),
        ),
    ),
)


@contextlib.contextmanager
def running(
    home: Path, *kinds: tuple[str, Callable[[Path], list[str]], Path | None]
) -> Iterator[tuple[Broker, list[Worker]]]:
    """Run a broker, and workers by name, command and plugin."""
    with contextlib.ExitStack() as closing:
        broker = Broker("moldau", moldau_command, home / "broker", PORT + 4)
        closing.callback(broker.kill)
        broker.start(settings={"group.initial.rebalance.delay.ms": "0"})
        workers = [
            Worker(name, command, home / name, PORT + 5 + number, broker.address, plugin)
            for number, (name, command, plugin) in enumerate(kinds)
        ]
        for worker in workers:
            closing.callback(worker.stop)
            worker.start()
        yield broker, workers


@contextlib.contextmanager
def place(scale: float) -> Iterator[tuple[Place, list[Worker]]]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="connect-", dir=CACHE) as name, contextlib.ExitStack() as closing:
        home = Path(name)
        broker, workers = closing.enter_context(running(home, ("kafka", java, None), ("moldau", python, None)))
        yield Place(broker, home, scale), workers


METHOD = """\
`make bench-connect` makes this page. Apache Connect {kafka} runs from Maven's jars with the flags of its own start
script, ours as `moldau connect`; both have `exactly.once.source.support=enabled`, String converters and the rest of
their defaults, and work on one broker of Moldau's. Broker, both workers and the benchmark share the cores of one
machine; only one worker has something to do at a time. Figures are medians of the runs, with their range.

- Records a second count from the request that creates a connector until all lines are in the topic, or in the file of
  the sink. A first run of each row and worker is not counted. CPU is that of the worker alone.
- Five transforms: HoistField, InsertField, Cast, ReplaceField and InsertHeader in front of a topic; ReplaceField,
  MaskField, DropHeaders, RegexRouter and ExtractField behind it; JsonConverter with schemas both times.
- Latency is that of single lines with pauses between them, to a consumer that reads committed records, or into the
  file of a sink. Connect's source looks at its file once a second.
- Idle connectors are as many sources as sinks, in a worker of their own; memory is the proportional set size. REST up
  is from exec to the first answer of `GET /connectors`.
- The load of the machine when this began was LOAD.
"""


CONNECT = Page(
    PROJECT / "docs" / "connect" / "benchmarks.md", "Connect", ROWS, place, METHOD.format(kafka=KAFKA_VERSION)
)


def main(
    runs: Runs = 3,
    scale: Scale = 1.0,
    only: Only = None,
    worker: Annotated[str, typer.Option(help="Only kafka, or only moldau; nothing is kept.")] = "",
    keep: Keep = True,
) -> None:
    """Measure a worker of Connect beside Apache's."""
    CONNECT.make(runs, scale, only, keep, worker)


if __name__ == "__main__":
    typer.run(main)
