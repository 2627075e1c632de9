"""The loads that only a cluster can have: nodes that die or leave, a follower that catches up, many partitions."""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from benchmarks import client, topics
from benchmarks.clusters import NODES, Cluster, await_in_sync
from benchmarks.places import BenchError
from benchmarks.workloads import Effort, Sample, Samples, load, measured, produce, with_costs

NUMBERS = itertools.count(1)
BEFORE_S, AFTER_S, MOST_S = 1.0, 1.0, 60.0
RATE = 200
SETTLED_S = 5.0
IDLE_S = 10.0
CHUNK = 1000  # partitions of a topic when there are many


@contextlib.contextmanager
def led_by(cluster: Cluster, leader: int, partitions: int = 1) -> Iterator[str]:
    """A topic that one node leads, for the time of a block."""
    name = f"led{next(NUMBERS)}"
    replicas = [leader, *(number for number in range(1, NODES + 1) if number != leader)]
    wanted = NewTopic(name, partitions, replica_assignment=[replicas] * partitions)
    topics.ask(cluster, lambda admin: admin.create_topics([wanted]))
    try:
        yield name
    finally:
        if cluster.alive:
            topics.delete(cluster, name)


def longest_gap(cluster: Cluster, topic: str, fault: Callable[[], object]) -> float:
    """The longest time without an acknowledgement, of a producer with acks=all that keeps on, while something fails."""
    times: list[float] = []
    lost: list[object] = []

    def on_delivery(error: object, _: object) -> None:
        (lost if error else times).append(error or time.monotonic())

    producer = Producer(
        {"bootstrap.servers": cluster.address, "enable.idempotence": True, "linger.ms": 0, "log_level": 0}
    )
    began = time.monotonic()
    deadline, failed_at = began + MOST_S, float("inf")
    while (now := time.monotonic()) < deadline:
        producer.produce(topic, b"x" * 100, on_delivery=on_delivery)
        producer.poll(1 / RATE)
        if failed_at == float("inf") and times and now > times[0] + BEFORE_S:
            failed_at = time.monotonic()
            fault()
        elif now > failed_at + AFTER_S and is_steady(times, now):
            break
    if producer.flush(MOST_S) or lost:
        raise BenchError(f"{cluster.name} lost {len(lost) or 'some'} records while a node failed: {lost[:1]}.")
    return max(b - a for a, b in itertools.pairwise(times))


def is_steady(times: list[float], now: float) -> bool:
    """Whether acknowledgements have come all the time for a while."""
    recent = [at for at in times if at > now - AFTER_S]
    return len(recent) > RATE * AFTER_S / 4 and recent[0] - (now - AFTER_S) < AFTER_S / 4


def failing(cluster: Cluster, effort: Effort, *, is_controller: bool, is_killed: bool) -> Samples:
    """A node goes that leads the partition; the active controller, or one that is not."""
    while True:
        active = cluster.active_controller()
        leader = active if is_controller else active % NODES + 1
        node = cluster.node(leader)
        with led_by(cluster, leader) as topic:
            gap = longest_gap(cluster, topic, node.kill if is_killed else node.ask_to_stop)
            node.stop()
            node.launch(node.prepare({}))
            await_in_sync(cluster, [topic])
        yield {"gap": gap}


def catching_up(cluster: Cluster, effort: Effort, *, count: int, size: int) -> Samples:
    """A follower was away while much was written; from its start until it is in sync everywhere."""
    count = effort.count(count)
    while True:
        cluster.wipe()
        cluster.start()
        topics.create(cluster, "away", 6)
        follower = cluster.node(NODES)
        follower.stop()
        measured_alone(cluster, load(cluster, "away", count, size, 6) | client.PRODUCE)
        command = follower.prepare({})
        begin = time.monotonic()
        follower.launch(command)
        await_in_sync(cluster, ["away"])
        seconds = time.monotonic() - begin
        cluster.wipe()
        yield {"mb_per_second": count * size / 1e6 / seconds}


def measured_alone(cluster: Cluster, options: client.Options) -> None:
    """Write while a node is away; only what runs can be asked for its CPU, so nobody is."""
    answer = client.run("produce", {"seconds": 600} | options)
    if answer["n"] < int(options["count"]):
        raise BenchError(f"{cluster.name} took {answer['n']:.0f} of {options['count']} records.")


def many_partitions(cluster: Cluster, effort: Effort, *, partitions: int) -> Samples:
    """Topics of a thousand partitions each: made, left alone, with six partitions busy among them, started again."""
    partitions = max(CHUNK, effort.count(partitions))
    busy = Effort(scale=0.5 * effort.scale)
    while True:
        cluster.wipe()
        cluster.start()
        with contextlib.closing(produce(cluster, busy, count=1_500_000, size=1024, partitions=6)) as alone:
            next(alone)
            few = next(alone)["per_second"]
        names = [f"many{number}" for number in range(partitions // CHUNK)]
        begin = time.monotonic()
        for name in names:
            topics.create(cluster, name, CHUNK)
        await_in_sync(cluster, names)
        sample = {"created": time.monotonic() - begin}
        sample["idle"] = idle_share(cluster)
        sample["rss"] = cluster.rss_mb()
        with contextlib.closing(produce(cluster, busy, count=1_500_000, size=1024, partitions=6)) as among:
            next(among)
            sample["kept"] = next(among)["per_second"] / few
        cluster.stop()
        sample["start"] = cluster.start(topic=names[-1])
        await_in_sync(cluster, names)
        cluster.wipe()
        yield sample


def idle_share(cluster: Cluster) -> float:
    """The CPU of all nodes that nobody asks for anything, in percent of one core."""
    time.sleep(SETTLED_S)
    before, begin = cluster.cpu_seconds(), time.monotonic()
    time.sleep(IDLE_S)
    return (cluster.cpu_seconds() - before) / (time.monotonic() - begin) * 100


def idle(cluster: Cluster, effort: Effort) -> Samples:
    while True:
        yield {"idle": idle_share(cluster)}


def warm_up(cluster: Cluster, seconds: float) -> None:
    """The loads of the warm rows, until the time is up; the figures are thrown away."""
    small = Effort(scale=0.1)
    loads = [
        produce(cluster, small, count=1_500_000, size=1024, partitions=6),
        produce(cluster, small, count=4_000_000, size=100, partitions=6),
        one_record(cluster, small, count=20_000),
    ]
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as closing:
        for each in loads:
            closing.enter_context(contextlib.closing(each))
        while time.monotonic() < deadline:
            for each in loads:
                next(each)


def one_record(cluster: Cluster, effort: Effort, *, count: int) -> Samples:
    """Requests of one record each, acks=all, by one connection with five in flight."""
    settings = client.ONE_RECORD | {"rd.max.in.flight": 5}
    count = effort.count(count)
    while True:
        with topics.topic(cluster, 1) as topic:
            sample: Sample = measured(cluster, "produce", load(cluster, topic, count, 100, 1) | settings)
        yield with_costs(sample, 100)
