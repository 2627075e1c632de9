"""Ask the cluster who reads and who writes, within bounds; `model/lineage.py` makes a graph of the answers."""

from __future__ import annotations

from moldau.admin import TopicPartition, groups, topics, transactions
from moldau.client import Client
from moldau.console.model.history import reads
from moldau.console.model.lineage import Graph, Seen, graph, is_shown
from moldau.console.sampler import ends
from moldau.spark.runner.reports import latest

GROUPS = 300  # that are asked what they have committed
PARTITIONS = 5000  # whose producers are asked for


def load_graph(client: Client) -> Graph:
    """Return the current graph of the cluster."""
    listed = topics.listed(client)
    known_groups = groups.listed(client)
    places = {
        (topic.name, part.index): part.leader
        for topic in listed
        if is_shown(topic.name)
        for part in topic.partitions
        if part.leader >= 0
    }
    known = dict(list(places.items())[:PARTITIONS])
    names = {one.producer_id: one.id for one in transactions.listed(client)}
    committed = groups.commits(client, known_groups, GROUPS)
    reports = {name: latest(one.metadata for one in some.values()) for name, some in committed.items()}
    return graph(
        Seen(
            tuple(topic.name for topic in listed),
            {one.id: one.type for one in known_groups},
            _lags(client, committed),
            transactions.writers(client, known) if names else {},
            names,
            {one.id: one.state for one in known_groups},
            {name: report for name, report in reports.items() if report is not None},
        )
    )


def _lags(client: Client, committed: dict[str, dict[TopicPartition, groups.Committed]]) -> dict[str, dict[str, int]]:
    """Return the lag of each group in each topic that it reads."""
    places = {place for of_group in committed.values() for place in of_group}
    lags: dict[str, dict[str, int]] = {}
    for (group, topic), one in reads(committed, ends(client, sorted(places))).items():
        lags.setdefault(group, {})[topic] = one.lag
    return lags
