"""The stores of one application as views, each opened when it is first asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from moldau.client import Client, ClientError
from moldau.operators.stores.spec import StoreSpec

from .errors import Stale, ViewError
from .offsets import committed
from .view import KINDS, LOADING_S, Limits, Position, View, open_view

# A reader of topics does not make them, and tells soon that one is not there.
CLIENT = {"allow.auto.create.topics": "false", "topic.metadata.propagation.max.ms": "1000"}
PAUSE_S = 0.05
InputPosition = Mapping[tuple[str, int], int]  # topic and partition -> offset


@dataclass(frozen=True, slots=True)
class Changelog:
    """A store, and the topic that has its changes."""

    spec: StoreSpec
    topic: str


class Served:
    """`settings` are those of the client: where the cluster is, and how one is let in."""

    def __init__(
        self,
        application: str,
        changelogs: Mapping[str, Changelog],
        settings: Mapping[str, Any],
        limits: Limits | None = None,
    ) -> None:
        self.application = application
        self.changelogs = {name: row for name, row in changelogs.items() if row.spec.kind in KINDS}
        self._settings = {**CLIENT, **settings}
        self._limits = limits or Limits()
        self._views: dict[str, View] = {}
        self._lock = threading.Lock()

    def store(
        self,
        name: str,
        *,
        at_least: Position | InputPosition | Literal["latest"] | None = None,
        timeout: float = LOADING_S,
    ) -> View:
        """Return the view of a store, loaded. `at_least` asks for more: a position of the changelog, its present end
        ("latest"), or offsets of topics that the application reads: `{("orders", 0): 42}` waits until the records
        before that offset have been processed and what came of them is here."""
        began = time.monotonic()
        view = self._opened(name).wait(timeout=timeout)
        if at_least is None:
            return view
        if at_least != "latest" and any(isinstance(place, tuple) for place in at_least):
            self._wait_for_inputs(at_least, began + timeout)  # type: ignore[arg-type]
            at_least = "latest"
        return view.wait(at_least, max(0.0, began + timeout - time.monotonic()))  # type: ignore[arg-type]

    def sql(self, query: str) -> Any:
        """Answer a query over any of the stores by an Arrow table."""
        from .sql import answer, mentioned

        return answer(query, {name: self.store(name) for name in mentioned(query, self.changelogs)})

    def close(self) -> None:
        with self._lock:
            views, self._views = self._views, {}
        for view in views.values():
            view.close()
        for view in views.values():
            view.join()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _opened(self, name: str) -> View:
        row = self.changelogs.get(name)
        if row is None:
            known = ", ".join(sorted(self.changelogs)) or "none"
            raise ViewError(f"{self.application} has no store {name!r} with a changelog: it has {known}")
        with self._lock:
            if name not in self._views:
                self._views[name] = open_view(row.spec, row.topic, Client(self._settings), self._limits)
            return self._views[name]

    def _wait_for_inputs(self, wanted: InputPosition, deadline: float) -> None:
        goals: dict[str, dict[int, int]] = {}
        for (topic, number), offset in wanted.items():
            goals.setdefault(topic, {})[number] = offset
        with Client(self._settings) as client:
            for topic, goal in goals.items():
                self._wait_for_topic(client, topic, goal, deadline)

    def _wait_for_topic(self, client: Client, topic: str, goal: dict[int, int], deadline: float) -> None:
        """Wait until the application's group has committed up to the offsets."""
        while True:
            try:
                done = committed(client, self.application, topic, goal)
            except ClientError as error:
                raise Stale(f"it is not known how far {self.application} is: {error}") from None
            if all(done[number] >= offset for number, offset in goal.items()):
                return
            if time.monotonic() >= deadline:
                raise Stale(f"{self.application} has not processed {topic} up to {goal} yet: it is at {done}")
            time.sleep(PAUSE_S)
