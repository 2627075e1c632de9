"""What all streams and tables of one builder share: the counter of generated names, and the steps that add nodes.

Names are numbered as Kafka numbers them, when a method is called. Nodes are added in the same order when the topology
is built: only then is it known which tables need a store, and which must send old values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from moldau.operators.stores.spec import StoreSpec
from moldau.plan.nodes import InternalTopic

from .names import checked_name
from .topology import Topology

if TYPE_CHECKING:
    from .recipes import Making

REPARTITION = "-repartition"


@dataclass(slots=True)
class Graph:
    application_id: str | None
    settings: dict[str, Any]
    steps: list[Callable[[Topology], object]] = field(default_factory=list)
    index: int = 0
    aliases: dict[str, str] = field(default_factory=dict)  # a source that reads what another reads -> the other one

    def generate(self, prefix: str) -> str:
        name = f"{prefix}{self.index:010d}"
        self.index += 1
        return name

    def named(self, name: str | None, prefix: str) -> str:
        """Return the given name, or a generated one. A number is used up either way, as in Kafka."""
        return self.suffixed(name, "", prefix)

    def suffixed(self, name: str | None, suffix: str, prefix: str) -> str:
        """Return the name of a node that belongs to a named one."""
        generated = self.generate(prefix)
        return generated if name is None else checked_name(checked_name(name, "name=") + suffix, "name=")

    def only_if_needed(self, name: str | None, prefix: str) -> str:
        """Do as `named`, in the few places where Kafka uses no number up for a given name."""
        return self.generate(prefix) if name is None else checked_name(name, "name=")

    def store_name(self, prefix: str) -> str:
        return self.generate(f"{prefix}STATE-STORE-")

    def add(self, step: Callable[[Topology], object]) -> None:
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
        self.add(lambda topology: topology.add_node(name, operator, self.real(above), uses, kind))

    def table(self, name: str, parents: Iterable[str], recipe: Making, kind: str) -> None:
        """Add a table's node. Its operator and its stores are known only when everything below it is defined."""
        above = tuple(parents)
        self.add(lambda topology: topology.add_node(name, recipe.factory(), self.real(above), recipe.stores(), kind))

    def sink(self, name: str, parents: Iterable[str], topic: Any, **options: Any) -> None:
        above = tuple(parents)
        self.add(lambda topology: topology.add_sink(name, topic, self.real(above), **options))

    def source(self, name: str, topics: str | Iterable[str], **options: Any) -> None:
        self.add(lambda topology: topology.add_source(name, topics, **options))

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
