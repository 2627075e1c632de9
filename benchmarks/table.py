"""What is measured, which figures are shown, and what is expected of them: rows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks import coordination, guarded
from benchmarks import workloads as load
from benchmarks.client import CONSUME, ONE_RECORD, PRODUCE
from benchmarks.workloads import Samples

BOTH = ("kafka", "moldau")


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a sample. `at_least` and `at_most` bound the ratio Moldau : Kafka; `aim` is what we would like.

    `limit` and `floor` bound Moldau's own figure, whatever Kafka's is.
    """

    key: str
    title: str
    unit: str
    scale: float = 1.0
    at_least: float | None = None
    at_most: float | None = None
    aim: float | None = None
    limit: float | None = None
    floor: float | None = None

    @property
    def expected(self) -> str:
        if self.floor:
            return f"≥ {self.floor:g} {self.unit}".rstrip()
        if self.limit:
            return f"≤ {self.limit:g} {self.unit}".rstrip()
        bound = f"≥ {self.at_least:g}" if self.at_least else f"≤ {self.at_most:.3g}" if self.at_most else ""
        return f"{bound} (aim {self.aim:g})" if self.aim else bound

    def verdict(self, ratio: float | None, own: float | None) -> str:
        """PASS or MISS, or nothing where nothing is expected."""
        if own is not None and (self.limit or self.floor):
            return "PASS" if (self.floor or 0) <= own <= (self.limit or own) else "MISS"
        if ratio is None or not (self.at_least or self.at_most):
            return ""
        kept = ratio >= self.at_least if self.at_least else ratio <= (self.at_most or 0)
        return "PASS" if kept else "MISS"


@dataclass(frozen=True, slots=True)
class Row:
    """A workload. Warm rows share two long-running brokers; the others start and stop their own, alone."""

    name: str
    title: str
    samples: Callable[..., Samples]  # of a broker or cluster, and an effort
    metrics: tuple[Metric, ...]
    warm: bool = True
    runs: int = 5
    rehearsed: bool = False  # by a run that is not counted: the warm-up has nothing like it
    brokers: tuple[str, ...] = BOTH

    def has(self, broker: str) -> bool:
        """Whether it is measured on this broker; an earlier Moldau has the rows of Moldau."""
        return ("moldau" if broker == "before" else broker) in self.brokers


MESSAGES = Metric("per_second", "throughput", "k msg/s", 1e-3, at_least=1.0)
PRODUCED = (
    Metric("per_second", "throughput", "k msg/s", 1e-3, at_least=1.0, aim=1.3),
    Metric("cpu_per_gb", "broker CPU", "s/GB", at_most=0.6, aim=0.4),
)
ENCRYPTED = (MESSAGES, Metric("cpu_per_gb", "broker CPU", "s/GB", at_most=0.6, aim=0.4))
CONSUMED = (MESSAGES, Metric("cpu_per_gb", "broker CPU", "s/GB", at_most=1.0))
REQUESTS = (
    Metric("per_second", "requests", "k/s", 1e-3, at_least=3.0),
    Metric("cpu_us", "broker CPU", "µs/request"),
)
COMMITS = (
    Metric("per_second", "commits", "k/s", 1e-3, at_least=1.0),
    Metric("cpu_us", "broker CPU", "µs/commit"),
)
HANDSHAKES = (
    Metric("per_second", "handshakes", "k/s", 1e-3),
    Metric("cpu_us", "broker CPU", "µs/handshake"),
)
GUARDED = (
    Metric("per_second", "throughput", "k msg/s", 1e-3),
    Metric("kept", "throughput, ACLs and quota : none", "", floor=0.95),
    Metric("cpu_kept", "broker CPU, ACLs and quota : none", "", limit=1.05),
)
COPIED = (
    Metric("per_second", "throughput", "k msg/s", 1e-3, at_least=0.9),
    Metric("cpu_us", "broker CPU", "µs/msg"),
)
SHARED_OUT = (
    Metric("last_join", "last join to all assigned", "ms", at_most=1.0),
    Metric("cpu_us", "broker CPU", "ms/rebalance", 1e-3),
)
START = Metric("start", "start to first produce", "s", at_most=1 / 15)
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
POINTS = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9"}


def points(kind: str, title: str, p50_at_most: float | None = None) -> tuple[Metric, ...]:
    """The percentiles of one kind of latency."""
    bounds = {"p50": p50_at_most}
    return tuple(
        Metric(f"{kind}_{key}", f"{title} {name}", "ms", at_most=bounds.get(key)) for key, name in POINTS.items()
    )


def flow(kind: str, size: int, partitions: int, count: int, *, tls: bool = False) -> Row:
    """One of the sixteen rows of produce and consume."""
    shape = {"count": count, "size": size, "partitions": partitions}
    samples = partial(getattr(load, kind), **shape)
    words = f"{kind} {'1 KB' if size == 1024 else f'{size} B'}, {partitions} partition{'s' if partitions > 1 else ''}"
    name = f"{kind}-{'1kb' if size == 1024 else f'{size}b'}-{partitions}p"
    if tls:
        settings = PRODUCE if kind == "produce" else CONSUME
        encrypted = partial(load.over_tls, run=getattr(load, kind), settings=settings, **shape)
        return Row(f"tls-{name}", f"TLS: {words}", encrypted, ENCRYPTED, rehearsed=True)
    return Row(name, words, samples, PRODUCED if kind == "produce" else CONSUMED)


