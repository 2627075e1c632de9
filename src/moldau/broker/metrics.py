"""The metrics page: a table of what is told, and the small HTTP server that tells it.

Nothing is counted for the page's sake: node and rim keep plain numbers, and a scrape reads them. To add a metric, add
a row. `prometheus_client` writes the text, and is imported only where a page is asked for.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from prometheus_client import exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from moldau.broker.partition import Partition
from moldau.wire import messages as m

if TYPE_CHECKING:
    from moldau.broker.rim.server import Server

STARTED = time.time()
REQUEST_LIMIT = 8192
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")

Rows = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: its type, what it says, how it is read, its labels if it has more than one value, and the name of
    Kafka's metric with the same meaning."""

    name: str
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    help: str
    read: Callable[[Server], Rows | float]
    labels: tuple[str, ...] = ()
    kafka: str = ""


def _requests(server: Server) -> Rows:
    for key, count in server.node.request_counts.items():
        if count:
            yield (m.request_class(key).__name__.removesuffix("Request"),), count


def _counts(counts: Counter[str]) -> Rows:
    return [((name,), count) for name, count in counts.items()]


def _partitions(read: Callable[[Any], float]) -> Callable[[Server], Rows]:
    def rows(server: Server) -> Rows:
        for partition in server.node.replicas:
            yield (partition.topic, str(partition.index)), read(partition.log)

    return rows


def _led(is_so: Callable[[Partition], bool]) -> Callable[[Server], float]:
    """Count partitions that this broker leads."""
    return lambda server: sum(one.leads and is_so(one) for one in server.node.replicas)


def _is_under_replicated(one: Partition) -> bool:
    """Tell whether replicas are not in sync, apart from those that a move is making."""
    placed = one.placement
    return any(replica not in placed.isr and replica not in placed.adding for replica in placed.replicas)


def _is_at_min_isr(one: Partition) -> bool:
    return len(one.placement.isr) == min(one.min_insync_replicas, len(one.placement.replicas))


def _leaderless(server: Server) -> float:
    return sum(one.leader < 0 for topic in server.node.cluster.topics.values() for one in topic.partitions.values())


def _max_lag(server: Server) -> float:
    fetchers = server.node.replication.fetchers.values()
    return max((one.lag for fetcher in fetchers for one in fetcher.followed.values()), default=0)


def _fenced(server: Server) -> int:
    return sum(one.fenced for one in server.node.cluster.brokers.values())


def _quorum_state(server: Server) -> Rows:
    """Return the part that this node plays: a node that is alone leads, a broker without a vote observes."""
    quorum = server.node.quorum
    raft = getattr(quorum, "raft", None)
    state = "leader" if quorum is None else "observer" if raft is None or not quorum.is_voter else raft.role.value
    return (((state,), 1),)


def _quorum_epoch(server: Server) -> float:
    quorum = server.node.quorum
    return server.node.metadata.epoch if quorum is None else quorum.epoch


def _counter(name: str, factor: float = 1) -> Callable[[Server], float]:
    return lambda server: getattr(server.node.cluster_counters, name) * factor


def _cpu(_: Server) -> Rows:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return ((("user",), usage.ru_utime), (("system",), usage.ru_stime))


