"""A plan as text, exactly as Kafka's TopologyDescription prints the same topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.wire.numbers import hash_order, java_hash

from .java_order import TreeSet
from .nodes import Node, ProcessorNode, SinkNode, SourceNode
from .plan import Plan


class Entry:
    """A node of a sub-topology. Those with more nodes below them come first."""

    __slots__ = ("above", "below", "node", "size")

    def __init__(self, node: Node) -> None:
        self.node, self.size = node, 1
        self.above, self.below = TreeSet(comes_first), TreeSet(comes_first)

    def grow(self, by: int) -> None:
        self.size += by
        for entry in self.above:
            entry.grow(by)


def comes_first(one: Entry, other: Entry) -> bool:
    return (-one.size, one.node.name) < (-other.size, other.node.name)


def describe(plan: Plan) -> str:
    parts = [sub_topology(plan, number, group) for number, group in enumerate(plan.groups)]
    return "Topologies:\n " + "".join(f"  {part}" for part in parts)


def sub_topology(plan: Plan, number: int, group: tuple[str, ...]) -> str:
    nodes = {node.name: node for node in plan.nodes if node.name in group}
    entries = {name: Entry(nodes[name]) for name in hash_order(nodes, java_hash)}
    for entry in entries.values():
        for parent in dict.fromkeys(entry.node.parents):
            above = entries[parent]
            entry.above.add(above)
            above.below.add(entry)
            above.grow(entry.size)
    written = sorted(entries.values(), key=lambda entry: (-entry.size, entry.node.name))
    lines = "".join(f"    {text(entry)}\n" for entry in written)
    if plan.is_global(group):
        return f"Sub-topology: {number} for global store (will not generate tasks)\n{lines}"
    return f"Sub-topology: {number}\n{lines}\n"


def names(entries: Iterable[Entry]) -> str:
    return ", ".join(entry.node.name for entry in entries) or "none"


def text(entry: Entry) -> str:
    node = entry.node
    match node:
        case SourceNode():
            topics = node.pattern if node.pattern is not None else listed(node.topics)
            return f"Source: {node.name} (topics: {topics})\n      --> {names(entry.below)}"
        case ProcessorNode():
            return (
                f"Processor: {node.name} (stores: {listed(node.stores)})\n"
                f"      --> {names(entry.below)}\n      <-- {names(entry.above)}"
            )
        case SinkNode():
            where = f"topic: {node.topic}" if isinstance(node.topic, str) else f"extractor class: {called(node.topic)}"
            return f"Sink: {node.name} ({where})\n      <-- {names(entry.above)}"


def called(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)


def listed(names: Iterable[str]) -> str:
    return f"[{', '.join(hash_order(names, java_hash))}]"
