"""A plan as text, in the words of Kafka's TopologyDescription: the text of the same topology in Java is equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .nodes import Node, ProcessorNode, SinkNode, SourceNode
from .plan import Plan


@dataclass(slots=True)
class Entry:
    """A node among others of its sub-topology. Those with more below them come first."""

    node: Node
    size: int = 1
    above: list[Entry] = field(default_factory=list["Entry"])
    below: list[Entry] = field(default_factory=list["Entry"])

    def grow(self, by: int) -> None:
        self.size += by
        for entry in self.above:
            entry.grow(by)


def describe(plan: Plan) -> str:
    parts = [sub_topology(plan, number, group) for number, group in enumerate(plan.groups)]
    return "Topologies:\n " + "".join(f"  {part}" for part in parts)


def sub_topology(plan: Plan, number: int, group: tuple[str, ...]) -> str:
    entries = {node.name: Entry(node) for node in plan.nodes if node.name in group}
    for entry in entries.values():
        for parent in dict.fromkeys(entry.node.parents):
            above = entries[parent]
            above.below.append(entry)
            entry.above.append(above)
            above.grow(entry.size)
    lines = "".join(f"    {text(entry)}\n" for entry in ranked(entries.values()))
    if plan.is_global(group):
        return f"Sub-topology: {number} for global store (will not generate tasks)\n{lines}"
    return f"Sub-topology: {number}\n{lines}\n"


def ranked(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda entry: (-entry.size, entry.node.name))


def names(entries: list[Entry]) -> str:
    return ", ".join(entry.node.name for entry in ranked(entries)) or "none"


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
    return f"[{', '.join(in_java_order(names))}]"


def in_java_order(names: Iterable[str]) -> list[str]:
    """Kafka prints hash sets: their order is that of Java's hash of strings, in a table of a power of two."""
    unique = list(dict.fromkeys(names))
    slots = 16
    while len(unique) > slots * 3 // 4:
        slots *= 2
    return sorted(unique, key=lambda name: spread(name) & (slots - 1))


def spread(name: str) -> int:
    code = 0
    for unit in utf16(name):
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ (code >> 16)


def utf16(name: str) -> list[int]:
    data = name.encode("utf-16-be", "surrogatepass")
    return [data[place] << 8 | data[place + 1] for place in range(0, len(data), 2)]
