"""Repartition topics: what stands between a change of key and a step that needs records by key."""

from __future__ import annotations

import re
from typing import Any

from moldau.operators.stateless import Filter

from .graph import REPARTITION, Graph
from .serdes import SerdeLike

GENERATED = re.compile(r"(KSTREAM|KTABLE).*-[0-9]{10}")


def has_key(key: Any, value: Any) -> bool:
    return key is not None


def is_any(key: Any, value: Any) -> bool:
    return True


def repartitioned(
    graph: Graph,
    parent: str,
    prefix: str,
    key: SerdeLike,
    value: SerdeLike,
    *,
    partitions: int | None = None,
    partitioner: Any = None,
    null_keys: bool = False,
    shown: bool = False,
) -> str:
    """Add filter, sink and source of a repartition topic, and return the name of the source. Records without a key are
    dropped on the way, unless `null_keys`. `shown`: the topic is written for others, even if nothing here needs it.
    """
    topic, (filter, sink, source) = names_of(graph, prefix)
    graph.repartition_topic(topic, partitions, shown)
    graph.processor(filter, [parent], lambda: Filter(is_any if null_keys else has_key), kind="filter")
    graph.sink(sink, [filter], topic, key=key, value=value, partitioner=partitioner)
    graph.source(source, topic, key=key, value=value)
    return source


def names_of(graph: Graph, prefix: str) -> tuple[str, tuple[str, str, str]]:
    """Return the topic and the nodes around it. They use numbers up even where they have other names."""
    topic = prefix if prefix.endswith(REPARTITION) else prefix + REPARTITION
    sink, filter, source = (graph.generate(f"KSTREAM-{kind}-") for kind in ("SINK", "FILTER", "SOURCE"))
    if not GENERATED.fullmatch(prefix):
        sink, filter, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    return topic, (filter, sink, source)
