"""What streams and tables of one builder share: the count for generated names, and the steps that add nodes.

Names are counted as Kafka counts them, when a method is called. Nodes are added when the topology is built, in the same
order: only then is it known which tables need a store, and which must send old values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.operators.stores.spec import StoreSpec
from moldau.plan.nodes import InternalTopic

from .names import checked_name
from .serdes import SerdeLike
from .topology import Topology

if TYPE_CHECKING:
    from .recipes import Making

REPARTITION = "-repartition"


@dataclass(slots=True)
class Graph:
    application_id: str | None
    settings: dict[str, Any]
    steps: list[Callable[[Topology], None]] = field(default_factory=list)
    index: int = 0
    aliases: dict[str, str] = field(default_factory=dict)  # a source that reads what another reads: the other one

    def generated(self, prefix: str) -> str:
        name = f"{prefix}{self.index:010d}"
        self.index += 1
        return name

    def named(self, name: str | None, prefix: str) -> str:
        """The name that was given, or a generated one. A number is counted either way, as Kafka does."""
        return self.suffixed(name, "", prefix)

    def suffixed(self, name: str | None, suffix: str, prefix: str) -> str:
        """Of nodes that come along with a named one."""
        generated = self.generated(prefix)
        return generated if name is None else checked_name(checked_name(name, "name=") + suffix, "name=")

    def only_if_needed(self, name: str | None, prefix: str) -> str:
        """As named, in the few places where Kafka counts no number for a name that is given."""
        return self.generated(prefix) if name is None else checked_name(name, "name=")

    def store_name(self, prefix: str) -> str:
        return self.generated(f"{prefix}STATE-STORE-")

    def add(self, step: Callable[[Topology], None]) -> None:
        self.steps.append(step)

    def real(self, parents: Iterable[str]) -> list[str]:
        return [self.aliases.get(parent, parent) for parent in parents]

    def processor(
        self,
        name: str,
        parents: Iterable[str],
        operator: Callable[[], Any],
        stores: Iterable[str | StoreSpec] = (),
        kind: str = "process",
    ) -> None:
        above, uses = tuple(parents), tuple(stores)
        self.add(lambda topology: void(topology.add_node(name, operator, self.real(above), uses, kind)))

    def table(self, name: str, parents: Iterable[str], recipe: Making, kind: str) -> None:
        """A table's node: its operator and its stores are known only when all that asks of it has been said."""
        above = tuple(parents)

        def step(topology: Topology) -> None:
            topology.add_node(name, recipe.factory(), self.real(above), recipe.stores(), kind)

        self.add(step)

    def sink(
        self, name: str, parent: str, topic: Any, key: SerdeLike, value: SerdeLike, partitioner: Any = None
    ) -> None:
        def step(topology: Topology) -> None:
            topology.add_sink(name, topic, self.real([parent]), key=key, value=value, partitioner=partitioner)

        self.add(step)

    def source(self, name: str, topics: str | Iterable[str], **options: Any) -> None:
        self.add(lambda topology: void(topology.add_source(name, topics, **options)))

    def repartition_topic(self, name: str, partitions: int | None = None, shown: bool = False) -> None:
        self.add(lambda topology: topology.add_internal_topic(InternalTopic(name, partitions, shown)))

    def copartition(self, sources: Iterable[str]) -> None:
        together = tuple(sources)
        self.add(lambda topology: topology.copartition(self.real(together)))

    def topology(self) -> Topology:
        made = Topology(self.application_id, self.settings)
        for step in self.steps:
            step(made)
        return made


def void(result: object) -> None:
    """A step returns nothing."""
