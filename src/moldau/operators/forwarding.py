"""How tables forward a change: at once, or when the cache of their store lets it go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .context import Context
from .record import Change, Record, Stamped

Tell = Callable[[Record, Any, Any, int, bool], None]  # the cause, new, old, timestamp, whether it is the latest


def teller(context: Context, store: Any, send_old: bool) -> Tell:
    """Return what an operator calls after each change of its store."""
    emit = context.emit
    if store.cached:

        def released(key: Any, new: Stamped | None, old: Stamped | None, cause: Record) -> None:
            value, timestamp = (None, cause.timestamp) if new is None else new
            change = Change(value, None if old is None else old.value)
            emit(Record(key, change, timestamp, cause.headers))

        store.listen(released, send_old)
        return hold_back
    if send_old:

        def tell(record: Record, new: Any, old: Any, timestamp: int, latest: bool) -> None:
            emit(Record(record.key, Change(new, old, latest), timestamp, record.headers))
    else:

        def tell(record: Record, new: Any, old: Any, timestamp: int, latest: bool) -> None:
            emit(Record(record.key, Change(new, None, latest), timestamp, record.headers))

    return tell


def hold_back(record: Record, new: Any, old: Any, timestamp: int, latest: bool) -> None:
    """Forward nothing: the cache will."""


def value_of(found: Stamped | None) -> Any:
    return None if found is None else found.value
