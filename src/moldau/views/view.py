"""A view: a store by name, kept up from its changelog, for those who look things up in it.

What can be asked is what the store itself can be asked: the same names, the same answers, over all partitions. A key is
looked for in each of them, because producers choose partitions in ways of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import chain
from typing import Any, Literal, Self

from moldau.client import Client, ClientError
from moldau.operators.record import Stamped
from moldau.operators.stores.restoring import opened
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.stores.versioned import VersionedRecord
from moldau.operators.windowed import LAST_TIME, Windowed
from moldau.serdes.context import Serde

from .errors import Stale, ViewError
from .partition import Partition, opening
from .tail import Tail

Position = Mapping[int, int]  # partition of the changelog -> the offset up to which it was read
Stores = Callable[[], Sequence[Any]]  # the store of each partition, as it is to be seen
Row = dict[str, Any]
MAX_BYTES = 1 << 30
HISTORY = 100_000  # changes of a partition that can be taken back
LOADING_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a view may hold in bytes, and how many changes of a partition it remembers."""

    max_bytes: int = MAX_BYTES
    history: int = HISTORY


class View:
    """What views of all kinds share. `position` is how far the changelog was read."""

    def __init__(self, spec: StoreSpec, tail: Tail, stores: Stores | None = None) -> None:
        self.spec, self.name, self.topic = spec, spec.name, tail.topic
        self._tail = tail
        self._stores: Stores = stores or self._living
        self._kept: tuple[Mapping[int, Partition], list[Any]] | None = None
        self.table: tuple[Any, Any] | None = None  # what SQL was last asked of, and the position it was made at

    def _living(self) -> Sequence[Any]:
        self._tail.check()
        return [self._open(one.content) for one in self._tail.partitions.values()]

    def _open(self, content: Any) -> Any:
        """Open a store over the bytes of a partition, for each question: stores that remember what they were last asked
        are not for several threads."""
        return opened(self.spec, opening(self.topic, content))

    @property
    def position(self) -> dict[int, int]:
        return {one.number: one.position for one in self._tail.partitions.values()}

    @property
    def lags(self) -> dict[int, int]:
        """How many offsets each partition was behind when it was last fetched."""
        return {one.number: one.lag for one in self._tail.partitions.values()}

    @property
    def trouble(self) -> str | None:
        """Why the changelog cannot be read just now; look-ups go on with what was read before."""
        return self._tail.trouble

    def ends(self) -> dict[int, int]:
        """Return where the changelog ends now: a view that has reached this knows all that was committed before."""
        try:
            return self._tail.ends()
        except ClientError as error:
            raise Stale(f"the end of {self.topic} is not known: {error}") from None

    def wait(self, at_least: Position | Literal["latest"] | None = None, timeout: float = LOADING_S) -> Self:
        """Wait until the view has read up to a position, to the present end, or by default all that was there when it
        was made. Stale if that takes longer than `timeout` seconds."""
        if at_least is None:
            self._tail.wait_until(
                lambda: all(one.loaded for one in self._tail.partitions.values()), timeout, "the first end"
            )
            return self
        goal = self.ends() if at_least == "latest" else dict(at_least)
        self._known(goal)
        wanted = ", ".join(f"{number}:{offset}" for number, offset in sorted(goal.items()))
        self._tail.wait_until(
            lambda: all(self.position.get(number, 0) >= offset for number, offset in goal.items()), timeout, wanted
        )
        return self

    def at(self, position: Position | int) -> Self:
        """Return the view as it was when the changelog had been read up to an offset; partitions that are not named are
        as they are now. A number stands for a changelog of one partition."""
        given = {0: position} if isinstance(position, int) else dict(position)
        self._known(given)
        self._tail.check()
        contents = [past(one, given.get(one.number), self.topic) for one in self._tail.partitions.values()]
        return type(self)(self.spec, self._tail, lambda: [self._open(content) for content in contents])

    def rows(self) -> Iterator[Row]:
        """Return all entries as columns, for SQL."""
        raise NotImplementedError

    def approximate_count(self) -> int:
        return sum(store.approximate_count() for store in self._stores())

    def sql(self, query: str) -> Any:
        """Answer a query over this view by an Arrow table; the view has the store's name."""
        from .sql import answer

        return answer(query, {self.name: self})

    def close(self) -> None:
        """End soon; `join` waits for it."""
        self._tail.close()

    def join(self) -> None:
        self._tail.join()

    def _known(self, position: Position) -> None:
        wrong = set(position) - set(self.position)
        if wrong:
            raise ViewError(f"{self.topic} has no partition {min(wrong)}: it has {len(self.position)}")

    def _first(self, look: Callable[[Any], Any]) -> Any:
        return next((found for store in self._stores() if (found := look(store)) is not None), None)

    def _each(self, look: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        return chain.from_iterable(look(store) for store in self._stores())


def past(partition: Partition, offset: int | None, topic: str) -> Any:
    if offset is None:
        return partition.content
    if offset > partition.position:
        raise ViewError(
            f"the view of {topic} has read partition {partition.number} up to {partition.position}, "
            f"and not to {offset} yet: wait for that first"
        )
    found = partition.content.before(offset)
    if found is None:
        raise ViewError(
            f"the view of {topic} does not remember offset {offset} of partition {partition.number}: it goes back to "
            f"{partition.content.floor} (views.history changes, and no further than the changelog was compacted)"
        )
    return found


class KeyValueView(View):
    """Of key-value stores and tables: in the order of the keys' bytes. Values of tables have their time."""

    def _living(self) -> Sequence[Any]:
        self._tail.check()
        partitions = self._tail.partitions
        if self._kept is None or self._kept[0] is not partitions:  # these stores remember nothing: they can be kept
            self._kept = (partitions, [self._open(one.content) for one in partitions.values()])
        return self._kept[1]

    def get(self, key: Any) -> Any:
        for store in self._stores():
            found = store.get(key)
            if found is not None:
                return found
        return None

    def wait_for(self, key: Any, timeout: float, until: Callable[[Any], bool] = lambda found: True) -> Any:
        """Wait for a value of a key for which `until` is true, and return it; Stale if that takes too long."""
        seen: list[Any] = []

        def is_there() -> bool:
            found = self.get(key)
            if found is not None and until(found):
                seen.append(found)
            return bool(seen)

        self._tail.wait_until(is_there, timeout, f"a value of {key!r}")
        return seen[0]

    def range(self, low: Any = None, high: Any = None, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Return entries between two keys, both inclusive; None is open."""
        return self._merged(lambda store: store.range(low, high, reverse), reverse)

    def all(self, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        return self.range(None, None, reverse)

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[tuple[Any, Any]]:
        """Return entries whose keys' bytes begin with those of the prefix."""
        return self._merged(lambda store: store.prefix_scan(prefix, serde), False)

    def rows(self) -> Iterator[Row]:
        for key, found in self._each(lambda store: store.all()):
            value, timestamp = found if isinstance(found, Stamped) else (found, None)
            yield {"key": key, "value": value, "timestamp": timestamp}

    def _merged(self, look: Callable[[Any], Iterator[Any]], reverse: bool) -> Iterator[tuple[Any, Any]]:
        stores = self._stores()
        if len(stores) == 1:
            return look(stores[0])
        write = stores[0].write_key
        return merge(*(look(store) for store in stores), key=lambda entry: write(entry[0]), reverse=reverse)


class WindowView(View):
    """Of window stores and windowed tables. Windows of many keys come partition by partition."""

    def fetch(self, key: Any, start: int) -> Any:
        """Return the value of the window that starts then."""
        return self._first(lambda store: store.fetch(key, start))

    def get(self, key: Windowed) -> Any:
        return self.fetch(key.key, key.start)

    def fetch_range(
        self, key: Any, first: int = 0, last: int = LAST_TIME, reverse: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """Return windows of a key that start from one time to another, both inclusive, with their starts."""
        found = (store.fetch_range(key, first, last, reverse) for store in self._stores())
        return merge(*found, key=lambda entry: entry[0], reverse=reverse)

    def fetch_keys(
        self, low: Any, high: Any, first: int = 0, last: int = LAST_TIME, reverse: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        """Return windows of the keys between two, both inclusive; None is open."""
        return self._each(lambda store: store.fetch_keys(low, high, first, last, reverse))

    def fetch_all(self, first: int = 0, last: int = LAST_TIME, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_keys(None, None, first, last, reverse)

    def all(self, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_all(reverse=reverse)

    def rows(self) -> Iterator[Row]:
        return map(windowed_row, self.all())


class SessionView(View):
    """Of session stores. Sessions of many keys come partition by partition."""

    def fetch_session(self, key: Any, start: int, end: int) -> Any:
        return self._first(lambda store: store.fetch_session(key, start, end))

    def get(self, session: Windowed) -> Any:
        return self._first(lambda store: store.get(session))

    def find_sessions(
        self, key: Any, earliest_end: int = 0, latest_start: int = LAST_TIME, reverse: bool = False
    ) -> Iterator[tuple[Windowed, Any]]:
        """Return sessions of a key that end no earlier and start no later than given, by their ends."""
        return self._each(lambda store: store.find_sessions(key, earliest_end, latest_start, reverse))

    def fetch(self, key: Any, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        """Return all sessions of a key."""
        return self.find_sessions(key, reverse=reverse)

    def fetch_keys(self, low: Any = None, high: Any = None, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self._each(lambda store: store.fetch_keys(low, high, reverse))

    def all(self, reverse: bool = False) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_keys(None, None, reverse)

    def rows(self) -> Iterator[Row]:
        return map(windowed_row, self.all())


class VersionedView(View):
    """Of versioned stores: what is valid now, and what was at a time within the history retention."""

    def get(self, key: Any) -> Stamped | None:
        return self._first(lambda store: store.get(key))

    def as_of(self, key: Any, timestamp: int) -> VersionedRecord | None:
        return self._first(lambda store: store.as_of(key, timestamp))

    def get_range(
        self, key: Any, first: int = 0, last: int = LAST_TIME, reverse: bool = False
    ) -> Iterator[VersionedRecord]:
        """Return all that was valid at some time of a span, the earliest first."""
        return self._each(lambda store: store.get_range(key, first, last, reverse))

    def rows(self) -> Iterator[Row]:
        for key, found in self._each(lambda store: store.latest()):
            yield {"key": key, "value": found.value, "timestamp": found.timestamp}


def windowed_row(entry: tuple[Windowed, Any]) -> Row:
    place, found = entry
    value, timestamp = found if isinstance(found, Stamped) else (found, None)
    bounds = {"window_start": place.start, "window_end": place.end}
    return {"key": place.key, **bounds, "value": value, "timestamp": timestamp}


KINDS: dict[str, type[View]] = {
    "key-value": KeyValueView,
    "lru": KeyValueView,
    "timestamped-key-value": KeyValueView,
    "window": WindowView,
    "timestamped-window": WindowView,
    "session": SessionView,
    "versioned-key-value": VersionedView,
}


def open_view(spec: StoreSpec, topic: str, client: Client, limits: Limits | None = None) -> View:
    """Open the view of a store from its changelog topic. The view takes over the client, and loads in the
    background."""
    limits = limits or Limits()
    if spec.kind not in KINDS:
        raise ViewError(f"the store {spec.name} is of the kind {spec.kind}, which is not for look-ups")
    try:
        tail = Tail(
            client, topic, lambda number, start: Partition(spec, topic, number, start, limits.history), limits.max_bytes
        )
    except ClientError as error:
        client.close()
        raise ViewError(f"the store {spec.name} has no view: {error} Has the application run?") from None
    return KINDS[spec.kind](spec, tail)
