"""How many levels with state a query has on Spark: what decides with which others it can share a Spark query."""

from __future__ import annotations

from collections.abc import Callable

from moldau.operators.context import TopologyError
from moldau.plan.levels import Schedule, partition_counts
from moldau.plan.nodes import SourceNode
from moldau.plan.unrolling import mirrored, unrolled
from moldau.sql.errors import SqlError
from moldau.streams.builder import StreamsBuilder


def levels_of(builder: StreamsBuilder, partitions: Callable[[str], int]) -> int:
    """Return the number of levels; SqlError if the query cannot run on Spark.

    A sub-topology of the first level that has no store and one topic needs no level (`plan/stateless_pass.py`).
    """
    topology = builder.build()
    try:
        plan = unrolled(topology.plan(topology.settings))
        internal = {topic.name for topic in plan.internal_topics}
        sources = (node for node in plan.nodes if isinstance(node, SourceNode))
        outside = {topic: partitions(topic) for node in sources for topic in node.topics if topic not in internal}
        schedule = Schedule(plan, partition_counts(plan, outside), mirrored(plan))
    except TopologyError as error:
        raise SqlError(f"The query cannot run on Spark, only with SET 'ksql.runtime'='local': {error}.") from None
    first = schedule.levels[0] if schedule.levels else ()
    passed = {
        group
        for group in first
        if len(schedule.reads[group]) == 1 and not any(node.stores for node in plan.members(group))
    }
    return sum(not passed.issuperset(groups) for groups in schedule.levels)
