"""How a table is kept: keyword arguments in place of Kafka's Materialized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, cast

from moldau.operators.context import TopologyError
from moldau.operators.durations import Duration, milliseconds
from moldau.operators.stores.key_value import timestamped_key_value
from moldau.operators.stores.spec import StoreSpec
from moldau.serdes.context import Serde

from .graph import Graph
from .names import checked_name
from .serdes import SerdeLike
from .tuning import store_type

TYPES = {"persistent": True, "rocksDB": True, "in_memory": False}


class StoreOptions(TypedDict, total=False):
    """`store` is a name, under which the table can be looked up, or the spec of a store."""

    store: str | StoreSpec
    key: SerdeLike
    value: SerdeLike
    store_type: str
    retention: Duration
    logging: bool | Mapping[str, str]
    caching: bool


@dataclass(frozen=True, slots=True)
class Materialized:
    """`name` is that of the store; `queryable` says whether the user gave it."""

    name: str
    queryable: bool
    options: StoreOptions
    key: SerdeLike
    value: SerdeLike

    @property
    def given(self) -> str | None:
        return self.name if self.queryable else None

    @property
    def spec(self) -> StoreSpec:
        """The given spec, or that of a timestamped key-value store, with the options applied."""
        store = self.options.get("store")
        made = store if isinstance(store, StoreSpec) else timestamped_key_value(self.name, cached=True)
        return self.applied(made)

    def applied(self, made: StoreSpec) -> StoreSpec:
        """Apply the options that every kind of store has."""
        options = self.options
        key, value = cast(Serde, made.key or self.key), cast(Serde, made.value or self.value)
        made = replace(made, key=key, value=value)
        if "caching" in options and not made.versioned:
            made = replace(made, cached=bool(options["caching"]))
        if "logging" in options:
            made = replace(made, **logging(options["logging"]))
        if "store_type" in options:
            made = replace(made, persistent=persistent(options["store_type"], self.name))
        if "retention" in options:
            made = replace(made, retention_ms=milliseconds(options["retention"], f"retention= of {self.name}"))
        return made


def materialized(
    graph: Graph, prefix: str, options: StoreOptions, key: SerdeLike = None, value: SerdeLike = None
) -> Materialized:
    """Generate a name where none is given. `key` and `value` are the parent's serdes, where they hold here too."""
    store = options.get("store")
    known = store.name if isinstance(store, StoreSpec) else store
    name = graph.store_name(prefix) if known is None else checked_name(known, "store=")
    if not isinstance(store, StoreSpec):
        options = {"store_type": store_type(graph.settings), **options}
    return Materialized(name, known is not None, options, options.get("key") or key, options.get("value") or value)


def optional(
    graph: Graph, prefix: str, options: StoreOptions, key: SerdeLike = None, value: SerdeLike = None
) -> Materialized | None:
    """Do as `materialized` for a table that needs no store: None if the user says nothing of one."""
    return materialized(graph, prefix, options, key, value) if options else None


def queried_spec(store: Materialized | None) -> StoreSpec | None:
    """Return the spec of a store that the user named; a derived table is written to no other."""
    return store.spec if store is not None and store.queryable else None


def logging(given: bool | Mapping[str, str]) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"logged": given}
    return {"logged": True, "changelog_settings": tuple(given.items())}


def persistent(given: str, name: str) -> bool:
    if given not in TYPES:
        raise TopologyError(f"store_type= of {name} must be 'persistent' or 'in_memory', not {given!r}")
    return TYPES[given]