def resident_bytes() -> int:
    """Resident memory of this process, or its peak where there is no /proc."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * PAGE_SIZE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _out_bytes(server: Server) -> float:
    return sum(len(part) for channel in server.channels.values() for part in channel.connection.out)


def _telemetry_clients(server: Server) -> float:
    return server.node.telemetry.living(server.node.clock.monotonic_ms())


def _throttled(place: int, unit: float = 1.0) -> Callable[[Server], Rows]:
    def rows(server: Server) -> Rows:
        quotas = server.node.quotas
        return [] if quotas is None else [(key, found[place] / unit) for key, found in list(quotas.throttled.items())]

    return rows


COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily
PARTITION = ("topic", "partition")

ENTITY = ("quota", "user", "client_id")

# Clients over their quotas; at most the 200 that were throttled first, for as long as there are quotas.
QUOTAS = (
    Row(
        "moldau_throttled_requests_total",
        COUNTER,
        "Requests that were throttled, by quota, user and client id.",
        _throttled(0),
        ENTITY,
    ),
    Row(
        "moldau_throttle_seconds_total",
        COUNTER,
        "Time for which clients were told to wait, by quota, user and client id.",
        _throttled(1, 1000.0),
        ENTITY,
        "throttle-time of Produce, Fetch, Request and ControllerMutation",
    ),
)

# Replication, the controller and the quorum. On a node that is alone they say that all is well.
CLUSTER = (
    Row(
        "moldau_leaders",
        GAUGE,
        "Partitions that this broker leads.",
        _led(lambda _: True),
        kafka="ReplicaManager LeaderCount",
    ),
    Row(
        "moldau_under_replicated_partitions",
        GAUGE,
        "Partitions that this broker leads and that have replicas which are not in sync.",
        _led(_is_under_replicated),
        kafka="ReplicaManager UnderReplicatedPartitions",
    ),
    Row(
        "moldau_under_min_isr_partitions",
        GAUGE,
        "Partitions that this broker leads with too few replicas in sync for acks=all.",
        _led(Partition.lacks_replicas),
        kafka="ReplicaManager UnderMinIsrPartitionCount",
    ),
    Row(
        "moldau_at_min_isr_partitions",
        GAUGE,
        "Partitions that this broker leads with just enough replicas in sync for acks=all.",
        _led(_is_at_min_isr),
        kafka="ReplicaManager AtMinIsrPartitionCount",
    ),
    Row(
        "moldau_isr_shrinks",
        COUNTER,
        "Times that a replica of a partition led here has fallen out of sync.",
        _counter("isr_shrinks"),
        kafka="ReplicaManager IsrShrinksPerSec",
    ),
    Row(
        "moldau_isr_expansions",
        COUNTER,
        "Times that a replica of a partition led here has come to be in sync.",
        _counter("isr_expansions"),
        kafka="ReplicaManager IsrExpandsPerSec",
    ),
    Row(
        "moldau_replica_max_lag",
        GAUGE,
        "Records by which this broker, as a follower, is behind a leader at most.",
        _max_lag,
        kafka="ReplicaFetcherManager MaxLag",
    ),
    Row(
        "moldau_reassigning_partitions",
        GAUGE,
        "Partitions that this broker leads and that are being moved.",
        lambda s: len(s.node.replication.reassigning),
        kafka="ReplicaManager ReassigningPartitions",
    ),
    Row(
        "moldau_reassignment_received_bytes",
        COUNTER,
        "Bytes that new replicas on this broker have fetched.",
        _counter("reassignment_bytes_in"),
        kafka="BrokerTopicMetrics ReassignmentBytesInPerSec",
    ),
    Row(
        "moldau_reassignment_sent_bytes",
        COUNTER,
        "Bytes that this broker has sent to new replicas elsewhere.",
        _counter("reassignment_bytes_out"),
        kafka="BrokerTopicMetrics ReassignmentBytesOutPerSec",
    ),
    Row(
        "moldau_active_controller",
        GAUGE,
        "1 on the active controller, 0 elsewhere.",
        lambda s: float(s.node.quorum is None or s.node.quorum.is_active),
        kafka="KafkaController ActiveControllerCount",
    ),
    Row(
        "moldau_active_brokers",
        GAUGE,
        "Brokers of the cluster that are not fenced, as this node knows.",
        lambda s: len(s.node.cluster.brokers) - _fenced(s),
        kafka="KafkaController ActiveBrokerCount",
    ),
    Row(
        "moldau_fenced_brokers",
        GAUGE,
        "Brokers of the cluster that are fenced, as this node knows.",
        _fenced,
        kafka="KafkaController FencedBrokerCount",
    ),
    Row(
        "moldau_offline_partitions",
        GAUGE,
        "Partitions of the cluster that have no leader, as this node knows.",
        _leaderless,
        kafka="KafkaController OfflinePartitionsCount",
    ),
    Row(
        "moldau_leader_elections",
        COUNTER,
        "Leaders of partitions that have been elected since this node started.",
        _counter("elections"),
        kafka="ControllerStats LeaderElectionRateAndTimeMs",
    ),
    Row(
        "moldau_unclean_leader_elections",
        COUNTER,
        "Those of them that were not in sync before: records may be lost.",
        _counter("unclean_elections"),
        kafka="ControllerStats UncleanLeaderElectionsPerSec",
    ),
    Row("moldau_quorum_epoch", GAUGE, "Epoch of the quorum.", _quorum_epoch, kafka="raft-metrics current-epoch"),
    Row(
        "moldau_quorum_state",
        GAUGE,
        "The part that this node plays in the quorum.",
        _quorum_state,
        ("state",),
        "raft-metrics current-state",
    ),
    Row(
        "moldau_quorum_high_watermark",
        GAUGE,
        "High watermark of the metadata log.",
        lambda s: s.node.metadata.log.high_watermark,
        kafka="raft-metrics high-watermark",
    ),
    Row(
        "moldau_quorum_log_end_offset",
        GAUGE,
        "End of this node's copy of the metadata log.",
        lambda s: s.node.metadata.log.end_offset,
        kafka="raft-metrics log-end-offset",
    ),
    Row(
        "moldau_metadata_commits",
        COUNTER,
        "Changes of the metadata that this node has written as the active controller and that were committed.",
        _counter("commits"),
    ),
    Row(
        "moldau_metadata_commit_seconds",
        COUNTER,
        "Time from the writing to the commit of these changes; divided by their number it is the mean latency.",
        _counter("commit_ms", 1e-3),
        kafka="raft-metrics commit-latency-avg",
    ),
)

TABLE = (
    Row("moldau_connections", GAUGE, "Open client connections.", lambda s: len(s.channels)),
    Row("moldau_connections_accepted", COUNTER, "Connections accepted.", lambda s: s.counters.accepted),
    Row(
        "moldau_connections_refused",
        COUNTER,
        "Connections refused or closed by the broker, by the limit or fault that caused it.",
        lambda s: _counts(s.counters.refused),
        ("reason",),
    ),
    Row("moldau_received_bytes", COUNTER, "Bytes read from clients.", lambda s: s.counters.bytes_in),
    Row("moldau_sent_bytes", COUNTER, "Bytes written to clients.", lambda s: s.counters.bytes_out),
    Row("moldau_unsent_bytes", GAUGE, "Answers that clients have not read yet.", _out_bytes),
    Row("moldau_requests", COUNTER, "Requests received, by API.", _requests, ("api",)),
    Row(
        "moldau_waiting_requests",
        GAUGE,
        "Requests that wait: long polls, acknowledgements, group joins.",
        lambda s: sum(len(c.connection.pending) for c in s.channels.values()),
    ),
    Row("moldau_topics", GAUGE, "Topics on this broker.", lambda s: len(s.node.replicas.by_name)),
    Row(
        "moldau_partitions",
        GAUGE,
        "Partitions on this broker.",
        lambda s: sum(1 for _ in s.node.replicas),
        kafka="ReplicaManager PartitionCount",
    ),
    Row(
        "moldau_offline_replicas",
        GAUGE,
        "Partitions on this broker whose log cannot be used.",
        lambda s: sum(p.log.offline is not None for p in s.node.replicas),
        kafka="ReplicaManager OfflineReplicaCount",
    ),
    *CLUSTER,
    *QUOTAS,
    Row("moldau_log_bytes", GAUGE, "Size of a partition's log.", _partitions(lambda log: log.size), PARTITION),
    Row("moldau_log_start_offset", GAUGE, "First offset.", _partitions(lambda log: log.start_offset), PARTITION),
    Row("moldau_log_end_offset", GAUGE, "Next offset.", _partitions(lambda log: log.end_offset), PARTITION),
    Row("moldau_high_watermark", GAUGE, "High watermark.", _partitions(lambda log: log.high_watermark), PARTITION),
    Row("moldau_telemetry_clients", GAUGE, "Clients that push telemetry.", _telemetry_clients),
    Row("moldau_telemetry_pushes", COUNTER, "Telemetry packets taken.", lambda s: s.node.telemetry.pushes),
    Row("moldau_telemetry_bytes", COUNTER, "Bytes of telemetry taken.", lambda s: s.node.telemetry.pushed_bytes),
    Row(
        "moldau_telemetry_refused",
        COUNTER,
        "Requests of telemetry that were refused, by error.",
        lambda s: _counts(s.node.telemetry.refused),
        ("error",),
    ),
    Row("moldau_cpu_seconds", COUNTER, "CPU time of the broker's process.", _cpu, ("mode",)),
    Row("moldau_resident_bytes", GAUGE, "Memory of the broker's process.", lambda _: resident_bytes()),
    Row("moldau_start_time_seconds", GAUGE, "When the broker started, in Unix time.", lambda _: STARTED),
)


def _service_times(server: Server) -> Metric:
    """Return how long requests held the node. The sum is computed from the middles of the buckets."""
    family = HistogramMetricFamily("moldau_request_seconds", "Time that a request held the node, waits left out.")
    total, seconds, buckets = 0, 0.0, []
    for power, count in enumerate(server.counters.times):
        bound = 1.024e-6 * 2**power
        total += count
        seconds += count * bound * 0.75
        if bound < 16:
            buckets.append((f"{bound:.9f}", total))
    family.add_metric([], [*buckets, ("+Inf", total)], seconds)
    return family


class Collector:
    """Reads the table when the page is asked for."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def collect(self) -> Iterator[Metric]:
        for row in TABLE:
            family = row.kind(row.name, row.help, labels=row.labels)
            values = row.read(self.server)
            for labels, value in [((), values)] if isinstance(values, int | float) else values:
                family.add_metric(labels, value)
            yield family
        yield _service_times(self.server)


