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
    "statestore.cache.max.bytes", "cache.max.bytes.buffering", "max.task.idle.ms", "state.dir", "application.server",
    "topology.optimization", "replication.factor", "schema.registry.url", "ensure.explicit.internal.resource.naming",
    "windowstore.changelog.additional.retention.ms", "security.protocol", "dsl.store.suppliers.class",
    "default.dsl.store", "views.max.bytes", "views.history",
))  # fmt: skip
INERT = {
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
PREFIXES = (
    "spark.", "consumer.", "main.consumer.", "restore.consumer.", "global.consumer.", "producer.", "admin.", "topic.",
    "ssl.", "sasl.", "schema.registry.", "__",
)  # fmt: skip
OPTIMIZATION = "topology.optimization"
REUSE = "reuse.ktable.source.topics"
OPTIMIZATIONS = ("none", "all", REUSE, "merge.repartition.topics", "single.store.self.join")


@cache
def warn(name: str) -> None:
    """Once a process."""
    warnings.warn(f"{name} means nothing here: {INERT[name]}", stacklevel=4)


def check(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they are. Of those that mean nothing here, one warning each; unknown ones are refused."""
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise TopologyError(f"settings must be a mapping from names to values, not {settings!r}")
    for name in settings:
        if name in INERT:
            warn(name)
        elif name not in USED and not name.startswith(PREFIXES):
            near = difflib.get_close_matches(name, [*USED, *INERT], 1)
            hint = f": did you mean {near[0]}?" if near else ""
            raise TopologyError(f"the setting {name!r} is not known{hint}")
    wrong = set(optimizations(settings)) - set(OPTIMIZATIONS)
    if wrong:
        raise TopologyError(f"{OPTIMIZATION} is {min(wrong)!r}: it must be one of {', '.join(OPTIMIZATIONS)}")
    store_type(settings)
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
