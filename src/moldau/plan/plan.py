"""The plan: the nodes of a topology in the order in which they were added, its stores and its sub-topologies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from moldau.operators.stores.spec import StoreSpec

from .nodes import InternalTopic, Node


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `groups` are the sub-topologies: names of nodes that must run in one task, because they are connected or
    share a store. They are numbered as in Kafka.
    """

    application_id: str | None
    nodes: tuple[Node, ...]
    stores: tuple[StoreSpec, ...]
    internal_topics: tuple[InternalTopic, ...] = ()
    copartitioned: tuple[frozenset[str], ...] = ()  # names of sources whose topics must have equal partition counts
    global_stores: frozenset[str] = frozenset()
    groups: tuple[tuple[str, ...], ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", grouped(self.nodes))

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def members(self, group: int) -> tuple[Node, ...]:
        """Return the nodes of a sub-topology."""
        names = set(self.groups[group])
        return tuple(node for node in self.nodes if node.name in names)

    def is_global(self, group: Iterable[str]) -> bool:
        """Return whether a sub-topology fills a global store: it runs once a process, not once a partition."""
        names = set(group)
        return any(self.global_stores & set(node.stores) for node in self.nodes if node.name in names and node.parents)

    @property
    def global_nodes(self) -> tuple[Node, ...]:
        names = {name for group in self.groups if self.is_global(group) for name in group}
        return tuple(node for node in self.nodes if node.name in names)

    @property
    def local_nodes(self) -> tuple[Node, ...]:
        apart = {node.name for node in self.global_nodes}
        return tuple(node for node in self.nodes if node.name not in apart)

    def topic(self, name: str) -> str:
        """Return the name of a topic in the cluster: internal topics begin with the application's id."""
        internal = any(topic.name == name for topic in self.internal_topics)
        return f"{self.application_id}-{name}" if internal else name

    def changelog(self, store: StoreSpec) -> str:
        return store.changelog or f"{self.application_id}-{store.name}-changelog"


def grouped(nodes: tuple[Node, ...]) -> tuple[tuple[str, ...], ...]:
    """Group nodes that are connected or share a store, in the order in which they were added."""
    root = {node.name: node.name for node in nodes}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    users: dict[str, str] = {}
    for node in nodes:
        for other in (*node.parents, *(users.setdefault(store, node.name) for store in node.stores)):
            root[find(node.name)] = find(other)
    numbered = list(dict.fromkeys(find(node.name) for node in nodes))
    return tuple(tuple(node.name for node in nodes if find(node.name) == group) for group in numbered)