class Page(asyncio.Protocol):
    """One HTTP request for the page. It serves a scraper on a private port, and knows no more than that needs."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self.head += data
        if b"\r\n\r\n" in self.head:
            self.transport.write(self.answer(self.head.split(b"\r\n")[0].split(b" ")))
            self.transport.close()
        elif len(self.head) > REQUEST_LIMIT:
            self.transport.close()

    def answer(self, request: list[bytes]) -> bytes:
        if len(request) != 3 or request[0] not in (b"GET", b"HEAD"):
            return response(405, "Method Not Allowed", b"Only GET is known here.\n")
        if request[1].partition(b"?")[0] not in (b"/metrics", b"/"):
            return response(404, "Not Found", b"The page is /metrics.\n")
        body = exposition.generate_latest(self.collector)  # pyright: ignore[reportArgumentType]
        full = response(200, "OK", body, exposition.CONTENT_TYPE_LATEST)
        return full if request[0] == b"GET" else full[: full.index(b"\r\n\r\n") + 4]


def response(status: int, reason: str, body: bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    """Return an HTTP/1.1 response that ends the connection."""
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
    return head.encode() + b"\r\n\r\n" + body


async def serve(server: Server, port: int) -> asyncio.Server:
    """Open the page on the loopback address."""
    collector = Collector(server)
    return await server.loop.create_server(lambda: Page(collector), "127.0.0.1", port)
