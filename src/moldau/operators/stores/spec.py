"""The specification of a store, and what it is opened with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from moldau.serdes.context import Serde

from ..columns import Columns
from ..context import Shard
from .ordered import OrderedBytes

OnChanges = Callable[[Columns, Serde | None, Serde | None], None]  # with the serdes of the changelog
OnChange = Callable[[bytes, bytes | None, int], None]  # key, value (None: deleted), timestamp
LATEST = -1  # what `put` of a table's store returns: the value is the latest of its key,
NOT_PUT = -(2**63)  # or was too old to be kept; anything else is the time until which it holds
DEFAULT_CACHE_BYTES = 10 * 1024 * 1024


@dataclass(slots=True)
class Opening:
    """What a store is opened with, for one shard."""

    topic: str  # of its changelog, even if it has none: the name that serdes get
    bytes: OrderedBytes
    on_change: OnChange | None  # None: no changelog
    shard: Shard
    cache_bytes: int = 0  # 0: every change is forwarded; otherwise the last one of each key before a flush
    on_changes: OnChanges | None = None  # the changelog, of a store that takes records in columns


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A store: its name, kind and serdes, and the function that opens it for a shard.

    `open` gets the spec itself, with the serdes that are known only when the topology is built.
    """

    name: str
    kind: str
    open: Callable[[StoreSpec, Opening], Any]
    key: Serde | None = None
    value: Serde | None = None
    logged: bool = True
    cached: bool = False
    persistent: bool = True
    retention_ms: int | None = None
    versioned: bool = False
    changelog: str | None = None  # a topic that serves as changelog in place of one of its own
    changelog_settings: tuple[tuple[str, str], ...] = ()
    parts: tuple[tuple[str, Any], ...] = field(default=())  # what a kind needs besides

    @property
    def has_changelog(self) -> bool:
        """Whether it has a changelog of its own."""
        return self.logged and self.changelog is None

    def with_serdes(self, key: Serde | None, value: Serde | None) -> StoreSpec:
        return replace(self, key=key, value=value)

    def part(self, name: str) -> Any:
        return dict(self.parts)[name]
