"""Looking a key up in a table: in its store, or, where it has none, through the table above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .context import UNKNOWN_TIME, Context
from .record import Stamped
from .stores.latest import Latest


class Lookup(Protocol):
    @property
    def versioned(self) -> bool: ...

    def get(self, key: Any) -> Stamped | None: ...

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        """Of versioned tables: what held at that time."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """How to look keys up in a table, once there is a task: the stores that are needed, and what opens them."""

    stores: tuple[str, ...]
    open: Callable[[Context], Lookup]


class StoreLookup:
    def __init__(self, store: Any) -> None:
        self.get = store.get
        self.versioned = store.versioned
        self.store = store

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        return self.store.as_of(key, timestamp)


def latest_of(lookup: Lookup) -> Latest | None:
    """Where a table that takes columns is looked up; None for other tables."""
    store: Any = lookup.store if isinstance(lookup, StoreLookup) else None
    return store.latest if getattr(store, "in_columns", False) and not store.versioned else None


def store_view(store: str) -> View:
    return View((store,), lambda context: StoreLookup(context.store(store)))


class ComputedLookup:
    """A table without a store: a function of key and value of the one above."""

    def __init__(self, above: Lookup, compute: Callable[[Any, Any], Any]) -> None:
        self.above, self.compute, self.versioned = above, compute, above.versioned

    def get(self, key: Any) -> Stamped | None:
        return self.computed(key, self.above.get(key))

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        return self.computed(key, self.above.as_of(key, timestamp))

    def computed(self, key: Any, found: Stamped | None) -> Stamped | None:
        if found is None:
            return None
        value = self.compute(key, found.value)
        return None if value is None else Stamped(value, found.timestamp)


class TransformedLookup:
    """Of a table with a transformer: it has one of its own for look-ups, and is asked about None too."""

    def __init__(self, above: Lookup, transformer: Any) -> None:
        self.above, self.transform, self.versioned = above, transformer.transform, above.versioned

    def get(self, key: Any) -> Stamped | None:
        return self.transformed(key, self.above.get(key))

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        return self.transformed(key, self.above.as_of(key, timestamp))

    def transformed(self, key: Any, found: Stamped | None) -> Stamped | None:
        value = self.transform(key, None if found is None else found.value)
        return None if value is None else Stamped(value, UNKNOWN_TIME if found is None else found.timestamp)


def transformed_view(above: View, make: Callable[[], Any]) -> View:
    def opened(context: Context) -> Lookup:
        transformer = make()
        start = getattr(transformer, "init", None)
        if start is not None:
            start(context)
        return TransformedLookup(above.open(context), transformer)

    return View(above.stores, opened)


def computed_view(above: View, compute: Callable[[Any, Any], Any]) -> View:
    return View(above.stores, lambda context: ComputedLookup(above.open(context), compute))
