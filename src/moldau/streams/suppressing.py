"""Tables that hold their changes back: KTable.suppress."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from moldau.operators.context import Context, TopologyError
from moldau.operators.stores.suppressed import suppressed as suppress_store
from moldau.operators.suppress import Suppress, SuppressedView
from moldau.operators.views import Lookup, View
from moldau.operators.windows import Suppressed

from .names import checked_name
from .recipes import Factory, Recipe, Uses

if TYPE_CHECKING:
    from .table import KTable

SUPPRESS = "KTABLE-SUPPRESS-"


class HeldBack:
    """A table that shows what was last let through; old values come from the table above."""

    def __init__(self, parent: Recipe, node: str, store: str, suppressed: Suppressed, spec: Any) -> None:
        parent.send_old_values(True)
        self.parent, self.node, self.suppressed, self.spec, self.store = parent, node, suppressed, spec, store
        self.wait_ms = wait_of(parent, suppressed, node)

    def factory(self) -> Factory:
        final = self.suppressed.wait_ms is None
        bounds = self.suppressed.buffer.bounds
        return partial(Suppress, self.store, self.wait_ms, bounds, by_window_end=final, drop_tombstones=final)

    def stores(self) -> Uses:
        return (self.spec,)

    def send_old_values(self, force: bool) -> bool:
        return self.parent.send_old_values(force)

    def view(self) -> View:
        above = self.parent.view()

        def opened(context: Context) -> Lookup:
            return SuppressedView(context.store(self.store), above.open(context))

        return View((self.store, *above.stores), opened)

    def versioned(self) -> bool:
        return False


def suppress(table: KTable[Any, Any], suppressed: Suppressed) -> HeldBack:
    """Add the node, and return the recipe of its table."""
    if table.recipe.versioned():
        raise TopologyError("suppress() is only supported for tables that are not versioned")
    graph, given = table.graph, suppressed.name
    node = graph.generate(SUPPRESS) if given is None else checked_name(given, "name=")
    store = graph.store_name(SUPPRESS) if given is None else f"{given}-store"
    key, value = cast(Any, table.key), cast(Any, table.value)
    spec = suppress_store(store, key, value, logged=suppressed.buffer.logging, persistent=False)
    recipe = HeldBack(table.recipe, node, store, suppressed, spec)
    graph.table(node, [table.name], recipe, "suppress")
    return recipe


def wait_of(parent: Recipe, suppressed: Suppressed, node: str) -> int:
    if suppressed.wait_ms is not None:
        return suppressed.wait_ms
    graces = list(graces_above(parent))
    if not graces:
        raise TopologyError(
            f"{node} waits for windows to close, but no table above it is windowed: use until_time_limit()"
        )
    return max(graces)


def graces_above(recipe: Any) -> Iterator[int]:
    """Yield how long the windows of the nearest windowed tables above stay open."""
    if hasattr(recipe, "grace_ms"):
        yield recipe.grace_ms
        return
    above = [side.mine for side in getattr(recipe, "sides", ())]
    above += [*getattr(recipe, "parts", ()), getattr(recipe, "parent", None)]
    for parent in above:
        if parent is not None:
            yield from graces_above(parent)
