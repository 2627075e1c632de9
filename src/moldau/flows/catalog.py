"""The catalog: all definitions, followed as they change, and the way to change them.

Anybody may change a definition. Who does becomes the writer of the topic for that moment (`Store.take_over`): it
decides on all that was written before, and whoever decided on less is refused and decides again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from moldau.client import Client, ClientError
from moldau.flows.definition import (
    Definition,
    FlowError,
    Foreign,
    Known,
    Wanted,
    changed,
    deployed,
    rolled_back,
    settled,
)
from moldau.flows.moving import arrived, moved, parted, stays
from moldau.flows.records import CODEC, NOOP, TOPIC, Gone, Row
from moldau.flows.topics import make, replay
from moldau.topicstore import FENCED, State, Store

START_S, WRITE_S = 60.0, 30.0
TRIES = 10  # of a change, when others change something at the same time
OWN = {"client.id": "moldau-flows"}


class Catalog:
    """All definitions by name."""

    def __init__(self, store: Store[Row], known: dict[str, Definition | Foreign]) -> None:
        self._store, self._known = store, known

    @property
    def known(self) -> dict[str, Definition | Foreign]:
        return self._store.snapshot(lambda: dict(self._known))[1]

    @property
    def flows(self) -> dict[str, Definition]:
        """Those that this release understands."""
        return {name: one for name, one in self.known.items() if isinstance(one, Definition)}

    @property
    def position(self) -> int:
        """Grows with each change."""
        return self._store.position

    def deploy(self, new: Definition) -> Definition:
        return self._change(lambda known: deployed(known, new))

    def want(self, name: str, wanted: Wanted, *, anew: bool = False) -> Definition:
        return self._change(lambda known: changed(known, name, wanted, now_ms(), anew=anew))

    def roll_back(self, name: str, revision: int | None = None, note: str | None = None) -> Definition:
        return self._change(lambda known: stays(known, rolled_back(known, name, now_ms(), revision, note)))

    def move(self, name: str, lane: str | None, worker: str | None) -> Definition:
        return self._change(lambda known: moved(known, name, now_ms(), lane, worker))

    def part(self, flow: Definition, apart: bool, note: str | None) -> None:
        """Give a flow a lane of its own, or let it share one again."""

        def decide() -> tuple[list[Row], None]:
            made = parted(self._known, flow, apart, now_ms(), note)
            return ([] if made is None else [made]), None

        self._update(decide)

    def arrive(self, flow: Definition, begin: Mapping[str, Any]) -> None:
        """Let a flow that has left its lane go on in the next one."""

        def decide() -> tuple[list[Row], None]:
            made = arrived(self._known, flow, begin)
            return ([] if made is None else [made]), None

        self._update(decide)

    def settle(self, name: str, revision: int) -> None:
        """Let a version stay: it has proved itself."""

        def decide() -> tuple[list[Row], None]:
            made = settled(self._known, name, revision)
            return ([] if made is None else [made]), None

        self._update(decide)

    def forget(self, one: Definition) -> None:
        """Take a definition out that has been cleared away; not one that was deployed anew meanwhile."""

        def decide() -> tuple[list[Row], None]:
            now = self._known.get(one.name)
            same = isinstance(now, Definition) and (now.serial, now.wanted) == (one.serial, Wanted.REMOVED)
            return ([Gone(one.name)] if same else []), None

        self._update(decide)

    def _change(self, decision: Callable[[Known], Definition]) -> Definition:
        def decide() -> tuple[list[Row], str]:
            made = decision(self._known)
            return [made], made.name

        name = self._update(decide)
        found = self.known.get(name)
        if not isinstance(found, Definition):
            raise FlowError(f"{name} was removed at the same time.")
        return found

    def _update(self, decide: Callable[[], tuple[list[Row], Any]]) -> Any:
        for left in range(TRIES, 0, -1):
            try:
                self._store.take_over()
                return self._store.update(decide)
            except ClientError as error:
                if error.error not in FENCED or left == 1:
                    raise
        raise AssertionError("the last try returns or raises")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def take(known: dict[str, Definition | Foreign], row: Row) -> None:
    """Replay one record."""
    if not isinstance(row, Gone):
        known[row.name] = row
    elif row.name:
        known.pop(row.name, None)


def read(client: Client) -> dict[str, Definition | Foreign]:
    """Return all definitions as they are now; nothing is created where nobody has deployed anything."""
    known: dict[str, Definition | Foreign] = {}
    replay(client, TOPIC, lambda record: take(known, CODEC.decode(record)))
    return known


@contextmanager
def opened(settings: Mapping[str, Any]) -> Iterator[Catalog]:
    """Open the catalog of a cluster, read to its end, for the length of a `with`."""
    known: dict[str, Definition | Foreign] = {}
    with ExitStack() as parts:
        given = {**settings, **OWN}
        client = parts.enter_context(Client(given))
        make(client, TOPIC)
        store = Store(
            Client(given),
            TOPIC,
            CODEC,
            State(lambda row: take(known, row), known.clear),
            noop=NOOP,
            transactional_id=TOPIC,
            timeout_s=WRITE_S,
        )
        parts.callback(store.close)
        store.start(START_S)
        yield Catalog(store, known)
