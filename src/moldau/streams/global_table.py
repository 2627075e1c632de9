"""Global tables: complete in each process, and looked up by any key that a function makes of a stream's record."""

from __future__ import annotations

from typing import Generic, TypeVar

from .graph import Graph
from .serdes import SerdeLike

K = TypeVar("K")
V = TypeVar("V")


class GlobalKTable(Generic[K, V]):
    """A global table. `given` says whether the user named its store."""

    def __init__(self, graph: Graph, store: str, given: bool, key: SerdeLike, value: SerdeLike) -> None:
        self.graph, self.store, self.given, self.key, self.value = graph, store, given, key, value

    @property
    def queryable_store_name(self) -> str | None:
        return self.store if self.given else None
