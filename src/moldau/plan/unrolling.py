"""Unrolling loops of sub-topologies. In a foreign-key join the sub-topology of the left table writes subscriptions and
reads answers, so it could run neither before nor after that of the right table.

The nodes below the answers become a sub-topology of their own, at a later level. It reads stores of the other one,
which are **mirrored** there: rows of all their changes are taken in before any record of a batch. So an answer to a
value that has changed within its batch is dropped, as in Kafka if it comes too late.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from moldau.operators.context import TopologyError

from .levels import home_of, internal_written, local_groups, sources_of
from .nodes import Node
from .plan import Plan

LOOKS = "foreign_key_result"  # the kind of nodes that read stores and never write them


def unrolled(plan: Plan) -> Plan:
    """Return a plan whose sub-topologies can run one after another; TopologyError if that cannot be."""
    refused: TopologyError | None = None
    for group in local_groups(plan):
        answers = loop_sources(plan, group)
        if answers:
            try:
                return unrolled(split(plan, group, below(plan, group, answers)))
            except TopologyError as error:  # the other sub-topology of the loop has to be split
                refused = refused or error
    if refused is not None:
        raise refused
    return plan


def loop_sources(plan: Plan, group: int) -> list[str]:
    """Return the sources of a sub-topology that read what follows from its own output."""
    topics, groups = set(internal_written(plan, group)), local_groups(plan)
    while True:
        reading = [(other, {topic for one in sources_of(plan, other) for topic in one.topics}) for other in groups]
        readers = [other for other, read in reading if topics & read]
        found = topics.union(*(internal_written(plan, other) for other in readers if other != group))
        if found == topics:
            return [one.name for one in sources_of(plan, group) if topics & set(one.topics)]
        topics = found


def below(plan: Plan, group: int, names: Iterable[str]) -> set[str]:
    """Return the names of these nodes and of all below them."""
    found = set(names)
    for node in plan.members(group):  # parents come first
        if found & set(node.parents):
            found.add(node.name)
    return found


def split(plan: Plan, group: int, later: set[str]) -> Plan:
    nodes = plan.members(group)
    earlier = [node for node in nodes if node.name not in later]
    check(earlier, [node for node in nodes if node.name in later])
    groups = list(plan.groups)
    groups[group] = tuple(node.name for node in earlier)
    made = copy(plan)
    object.__setattr__(made, "groups", (*groups, tuple(name for name in plan.groups[group] if name in later)))
    return made


def check(earlier: list[Node], later: list[Node]) -> None:
    """Refuse a node that needs both parts, and a store that the later part does not merely read."""
    before = {node.name: node for node in earlier}
    for node in later:
        above = [parent for parent in node.parents if parent in before]
        shared = [store for store in node.stores if any(store in other.stores for other in earlier)]
        if above or (shared and getattr(node, "kind", "") != LOOKS):
            raise TopologyError(
                f"{node.name} needs at the same time what goes into a foreign-key join and what comes out of it "
                f"({(above or shared)[0]}): write the result to a topic, and read it in another application"
            )


def mirrored(plan: Plan) -> dict[str, tuple[str, int]]:
    """Return, for each internal topic that mirrors a store, the store and the sub-topology with the mirror."""
    found: dict[str, tuple[str, int]] = {}
    for group in local_groups(plan):
        for store in dict.fromkeys(store for node in plan.members(group) for store in node.stores):
            if store not in plan.global_stores and home_of(plan, store) != group:
                found[f"{plan.application_id}-{store}-mirror-{group}"] = store, group
    return found
