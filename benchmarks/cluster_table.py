"""What is measured of three nodes, and what is expected of them: rows, as in `table.py`."""

from functools import partial

from benchmarks import cluster_loads as load
from benchmarks.table import Metric, Row, points
from benchmarks.workloads import latency, memory_after_load, produce, start_up

PRODUCED = (
    Metric("per_second", "throughput", "k msg/s", 1e-3, at_least=1.5, aim=3),
    Metric("cpu_per_gb", "CPU of all nodes", "s/GB", at_most=0.5, aim=0.3),
)
GAPS = (
    ("kill-leader", "kill -9 of a leader", {"is_controller": False, "is_killed": True}, 0.2),
    (
        "kill-controller",
        "kill -9 of the active controller, which leads",
        {"is_controller": True, "is_killed": True},
        0.8,
    ),
    ("stop-leader", "controlled shutdown of a leader", {"is_controller": False, "is_killed": False}, 0.5),
)

ROWS = (
    Row(
        "start",
        "three nodes from nothing",
        start_up,
        (
            Metric("start", "start to first acknowledged write", "s", at_most=0.1),
            Metric("rss", "RSS of all nodes, idle", "MB"),
        ),
        warm=False,
    ),
    *(
        Row(
            f"produce-{name}",
            f"produce {title}, 6 partitions",
            partial(produce, count=count, size=size, partitions=6),
            PRODUCED,
        )
        for name, title, size, count in (("1kb", "1 KB", 1024, 600_000), ("100b", "100 B", 100, 2_000_000))
    ),
    Row(
        "one-record",
        "one record a request, 5 in flight, one connection",
        partial(load.one_record, count=20_000),
        (
            Metric("per_second", "requests", "k/s", 1e-3, at_least=5, aim=20),
            Metric("cpu_us", "CPU of all nodes", "µs/request"),
        ),
        runs=3,
    ),
    Row(
        "latency",
        "end to end at 1,000 msg/s",
        partial(latency, rate=1000, seconds=8),
        points("e2e", "end to end", 0.7),
    ),
    Row("idle", "idle", load.idle, (Metric("idle", "CPU of all nodes", "% of a core", at_most=1.0),), runs=3),
    Row(
        "memory",
        "memory after the load",
        memory_after_load,
        (Metric("rss", "RSS of all nodes", "MB", at_most=0.125),),
        runs=1,
    ),
    *(
        Row(
            name,
            title,
            partial(load.failing, **how),
            (Metric("gap", "longest time without an acknowledgement", "s", at_most=bound),),
            runs=3,
        )
        for name, title, how, bound in GAPS
    ),
    Row(
        "catch-up",
        "a follower that was away for 5 GB",
        partial(load.catching_up, count=5_000_000, size=1024),
        (Metric("mb_per_second", "start to in sync", "MB/s", at_least=1.0),),
        warm=False,
        runs=1,
    ),
    Row(
        "partitions",
        "10,000 partitions with 3 replicas each",
        partial(load.many_partitions, partitions=10_000),
        (
            Metric("created", "created and in sync", "s", at_most=1.0),
            Metric("start", "start to first acknowledged write", "s", at_most=1.0),
            Metric("idle", "CPU of all nodes, idle", "% of a core", at_most=1.0),
            Metric("rss", "RSS of all nodes", "MB", at_most=1.0),
            Metric("kept", "throughput of 6 busy ones : 6 alone", "", floor=0.9),
        ),
        warm=False,
        runs=1,
    ),
)
