"""Which settings of Kafka Streams are known, which of them mean nothing here, and what a typing mistake is told."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from moldau.operators.context import TopologyError

USED = frozenset((
    "application.id", "bootstrap.servers", "client.id", "commit.interval.ms", "default.key.serde",
    "default.value.serde", "default.timestamp.extractor", "deserialization.exception.handler",
    "default.deserialization.exception.handler", "processing.exception.handler", "production.exception.handler",
    "default.production.exception.handler", "errors.dead.letter.queue.topic.name", "processing.guarantee",
    "statestore.cache.max.bytes", "cache.max.bytes.buffering", "state.dir", "application.server",
    "topology.optimization", "replication.factor", "schema.registry.url", "ensure.explicit.internal.resource.naming",
    "windowstore.changelog.additional.retention.ms", "security.protocol", "dsl.store.suppliers.class",
    "default.dsl.store", "dsl.store.format", "views.max.bytes", "views.history", "auto.offset.reset",
    "compression.type", "batch.size", "transaction.timeout.ms", "connections.max.idle.ms", "metadata.max.age.ms",
    "receive.buffer.bytes", "send.buffer.bytes", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
    "retry.backoff.ms", "request.timeout.ms",
))  # fmt: skip
OF_CLIENTS = frozenset(
    (
        "bootstrap.servers",
        "client.id",
        "security.protocol",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "receive.buffer.bytes",
        "send.buffer.bytes",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "request.timeout.ms",
    )
)  # what every client is told
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
INERT = {
    **dict.fromkeys(OTHERS, NOT_OURS),
    "max.task.idle.ms": "a task waits for partitions that have more to read, and for no others",
    "processing.exception.handler.global.enabled": "the handler is always asked about global stores too",
    "default.list.key.serde.inner": "lists are values of Json() or Avro()",
    "default.list.key.serde.type": "lists are values of Json() or Avro()",
    "default.list.value.serde.inner": "lists are values of Json() or Avro()",
    "default.list.value.serde.type": "lists are values of Json() or Avro()",
    "windowed.inner.class.serde": "TimeWindowedSerde and SessionWindowedSerde are told the serde of their keys",
    "window.size.ms": "TimeWindowedSerde is told the size of its windows",
    "allow.os.group.write.access": "Spark looks after its checkpoint",
    "state.cleanup.dir.max.age.ms": "Spark looks after its checkpoint",
    "config.providers": "settings are values of Python: look them up before they are given",
    "metadata.recovery.strategy": "clients find the cluster again by themselves",
    "metadata.recovery.rebootstrap.trigger.ms": "clients find the cluster again by themselves",
    "processor.wrapper.class": "a processor is a class of Python: wrap it where it is given",
    "num.standby.replicas": "state is in Spark's checkpoint and in changelog topics, no copies are kept warm",
    "max.warmup.replicas": "state is in Spark's checkpoint, nothing is warmed up",
    "acceptable.recovery.lag": "state is in Spark's checkpoint, nothing is warmed up",
    "probing.rebalance.interval.ms": "Spark distributes the work",
    "num.stream.threads": "spark.master says how much runs at once",
    "rocksdb.config.setter": "state is in pages of Spark's state store",
    "rack.aware.assignment.strategy": "Spark distributes the work",
    "rack.aware.assignment.tags": "Spark distributes the work",
    "rack.aware.assignment.traffic_cost": "Spark distributes the work",
    "rack.aware.assignment.non_overlap_cost": "Spark distributes the work",
    "task.assignor.class": "Spark distributes the work",
    "group.protocol": "Spark distributes the work",
    "upgrade.from": "there is no earlier version",
    "built.in.metrics.version": "metrics are those of Spark",
    "metrics.recording.level": "metrics are those of Spark",
    "metric.reporters": "metrics are those of Spark",
    "metrics.num.samples": "metrics are those of Spark",
    "metrics.sample.window.ms": "metrics are those of Spark",
    "enable.metrics.push": "metrics are those of Spark",
    "state.cleanup.delay.ms": "Spark looks after its checkpoint",
    "buffered.records.per.partition": "a micro-batch is bounded by maxOffsetsPerTrigger",
    "poll.ms": "Spark asks for records",
    "task.timeout.ms": "Spark tries a task again",
    "default.client.supplier": "clients are the platform's own",
    "log.summary.interval.ms": "Spark reports its progress",
    "repartition.purge.interval.ms": "there are no repartition topics to purge",
}
PREFIXES = ("spark.", "topic.", "ssl.", "sasl.", "schema.registry.", "__")
CLIENTS = ("consumer.", "main.consumer.", "restore.consumer.", "global.consumer.", "producer.", "admin.")
OPTIMIZATION = "topology.optimization"
REUSE = "reuse.ktable.source.topics"
OPTIMIZATIONS = ("none", "all", REUSE, "merge.repartition.topics", "single.store.self.join")


@cache
def warn(name: str) -> None:
    """Once a process."""
    warnings.warn(f"{name} means nothing here: {INERT.get(name, NOT_OURS)}", stacklevel=4)


def check(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they are. Of those that mean nothing here, one warning each; unknown ones are refused."""
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
    """What stores are where nothing is said of them: Kafka's two suppliers, by the name of their class, or one word."""
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
    """Whether the topic of a table serves as its changelog. The other optimizations have nothing to do here: no
    repartition topics are written on Spark.
    """
    return bool({"all", REUSE} & set(optimizations(settings)))
