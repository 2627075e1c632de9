"""Loops of sub-topologies, unrolled. A foreign-key join asks and is answered: the sub-topology of its left table writes
subscriptions and reads answers, so it could run neither before nor after that of the right table.

What stands below the answers becomes a sub-topology of its own, at a later level. It looks into stores of the other
one: these are **mirrored** there, by rows of all their changes, which are taken in before any record of a batch. So an
answer to a value that has changed within its batch is dropped, as it is in Kafka if it comes too late.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from moldau.operators.context import TopologyError

from .levels import home_of, internal_written, local_groups
from .nodes import Node, SourceNode
from .plan import Plan

LOOKS = "foreign_key_result"  # the kind of nodes that look into stores and never write them


def unrolled(plan: Plan) -> Plan:
    """A plan whose sub-topologies can run one after another; TopologyError where they cannot."""
    refused: TopologyError | None = None
    for group in local_groups(plan):
        answers = loop_sources(plan, group)
        if answers:
            try:
                return unrolled(split(plan, group, below(plan, group, answers)))
            except TopologyError as error:  # it is the other sub-topology of the loop that has to be split
                refused = refused or error
    if refused is not None:
        raise refused
    return plan


def loop_sources(plan: Plan, group: int) -> list[str]:
    """The sources of a sub-topology that read what follows from what it has written."""
    topics, groups = set(internal_written(plan, group)), local_groups(plan)
    while True:
        reading = [(other, {topic for one in sources(plan, other) for topic in one.topics}) for other in groups]
        readers = [other for other, read in reading if topics & read]
        found = topics.union(*(internal_written(plan, other) for other in readers if other != group))
        if found == topics:
            return [one.name for one in sources(plan, group) if topics & set(one.topics)]
        topics = found


def sources(plan: Plan, group: int) -> list[SourceNode]:
    names = set(plan.groups[group])
    return [node for node in plan.nodes if isinstance(node, SourceNode) and node.name in names]


def below(plan: Plan, group: int, names: Iterable[str]) -> set[str]:
    """These nodes and all that follow from them."""
    found, members = set(names), set(plan.groups[group])
    for node in plan.nodes:  # parents come first
        if node.name in members and found & set(node.parents):
            found.add(node.name)
    return found


def split(plan: Plan, group: int, later: set[str]) -> Plan:
    nodes = [node for node in plan.nodes if node.name in plan.groups[group]]
    earlier = [node for node in nodes if node.name not in later]
    check(earlier, [node for node in nodes if node.name in later])
    groups = list(plan.groups)
    groups[group] = tuple(node.name for node in earlier)
    made = copy(plan)
    object.__setattr__(made, "groups", (*groups, tuple(name for name in plan.groups[group] if name in later)))
    return made


def check(earlier: list[Node], later: list[Node]) -> None:
    """A node of both is refused, and so is a store that is not merely looked into below."""
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
    """For each internal topic by which a store is mirrored: the store, and the sub-topology that has the mirror."""
    found: dict[str, tuple[str, int]] = {}
    for group in local_groups(plan):
        names = set(plan.groups[group])
        used = dict.fromkeys(store for node in plan.nodes if node.name in names for store in node.stores)
        for store in used:
            if store not in plan.global_stores and home_of(plan, store) != group:
                found[f"{plan.application_id}-{store}-mirror-{group}"] = store, group
    return found