ROWS = (
    Row("start", "start of an empty broker", load.start_up, (START, Metric("rss", "RSS idle", "MB")), warm=False),
    *(flow("produce", 100, partitions, 6_000_000) for partitions in (1, 6)),
    *(flow("produce", 1024, partitions, 1_500_000) for partitions in (1, 6)),
    *(flow("consume", 100, partitions, 6_000_000) for partitions in (1, 6)),
    *(flow("consume", 1024, partitions, 2_000_000) for partitions in (1, 6)),
    Row(
        "one-record",
        "one record a request, librdkafka",
        partial(load.produce, count=150_000, size=100, partitions=1, settings=ONE_RECORD),
        REQUESTS,
    ),
    *(flow("produce", 100, partitions, 3_000_000, tls=True) for partitions in (1, 6)),
    *(flow("produce", 1024, partitions, 1_000_000, tls=True) for partitions in (1, 6)),
    *(flow("consume", 100, partitions, 6_000_000, tls=True) for partitions in (1, 6)),
    *(flow("consume", 1024, partitions, 1_500_000, tls=True) for partitions in (1, 6)),
    Row(
        "tls-one-record",
        "TLS: one record a request, librdkafka",
        partial(load.over_tls, run=load.produce, settings=ONE_RECORD, count=150_000, size=100, partitions=1),
        REQUESTS,
        rehearsed=True,
    ),
    Row(
        "tls-handshakes",
        "TLS: handshakes",
        partial(guarded.handshakes, count=4_000),
        HANDSHAKES,
        rehearsed=True,
    ),
    Row(
        "tls-connections",
        "TLS: 10,000 connections that stay",
        partial(guarded.connections, count=10_000),
        (Metric("kb_each", "memory of each", "KB"), Metric("rss", "RSS with all of them", "MB")),
        warm=False,
        runs=1,
    ),
    *(
        Row(
            f"guarded-{name}",
            f"{title}, under ACLs and a quota that is not reached",
            partial(guarded.beside_open, run=run, count=count, size=size, partitions=1, settings=settings),
            GUARDED,
            warm=False,
            brokers=("moldau",),
        )
        for name, title, run, count, size, settings in (
            ("produce", "produce 1 KB, 1 partition", load.produce, 1_000_000, 1024, PRODUCE),
            ("consume", "consume 1 KB, 1 partition", load.consume, 1_500_000, 1024, CONSUME),
            ("one-record", "one record a request, librdkafka", load.produce, 150_000, 100, ONE_RECORD),
        )
    ),
    Row(
        "flood",
        "one record a request, raw, 8 connections",
        partial(load.flood, count=300_000, connections=8, depth=10),
        REQUESTS,
    ),
    Row(
        "commits",
        "commits of 10 partitions, raw, 8 connections",
        partial(coordination.commits, count=200_000, partitions=10, depth=10),
        COMMITS,
        rehearsed=True,
    ),
    Row(
        "member-commits",
        "synchronous commits of 10 partitions, librdkafka, 4 members",
        partial(coordination.member_commits, count=40_000, partitions=10, members=4),
        COMMITS,
        rehearsed=True,
    ),
    *(
        Row(
            f"rebalance-{name}",
            f"100 members of 1,000 partitions, {title}",
            partial(
                coordination.share_out,
                protocol=name.partition("-")[0],
                members=100,
                partitions=1000,
                rounds=20,
                settings=settings,
            ),
            SHARED_OUT,
            rehearsed=True,
        )
        for name, title, settings in (
            ("classic", "classic protocol", {}),
            ("consumer", "consumer protocol, at most an assignment a second (default)", {}),
            ("consumer-each", "consumer protocol, an assignment with each join", {ASSIGNMENT_INTERVAL: "0"}),
        )
    ),
    *(
        Row(
            f"copy-{language}",
            f"copying exactly once, {client}",
            partial(coordination.copying, count=300_000, size=100, run=run),
            COPIED,
            rehearsed=True,
        )
        for language, client, run in (
            ("java", "TransactionalMessageCopier", coordination.copy_with_java),
            ("python", "confluent-kafka", coordination.copy_with_python),
        )
    ),
    Row(
        "latency",
        "end to end at 1,000 msg/s",
        partial(load.latency, rate=1000, seconds=8),
        points("e2e", "end to end", 0.8),
    ),
    Row(
        "compaction",
        "produce while 1 GB is compacted",
        partial(load.compaction, count=1_000_000, size=1024, rate=1000),
        (*points("ack", "acknowledged"), Metric("compaction", "compaction took", "s")),
        runs=3,
    ),
    Row(
        "memory",
        "memory after all of the load",
        load.memory_after_load,
        (Metric("rss", "RSS", "MB", at_most=0.1),),
        runs=1,
    ),
    Row(
        "recovery",
        "recovery of 1 GB of unflushed log",
        partial(load.recovery, count=1_000_000, size=1024),
        (Metric("start", "start to first produce", "s"),),
        warm=False,
        runs=3,
    ),
    Row(
        "groups",
        "restart with 10,000 groups of 10 committed partitions",
        partial(coordination.restart_with_groups, groups=10_000, partitions=10),
        (
            Metric("start", "start to first produce", "s"),
            Metric("known", "start to all groups known", "s", limit=3),
            Metric("rss", "RSS", "MB", limit=200),
        ),
        warm=False,
        runs=3,
    ),
    *(
        Row(
            f"partitions-{count}",
            f"restart with {count:,} partition{'s' if count > 1 else ''}",
            partial(load.restart_with_partitions, partitions=count),
            (
                Metric("start", "start to first produce", "s"),
                Metric("rss", "RSS idle", "MB"),
                Metric("stop", "clean stop", "s"),
            ),
            warm=False,
            runs=3,
            brokers=("moldau",),
        )
        for count in (1, 100, 2000)
    ),
)
