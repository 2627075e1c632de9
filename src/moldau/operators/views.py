"""Looking up a key in a table: in its store or, if it has none, through the table above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .context import UNKNOWN_TIME, Context
from .record import Stamped
from .stores.latest import Latest
from .user import ForColumns, call_if_defined

Derive = Callable[[Any, "Stamped | None"], "Stamped | None"]


class Lookup(Protocol):
    @property
    def versioned(self) -> bool: ...

    def get(self, key: Any) -> Stamped | None: ...

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        """Return what was valid at that time, in a versioned table."""
        ...


@dataclass(frozen=True, slots=True)
class View:
    """How to look up keys in a table: the stores that are needed, and a function that opens the look-up in a task."""

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
    """Return where a table that takes columns is looked up; None for other tables."""
    store: Any = lookup.store if isinstance(lookup, StoreLookup) else None
    return store.latest if getattr(store, "in_columns", False) and not store.versioned else None


def value_finder(lookup: Lookup) -> Callable[[Any], Any] | None:
    """Return a function that looks up the value of a key while records come in columns; None if there is none."""
    latest = latest_of(lookup)
    if latest is not None:
        get = latest.get
        return lambda key: get(key).value
    above, found = lookup, list[DerivedLookup]()
    while isinstance(above, DerivedLookup) and above.pure:
        found.append(above)
        above = above.above
    latest = latest_of(above)
    return None if latest is None else derived_finder(latest, [one.derive for one in reversed(found)])


def derived_finder(latest: Latest, steps: list[Derive]) -> Callable[[Any], Any]:
    """Compute the value of a key once, while that of the table above is the same."""
    known: dict[Any, tuple[Any, int, Any]] = {}

    def find(key: Any) -> Any:
        entry = latest.get(key)
        before = known.get(key)
        if before is not None and before[0] is entry.value and before[1] == entry.time:
            return before[2]
        found = None if entry.value is None else Stamped(entry.value, entry.time)
        for derive in steps:
            found = derive(key, found)
        value = None if found is None else found.value
        known[key] = (entry.value, entry.time, value)
        return value

    return find


def store_view(store: str) -> View:
    return View((store,), lambda context: StoreLookup(context.store(store)))


class DerivedLookup:
    """A table without a store: `derive` computes its value from the key and what the table above has. It is `pure` if
    it looks at nothing else.
    """

    def __init__(self, above: Lookup, derive: Derive, pure: bool) -> None:
        self.above, self.derive, self.pure, self.versioned = above, derive, pure, above.versioned

    def get(self, key: Any) -> Stamped | None:
        return self.derive(key, self.above.get(key))

    def as_of(self, key: Any, timestamp: int) -> Stamped | None:
        return self.derive(key, self.above.as_of(key, timestamp))


def computed_view(above: View, compute: Callable[[Any, Any], Any]) -> View:
    def derive(key: Any, found: Stamped | None) -> Stamped | None:
        value = None if found is None else compute(key, found.value)
        return None if found is None or value is None else Stamped(value, found.timestamp)

    return View(above.stores, lambda context: DerivedLookup(above.open(context), derive, pure=True))


def transformed_view(above: View, make: Callable[[], Any]) -> View:
    """View a table with a transformer, which is called for None too. Look-ups have a transformer of their own."""

    def open_lookup(context: Context) -> Lookup:
        transformer = make()
        call_if_defined(transformer, "init", context)

        def derive(key: Any, found: Stamped | None) -> Stamped | None:
            timestamp = UNKNOWN_TIME if found is None else found.timestamp
            with context.at_time(timestamp):
                value = transformer.transform(key, None if found is None else found.value)
            return None if value is None else Stamped(value, timestamp)

        return DerivedLookup(above.open(context), derive, pure=isinstance(transformer, ForColumns))

    return View(above.stores, open_lookup)
