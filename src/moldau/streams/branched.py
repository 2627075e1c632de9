"""Splitting a stream: each record goes to the first branch that takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from moldau.operators.stateless import Branch, PassThrough

from . import functions
from .names import checked_name

if TYPE_CHECKING:
    from .stream import KStream

CHILD = "KSTREAM-BRANCHCHILD-"
K = TypeVar("K")
V = TypeVar("V")


def every(key: Any, value: Any) -> bool:
    return True


class BranchedKStream(Generic[K, V]):
    """A stream that is split. Branches are tried in the order in which they are added. The result is a dict of streams
    by name: the name of the split, followed by that of the branch or its number.
    """

    def __init__(self, stream: KStream[K, V], name: str | None) -> None:
        self.stream, self.graph = stream, stream.graph
        self.name = self.graph.named(name, "KSTREAM-BRANCH-")
        self._predicates: list[Callable[[Any, Any], Any]] = []
        self._children: list[str] = []
        self._made: dict[str, KStream[Any, Any]] = {}
        predicates, children = self._predicates, self._children
        self.graph.processor(self.name, [stream.name], lambda: Branch(predicates, children), kind="branch")

    def branch(
        self,
        predicate: Callable[[K, V], Any],
        then: Callable[[KStream[K, V]], Any] | None = None,
        *,
        name: str | None = None,
    ) -> BranchedKStream[K, V]:
        """Add a branch. `then` gets its stream and returns the one that replaces it in the result; if it returns None,
        the branch is left out.
        """
        suffix = str(len(self._predicates) + 1) if name is None else checked_name(name, f"name= of {self.name}")
        self._add(functions.of_key_value(predicate, self.name + suffix), suffix, then)
        return self

    def default_branch(
        self, then: Callable[[KStream[K, V]], Any] | None = None, *, name: str | None = None
    ) -> dict[str, KStream[K, V]]:
        """Add a branch for the records that no other takes, and return all branches by name."""
        self._add(every, "0" if name is None else checked_name(name, f"name= of {self.name}"), then)
        return self._made

    def no_default_branch(self) -> dict[str, KStream[K, V]]:
        """Drop the records that no branch takes, and return all branches by name."""
        return self._made

    def _add(
        self, predicate: Callable[[Any, Any], Any], suffix: str, then: Callable[[KStream[K, V]], Any] | None
    ) -> None:
        node = self.graph.suffixed(self.name, suffix, CHILD)
        if then is not None:
            functions.checked(then, node, {1: "branch"})
        self._predicates.append(predicate)
        self._children.append(node)
        self.graph.processor(node, [self.name], PassThrough, kind="branch")
        stream = self.stream
        made = type(stream)(self.graph, node, stream.sources, stream.key, stream.value, stream.repartition_required)
        kept = made if then is None else then(made)
        if kept is not None:
            self._made[node] = kept
