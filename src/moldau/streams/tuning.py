"""The settings of Kafka Streams: which are used, which have no effect here, and the hint for a misspelt one."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from moldau.operators.context import TopologyError

OF_CLIENTS = frozenset((
    "bootstrap.servers", "client.id", "security.protocol", "connections.max.idle.ms", "metadata.max.age.ms",
    "receive.buffer.bytes", "send.buffer.bytes", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
    "retry.backoff.ms", "request.timeout.ms",
))  # fmt: skip
USED = OF_CLIENTS | frozenset((
    "application.id", "commit.interval.ms", "default.key.serde", "default.value.serde", "default.timestamp.extractor",
    "deserialization.exception.handler", "default.deserialization.exception.handler", "processing.exception.handler",
    "production.exception.handler", "default.production.exception.handler", "errors.dead.letter.queue.topic.name",
    "processing.guarantee", "statestore.cache.max.bytes", "cache.max.bytes.buffering", "state.dir",
    "application.server", "topology.optimization", "replication.factor", "schema.registry.url",
    "ensure.explicit.internal.resource.naming", "windowstore.changelog.additional.retention.ms",
    "dsl.store.suppliers.class", "default.dsl.store", "dsl.store.format", "views.max.bytes", "views.history",
    "auto.offset.reset", "compression.type", "batch.size", "transaction.timeout.ms",
))  # fmt: skip
OFFSET_RESET = "auto.offset.reset"
PRODUCER = ("compression.type", "batch.size", "transaction.timeout.ms")  # what the sink is told, also with a prefix
CONSUMERS = ("consumer.", "main.consumer.")
PREFIXED = frozenset((*(prefix + OFFSET_RESET for prefix in CONSUMERS), *(f"producer.{name}" for name in PRODUCER)))
OTHERS = (
    "acks", "buffer.memory", "client.dns.lookup", "client.rack", "delivery.timeout.ms", "enable.idempotence",
    "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "heartbeat.interval.ms", "interceptor.classes",
    "isolation.level", "linger.ms", "max.block.ms", "max.partition.fetch.bytes", "max.poll.interval.ms",
    "max.poll.records", "max.request.size", "retries", "session.timeout.ms",
)  # fmt: skip
NOT_OURS = "topics are read by Spark's source and written by its sink, which have settings of their own"
REASONS = {
    NOT_OURS: OTHERS,
    "a task waits for partitions that have more to read, and for no others": ("max.task.idle.ms",),
    "the handler is always asked about global stores too": ("processing.exception.handler.global.enabled",),
    "lists are values of Json() or Avro()": (
        "default.list.key.serde.inner", "default.list.key.serde.type", "default.list.value.serde.inner",
        "default.list.value.serde.type",
    ),
    "TimeWindowedSerde and SessionWindowedSerde are told the serde of their keys": ("windowed.inner.class.serde",),
    "TimeWindowedSerde is told the size of its windows": ("window.size.ms",),
    "Spark looks after its checkpoint": (
        "allow.os.group.write.access", "state.cleanup.dir.max.age.ms", "state.cleanup.delay.ms",
    ),
    "settings are values of Python: look them up before they are given": ("config.providers",),
    "clients find the cluster again by themselves": (
        "metadata.recovery.strategy", "metadata.recovery.rebootstrap.trigger.ms",
    ),
    "a processor is a class of Python: wrap it where it is given": ("processor.wrapper.class",),
    "state is in Spark's checkpoint and in changelog topics, no copies are kept warm": ("num.standby.replicas",),
    "state is in Spark's checkpoint, nothing is warmed up": ("max.warmup.replicas", "acceptable.recovery.lag"),
    "Spark distributes the work": (
        "probing.rebalance.interval.ms", "rack.aware.assignment.strategy", "rack.aware.assignment.tags",
        "rack.aware.assignment.traffic_cost", "rack.aware.assignment.non_overlap_cost", "task.assignor.class",
        "group.protocol",
    ),
    "spark.master says how much runs at once": ("num.stream.threads",),
    "state is in pages of Spark's state store": ("rocksdb.config.setter",),
    "there is no earlier version": ("upgrade.from",),
    "metrics are those of Spark": (
        "built.in.metrics.version", "metrics.recording.level", "metric.reporters", "metrics.num.samples",
        "metrics.sample.window.ms", "enable.metrics.push",
    ),
    "a micro-batch is bounded by maxOffsetsPerTrigger": ("buffered.records.per.partition",),
    "Spark asks for records": ("poll.ms",),
    "Spark tries a task again": ("task.timeout.ms",),
    "clients are the platform's own": ("default.client.supplier",),
    "Spark reports its progress": ("log.summary.interval.ms",),
    "there are no repartition topics to purge": ("repartition.purge.interval.ms",),
}  # fmt: skip
INERT = {name: reason for reason, names in REASONS.items() for name in names}
PREFIXES = ("spark.", "topic.", "ssl.", "sasl.", "schema.registry.", "__")
CLIENTS = ("consumer.", "main.consumer.", "restore.consumer.", "global.consumer.", "producer.", "admin.")
OPTIMIZATION = "topology.optimization"
REUSE = "reuse.ktable.source.topics"
OPTIMIZATIONS = ("none", "all", REUSE, "merge.repartition.topics", "single.store.self.join")


@cache
def warn(name: str) -> None:
    """Warn once a process."""
    warnings.warn(f"{name} has no effect here: {INERT.get(name, NOT_OURS)}", stacklevel=4)


def check(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings. Warn of each that has no effect here, and refuse unknown ones."""
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise TopologyError(f"settings must be a mapping from names to values, not {settings!r}")
    for name in settings:
        if name in INERT or (name.startswith(CLIENTS) and name not in PREFIXED):
            warn(name)
        elif name not in USED and name not in PREFIXED and not name.startswith(PREFIXES):
            near = difflib.get_close_matches(name, [*USED, *INERT], 1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise TopologyError(f"the setting {name!r} is not known{hint}")
    wrong = set(optimizations(settings)) - set(OPTIMIZATIONS)
    if wrong:
        raise TopologyError(f"{OPTIMIZATION} is {min(wrong)!r}: it must be one of {', '.join(OPTIMIZATIONS)}")
    store_type(settings)
    if str(settings.get("dsl.store.format", "default")).lower() != "default":
        raise TopologyError("dsl.store.format must be 'default': stores keep values and their times, no headers")
    return dict(settings)


def store_type(settings: Mapping[str, Any]) -> str:
    """Return the default type of stores, which is set by the name of Kafka's class or by one word."""
    given = str(settings.get("dsl.store.suppliers.class", settings.get("default.dsl.store", "rocksDB")))
    found = {"InMemoryDslStoreSuppliers": "in_memory", "in_memory": "in_memory"}
    found |= {"RocksDBDslStoreSuppliers": "persistent", "rocksDB": "persistent"}
    short = given.removesuffix("'>").rsplit(".", 1)[-1].rsplit("$", 1)[-1]
    if short not in found:
        raise TopologyError(f"dsl.store.suppliers.class is {given!r}: it must be one of {', '.join(found)}")
    return found[short]


def optimizations(settings: Mapping[str, Any]) -> list[str]:
    return [name.strip() for name in str(settings.get(OPTIMIZATION, "none")).split(",")]


def reuses_source_topics(settings: Mapping[str, Any]) -> bool:
    """Return whether a table's topic serves as its changelog. The other optimizations have no effect: no repartition
    topics are written on Spark.
    """
    return bool({"all", REUSE} & set(optimizations(settings)))
