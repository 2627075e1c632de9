"""The loads, each a generator: it makes ready, gives one measured sample whenever it is asked, and clears up.

A sample is a dict of figures; `table.py` says which of them are shown and what is expected of them.
"""

import contextlib
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from benchmarks import client, probe, topics
from benchmarks.brokers import Broker, Peer
from benchmarks.client import Answer, Options
from benchmarks.places import BenchError

Sample = dict[str, float]
Samples = Generator[Sample, None, None]
RUN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work a run is: the full measure, or a fraction of it for a quick look."""

    scale: float = 1.0
    runs: int = 5
    warm_seconds: float = 60.0

    def count(self, full: int) -> int:
        return max(1, int(full * self.scale))


def measured(broker: Peer, mode: str, options: Options) -> Sample:
    """Run the client to its full count and add the broker's CPU seconds."""
    before = broker.cpu_seconds()
    answer = client.run(mode, {"seconds": RUN_SECONDS} | options)
    answer["cpu"] = broker.cpu_seconds() - before
    require_whole(broker, mode, options, answer)
    return answer


def require_whole(broker: Peer, mode: str, options: Options, answer: Answer) -> None:
    wanted = int(options["count"])
    if answer["n"] < wanted or answer.get("refused"):
        refused = f", {answer['refused']:.0f} refused" if answer.get("refused") else ""
        raise BenchError(f"{mode} on {broker.name} came to {answer['n']:.0f} of {wanted} messages{refused}.")


def with_costs(sample: Sample, size: int) -> Sample:
    """Broker CPU per GB of payload and per message."""
    sample["cpu_per_gb"] = sample["cpu"] / (sample["n"] * size / 1e9)
    sample["cpu_us"] = sample["cpu"] / sample["n"] * 1e6
    return sample


def load(broker: Peer, topic: str, count: int, size: int, partitions: int) -> Options:
    return {"brokers": broker.address, "topic": topic, "partitions": partitions, "count": count, "size": size}


def produce(
    broker: Peer, effort: Effort, *, count: int, size: int, partitions: int, settings: Options = client.PRODUCE
) -> Samples:
    """Through librdkafka into a fresh topic, acks=all."""
    count = effort.count(count)
    while True:
        with topics.topic(broker, partitions) as topic:
            sample = measured(broker, "produce", load(broker, topic, count, size, partitions) | settings)
        yield with_costs(sample, size)


def fill(broker: Peer, options: Options) -> None:
    """Records for what is measured next, written back so that the disk is quiet then; they stay in the page cache."""
    measured(broker, "produce", options)
    os.sync()


def consume(
    broker: Peer, effort: Effort, *, count: int, size: int, partitions: int, settings: Options = client.CONSUME
) -> Samples:
    """The same topic from its beginning, again and again, out of the page cache."""
    count = effort.count(count)
    with topics.topic(broker, partitions) as topic:
        options = load(broker, topic, count, size, partitions)
        fill(broker, options | client.PRODUCE)
        while True:
            yield with_costs(measured(broker, "consume", options | settings), size)


def over_tls(
    broker: Broker, effort: Effort, *, run: Callable[..., Samples], settings: Options, **shape: int
) -> Samples:
    """Another load, whose client reaches the broker over TLS."""
    yield from run(broker, effort, settings=settings | broker.encrypted, **shape)


def flood(broker: Peer, effort: Effort, *, count: int, connections: int, depth: int) -> Samples:
    """Ready-made produce requests of one record of 100 bytes over plain sockets, into one partition."""
    count = effort.count(count) // connections * connections
    while True:
        with topics.topic(broker, 1) as topic:
            frame = broker.home / "produce.frame"
            frame.write_bytes(probe.produce_frame(topic))
            shape: Options = {"connections": connections, "depth": depth, "frame": str(frame)}
            port = topics.leader_port(broker, topic)
            probe.wait_for_produce(port, topic, RUN_SECONDS)  # it knows that it leads
            before = topics.end_offset(broker, topic)
            sample = measured(broker, "flood", {"port": port, "count": count} | shape)
            appended = topics.end_offset(broker, topic) - before
        if appended != count:  # the client counts answers, whatever they say
            raise BenchError(f"{broker.name} answered {count} produce requests but appended {appended} records.")
        yield with_costs(sample, 100)


def latency(broker: Peer, effort: Effort, *, rate: int, seconds: int) -> Samples:
    """From the call of produce to the consumer's hands, and to the acknowledgement, in milliseconds."""
    count = effort.count(rate * seconds)
    while True:
        with topics.topic(broker, 1) as topic:
            pace: Options = {"rate": rate, "skip": rate}
            yield measured(broker, "latency", load(broker, topic, count + rate, 100, 1) | pace | client.LATENCY)


