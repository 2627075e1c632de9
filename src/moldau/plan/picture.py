"""A plan as a picture: a Mermaid flowchart, which Markdown pages and the console draw."""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import Node, SinkNode, SourceNode
from .plan import Plan


def picture(plan: Plan) -> str:
    """Draw sub-topologies as boxes, with topics between them and stores beside the nodes that use them."""
    numbers = {node.name: f"n{number}" for number, node in enumerate(plan.nodes)}
    lines = ["flowchart TD"]
    for number, group in enumerate(plan.groups):
        what = "global store" if plan.is_global(group) else "sub-topology"
        lines.append(f'  subgraph g{number}["{what} {number}"]')
        lines += [f'    {numbers[name]}["{name}"]' for name in group]
        lines.append("  end")
    lines += edges(plan, numbers)
    return "\n".join(lines) + "\n"


def edges(plan: Plan, numbers: dict[str, str]) -> Iterator[str]:
    topics: dict[str, str] = {}
    for node in plan.nodes:
        mine = numbers[node.name]
        yield from (f"  {numbers[parent]} --> {mine}" for parent in node.parents)
        for topic in topics_of(node):
            there = topics.setdefault(topic, f"t{len(topics)}")
            yield f'  {there}([" {topic} "])'
            yield f"  {there} --> {mine}" if isinstance(node, SourceNode) else f"  {mine} --> {there}"
    stores = {spec.name: f"s{number}" for number, spec in enumerate(plan.stores)}
    for name, there in stores.items():
        yield f'  {there}[("{name}")]'
    for node in plan.nodes:
        yield from (f"  {numbers[node.name]} -.- {stores[store]}" for store in node.stores)


def topics_of(node: Node) -> tuple[str, ...]:
    match node:
        case SourceNode():
            return node.topics or (node.pattern or "",)
        case SinkNode():
            return (node.topic,) if isinstance(node.topic, str) else ()
        case _:
            return ()
