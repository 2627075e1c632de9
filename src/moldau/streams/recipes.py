"""What is known of a table before the topology is built: whether it has a store, and whether it sends old values.

A table below, or a join, may ask for old values or look-ups after a table was defined; the request goes up until a
table can serve it. When the topology is built, `factory` fixes what was requested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from moldau.operators.context import Operator
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.table import TableFilter, TableRegroup, TableSource, filtered
from moldau.operators.views import View, computed_view, store_view

Factory = Callable[[], Operator]
Uses = tuple[str | StoreSpec, ...]


class Making(Protocol):
    def factory(self) -> Factory:
        """Return what makes the operators, as things stand now."""
        ...

    def stores(self) -> Uses:
        """Return the stores that the node uses: its own by their spec, those of others by name."""
        ...


class Recipe(Making, Protocol):
    def send_old_values(self, force: bool) -> bool:
        """Request old values, and return whether they will come. Without `force` no table gets a store for it."""
        ...

    def view(self) -> View:
        """Request look-ups."""
        ...

    def versioned(self) -> bool:
        """Return whether changes come from a versioned store, where they may be out of order."""
        ...


class Source:
    """A table of a topic or of a stream. It gets a store only if one is needed."""

    def __init__(self, spec: StoreSpec, stored: bool) -> None:
        self.spec, self.stored, self.send_old = spec, stored, False

    def factory(self) -> Factory:
        return partial(TableSource, self.spec.name if self.stored else None, self.send_old)

    def stores(self) -> Uses:
        return (self.spec,) if self.stored else ()

    def send_old_values(self, force: bool) -> bool:
        if not force and not self.stored:
            return False
        self.stored = self.send_old = True
        return True

    def view(self) -> View:
        self.stored = True
        return store_view(self.spec.name)

    def versioned(self) -> bool:
        return self.spec.versioned


class Aggregation:
    """An aggregate, which always has a store. `make` is given the store's name and whether to send old values."""

    def __init__(self, spec: StoreSpec, make: Callable[[str, bool], Operator]) -> None:
        self.spec, self.make, self.send_old = spec, make, False

    def factory(self) -> Factory:
        return partial(self.make, self.spec.name, self.send_old)

    def stores(self) -> Uses:
        return (self.spec,)

    def send_old_values(self, force: bool) -> bool:
        self.send_old = True
        return True

    def view(self) -> View:
        return store_view(self.spec.name)

    def versioned(self) -> bool:
        return self.spec.versioned


class Derived:
    """A table that is computed from another one. It has a store only if the user asks for one.

    `operator` is given the store's name and whether to send old values; `derive` makes the view of this table from that
    of the parent; `connected` are the names of other stores that the operator uses.
    """

    def __init__(
        self,
        parent: Recipe,
        spec: StoreSpec | None,
        operator: Callable[[str | None, bool], Operator],
        derive: Callable[[View], View],
        connected: tuple[str, ...] = (),
    ) -> None:
        self.parent, self.spec, self.operator, self.derive, self.connected = parent, spec, operator, derive, connected
        self.send_old = False

    def factory(self) -> Factory:
        return partial(self.operator, None if self.spec is None else self.spec.name, self.send_old)

    def stores(self) -> Uses:
        return self.connected if self.spec is None else (self.spec, *self.connected)

    def send_old_values(self, force: bool) -> bool:
        if self.spec is not None or self.parent.send_old_values(force):
            self.send_old = True
        return self.send_old

    def view(self) -> View:
        return self.derive(self.parent.view()) if self.spec is None else store_view(self.spec.name)

    def versioned(self) -> bool:
        return self.parent.versioned() if self.spec is None else self.spec.versioned


class Filtered(Derived):
    """A filtered table. It sends old values where they come anyway, so that no key is deleted twice."""

    def __init__(
        self, parent: Recipe, spec: StoreSpec | None, predicate: Callable[[Any, Any], Any], negated: bool
    ) -> None:
        compute = filtered(predicate, negated)
        super().__init__(parent, spec, partial(TableFilter, compute), lambda view: computed_view(view, compute))
        self.send_old = parent.send_old_values(False)

    def factory(self) -> Factory:
        made: Any = super().factory()
        return partial(made, versioned=self.parent.versioned())


class Regrouped:
    """The changes that `KTable.group_by` sends to groups; not a table by itself."""

    def __init__(self, parent: Recipe, selector: Callable[[Any, Any], Any]) -> None:
        parent.send_old_values(True)
        self.parent, self.selector = parent, selector

    def factory(self) -> Factory:
        return partial(TableRegroup, self.selector, self.parent.versioned())

    def stores(self) -> Uses:
        return ()
