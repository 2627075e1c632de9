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
        """Of a key-value store, with the time of each value; or the one that was given, with what was said besides."""
        store = self.options.get("store")
        made = store if isinstance(store, StoreSpec) else timestamped_key_value(self.name, cached=True)
        return self.applied(made)

    def applied(self, made: StoreSpec) -> StoreSpec:
        """Options that hold for stores of every kind."""
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
    """A name is generated where none is given. Serdes that are not given are those of the parent, if it can know."""
    store = options.get("store")
    known = store.name if isinstance(store, StoreSpec) else store
    name = graph.store_name(prefix) if known is None else checked_name(known, "store=")
    if not isinstance(store, StoreSpec):
        options = {"store_type": store_type(graph.settings), **options}
    return Materialized(name, known is not None, options, options.get("key") or key, options.get("value") or value)


def optional(
    graph: Graph, prefix: str, options: StoreOptions, key: SerdeLike = None, value: SerdeLike = None
) -> Materialized | None:
    """Of tables that need no store: None if nothing is said of one."""
    return materialized(graph, prefix, options, key, value) if options else None


def logging(given: bool | Mapping[str, str]) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"logged": given}
    return {"logged": True, "changelog_settings": tuple(given.items())}


def persistent(given: str, name: str) -> bool:
    if given not in TYPES:
        raise TopologyError(f"store_type= of {name} must be 'persistent' or 'in_memory', not {given!r}")
    return TYPES[given]