def start_up(broker: Peer, effort: Effort) -> Samples:
    """An empty broker: exec to the first acknowledged record, and its memory a little later."""
    while True:
        broker.wipe()
        sample = {"start": broker.start()}
        time.sleep(3)
        sample["rss"] = broker.rss_mb()
        broker.wipe()
        yield sample


def memory_after_load(broker: Peer, effort: Effort) -> Samples:
    """Resident memory after whatever ran before, and 1 GB in and out on top of it."""
    while True:
        with contextlib.closing(consume(broker, effort, count=1_000_000, size=1024, partitions=6)) as last:
            next(last)
            yield {"rss": broker.rss_mb()}


def restart_with_partitions(broker: Broker, effort: Effort, *, partitions: int) -> Samples:
    """A clean stop and a start with a record in each partition."""
    partitions = max(1, effort.count(partitions))
    while True:
        broker.wipe()
        broker.start()
        topics.create(broker, "many", partitions)
        measured(broker, "produce", load(broker, "many", partitions, 100, partitions) | client.PRODUCE)
        sample = {"loaded_rss": broker.rss_mb(), "stop": broker.stop(), "start": broker.start(topic="many")}
        time.sleep(3)
        sample["rss"] = broker.rss_mb()
        broker.wipe()
        yield sample


def recovery(broker: Broker, effort: Effort, *, count: int, size: int) -> Samples:
    """kill -9 with an unflushed segment; exec to the first record acknowledged by that very partition."""
    count = effort.count(count)
    while True:
        broker.wipe()
        broker.start()
        topics.create(broker, "torn", 1)
        measured(broker, "produce", load(broker, "torn", count, size, 1) | client.PRODUCE)
        broker.kill()
        sample = {"start": broker.start(topic="torn")}
        kept = topics.end_offset(broker, "torn")
        broker.wipe()
        if kept != count + 1:
            raise BenchError(f"{broker.name} had {count} records before the kill and has {kept - 1} after it.")
        yield sample


def compaction(broker: Broker, effort: Effort, *, count: int, size: int, rate: int) -> Samples:
    """Latency of produce to one topic from the moment that another is given to the cleaner until it is done."""
    count = effort.count(count)
    settings = {"segment.bytes": str(64 << 20), "min.cleanable.dirty.ratio": "0.01"}
    while True:
        with topics.topic(broker, 1, settings) as dirty, topics.topic(broker, 1) as topic:
            keyed: Options = {"keys": max(1, count // 10)}
            fill(broker, load(broker, dirty, count, size, 1) | keyed | client.PRODUCE)
            yield latency_while_compacting(broker, dirty, load(broker, topic, rate * RUN_SECONDS, 100, 1), rate)


def latency_while_compacting(broker: Broker, dirty: str, options: Options, rate: int) -> Sample:
    pace: Options = {"rate": rate, "skip": rate, "seconds": RUN_SECONDS}
    running = client.start("latency", options | pace | client.LATENCY)
    try:
        time.sleep(1.5)
        topics.configure(broker, dirty, "cleanup.policy", "compact")
        begin = time.monotonic()
        wait_until_cleaned(broker, dirty)
        seconds = time.monotonic() - begin
    finally:
        running.terminate()  # it ends its loop and answers
    return client.finish(running, 60) | {"compaction": seconds}


def wait_until_cleaned(broker: Broker, topic: str) -> None:
    """Both brokers note in the same file how far the cleaner came."""
    deadline = time.monotonic() + RUN_SECONDS
    checkpoint = broker.data / "cleaner-offset-checkpoint"
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if any(line.split()[:1] == [topic] for line in checkpoint.read_text().splitlines()):
                return
        time.sleep(0.05)
    raise BenchError(f"{broker.name} did not compact {topic} within {RUN_SECONDS} s.")


def warm_up(broker: Peer, seconds: float) -> None:
    """Every path that will be measured, in turn, until the time is up; the figures are thrown away."""
    small = Effort(scale=0.25)
    loads = [
        produce(broker, small, count=4_000_000, size=100, partitions=6),
        produce(broker, small, count=1_500_000, size=1024, partitions=1),
        produce(broker, small, count=150_000, size=100, partitions=1, settings=client.ONE_RECORD),
        consume(broker, small, count=4_000_000, size=100, partitions=6),
        flood(broker, small, count=300_000, connections=8, depth=10),
    ]
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as closing:
        for each in loads:
            closing.enter_context(contextlib.closing(each))
        while time.monotonic() < deadline:
            for each in loads:
                next(each)
