"""What a table is made of, until the topology is built: whether it has a store, whether it must send old values.

A table below, or a join, may ask for old values or for look-ups after a table was made; the request goes up until
somebody can answer it. When the topology is built, `factory` fixes what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from moldau.operators.context import Operator
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.table import (
    TableFilter,
    TableMapValues,
    TableRegroup,
    TableSource,
    TableTransformValues,
    filtered,
    mapped,
)
from moldau.operators.views import View, computed_view, store_view, transformed_view

Factory = Callable[[], Operator]
Uses = tuple[str | StoreSpec, ...]


class Making(Protocol):
    def factory(self) -> Factory:
        """What makes the operators, as things stand now."""
        ...

    def stores(self) -> Uses:
        """What the node is connected with: stores of its own by their spec, those of others by name."""
        ...


class Recipe(Making, Protocol):
    def send_old_values(self, force: bool) -> bool:
        """Asks for old values; without `force` no table gets a store for it. Whether they will come."""
        ...

    def view(self) -> View:
        """Asks for look-ups."""
        ...

    def versioned(self) -> bool:
        """Whether changes come from a versioned store, out of order some of them."""
        ...


class Source:
    """A table of a topic, or of a stream. It gets a store only if somebody needs it."""

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
    """A table that is an aggregate: it has a store, and what makes it is told its name and whether to send old."""

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
    """A table computed from another by a function of key and value. With a store only if the user asks for it."""

    def __init__(self, parent: Recipe, spec: StoreSpec | None) -> None:
        self.parent, self.spec, self.send_old = parent, spec, False

    @property
    def store(self) -> str | None:
        return None if self.spec is None else self.spec.name

    def stores(self) -> Uses:
        return () if self.spec is None else (self.spec,)

    def send_old_values(self, force: bool) -> bool:
        if self.spec is not None or self.parent.send_old_values(force):
            self.send_old = True
        return self.send_old

    def versioned(self) -> bool:
        return self.parent.versioned() if self.spec is None else self.spec.versioned


class Filtered(Derived):
    def __init__(
        self, parent: Recipe, spec: StoreSpec | None, predicate: Callable[[Any, Any], Any], negated: bool
    ) -> None:
        super().__init__(parent, spec)
        self.predicate, self.negated = predicate, negated
        self.send_old = parent.send_old_values(False)  # where they come anyway, nothing is not deleted twice

    def factory(self) -> Factory:
        versioned = self.parent.versioned()
        return partial(TableFilter, self.predicate, self.negated, self.store, self.send_old, versioned)

    def view(self) -> View:
        if self.store is not None:
            return store_view(self.store)
        return computed_view(self.parent.view(), filtered(self.predicate, self.negated))


class Mapped(Derived):
    def __init__(self, parent: Recipe, spec: StoreSpec | None, mapper: Callable[[Any, Any], Any]) -> None:
        super().__init__(parent, spec)
        self.mapper = mapper

    def factory(self) -> Factory:
        return partial(TableMapValues, self.mapper, self.store, self.send_old)

    def view(self) -> View:
        return (
            store_view(self.store) if self.store is not None else computed_view(self.parent.view(), mapped(self.mapper))
        )


class Transformed(Derived):
    """`connected` are the names of the stores that the transformer uses."""

    def __init__(
        self, parent: Recipe, spec: StoreSpec | None, make: Callable[[], Any], connected: tuple[str, ...]
    ) -> None:
        super().__init__(parent, spec)
        self.make, self.connected = make, connected

    def factory(self) -> Factory:
        return partial(TableTransformValues, self.make, self.store, self.send_old)

    def stores(self) -> Uses:
        return (*super().stores(), *self.connected)

    def view(self) -> View:
        return store_view(self.store) if self.store is not None else transformed_view(self.parent.view(), self.make)


class Regrouped:
    """Of `KTable.group_by`: not a table by itself, but what goes to its groups."""

    def __init__(self, parent: Recipe, selector: Callable[[Any, Any], Any]) -> None:
        parent.send_old_values(True)
        self.parent, self.selector = parent, selector

    def factory(self) -> Factory:
        return partial(TableRegroup, self.selector, self.parent.versioned())

    def stores(self) -> Uses:
        return ()
