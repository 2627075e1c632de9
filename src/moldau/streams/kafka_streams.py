"""An application in the background of a process: what Kafka calls KafkaStreams.

`builder.run()` is for a process that does nothing else. Here the application runs in the background, and its stores can
be queried: from this process, or over HTTP at `application.server`.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Self

from moldau.extras import require_spark
from moldau.operators.context import TopologyError
from moldau.operators.errors import StreamsError
from moldau.plan.home import local
from moldau.views import View
from moldau.views.served import InputPosition, Served
from moldau.views.view import LOADING_S, Position

from .builder import StreamsBuilder
from .serving import served, server_of
from .topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.plan.conveyor.background import Background
    from moldau.plan.conveyor.start import Application
    from moldau.views.service import Threaded

Name = Literal["CREATED", "REBALANCING", "RUNNING", "PAUSED", "PENDING_SHUTDOWN", "NOT_RUNNING", "ERROR"]
# Kafka's names for the states of Spark's query.
NAMES: dict[str, Name] = {
    "starting": "REBALANCING",
    "running": "RUNNING",
    "restarting": "REBALANCING",
    "stopping": "PENDING_SHUTDOWN",
    "stopped": "NOT_RUNNING",
    "finished": "NOT_RUNNING",
    "failed": "ERROR",
}
CLOSE_S = 90.0


class KafkaStreams:
    """An application. `start` returns at once; `close`, or the end of a `with`, stops it between two batches."""

    def __init__(
        self,
        topology: Topology | StreamsBuilder,
        settings: Mapping[str, Any] | None = None,
        *,
        spark: SparkSession | None = None,
    ) -> None:
        self.topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
        self._settings = dict(settings or {})
        self._spark = spark
        self._served: Served = served(self.topology, self._settings)
        self._serving: Threaded | None = None
        self._background: Background | None = None
        self._state: Name = "CREATED"
        self._changed = threading.Condition()
        self._listener: Callable[[Name, Name], None] | None = None
        self._handler: Callable[[BaseException], None] | None = None

    @property
    def application_id(self) -> str:
        return self._served.application

    @property
    def state(self) -> Name:
        return self._state

    def set_state_listener(self, listener: Callable[[Name, Name], None]) -> None:
        """Set a function that gets the new state and the previous one."""
        self._listener = listener

    def set_uncaught_exception_handler(self, handler: Callable[[BaseException], None]) -> None:
        """Set a function that gets the error with which the application ended in the state ERROR."""
        self._handler = handler

    def start(self) -> Self:
        require_spark()
        if self._state != "CREATED":
            raise TopologyError(f"{self.application_id} was started before: make another KafkaStreams of it")
        server = server_of(self.topology, self._settings)
        if server is not None:
            from moldau.views.service import serve

            self._serving = serve(self._served, server)
        self._run()
        return self

    def pause(self) -> None:
        """Stop between two batches; stores can still be queried."""
        if self._state != "PAUSED":
            self._become("PAUSED")
            self._stop(CLOSE_S)

    def resume(self) -> None:
        if self._state == "PAUSED":
            self._run()

    @property
    def is_paused(self) -> bool:
        return self._state == "PAUSED"

    def wait_for(self, state: Name, timeout: float) -> None:
        """Wait for a state. StreamsError if the application ends in another one, TimeoutError if time is up."""
        ended = ("ERROR", "NOT_RUNNING")
        with self._changed:
            if not self._changed.wait_for(lambda: self._state == state or self._state in ended, timeout):
                raise TimeoutError(f"{self.application_id} is {self._state} after {timeout:g} s")
        if self._state != state:
            failure = self._background.failure if self._background is not None else None
            raise StreamsError(f"{self.application_id} is {self._state}{f': {failure}' if failure else ''}")

    def close(self, timeout: float = CLOSE_S) -> bool:
        """Stop the application; return whether it has ended in time."""
        ended = self._stop(timeout)
        if self._serving is not None:
            self._serving.close()
            self._serving = None
        self._served.close()
        if self._state not in ("ERROR", "CREATED"):
            self._become("NOT_RUNNING")
        return ended

    def clean_up(self) -> None:
        """Remove the state in `state.dir` of an application that does not run."""
        if self._state not in ("CREATED", "NOT_RUNNING", "ERROR"):
            raise TopologyError(f"{self.application_id} is {self._state}: close it before its state is cleaned up")
        try:
            shutil.rmtree(local(self._application().home), ignore_errors=True)
        except ValueError as error:
            raise TopologyError(str(error)) from None

    def store(
        self,
        name: str,
        *,
        at_least: Position | InputPosition | Literal["latest"] | None = None,
        timeout: float = LOADING_S,
    ) -> View | Any:
        """Return a store for queries (see `Served.store`), after the application has started."""
        if self._state == "REBALANCING":
            self.wait_for("RUNNING", timeout)
        return self._served.store(name, at_least=at_least, timeout=timeout)

    def sql(self, query: str) -> Any:
        """Run a query over the stores; the result is an Arrow table."""
        return self._served.sql(query)

    @property
    def stores(self) -> list[str]:
        return sorted(self._served.changelogs)

    @property
    def server(self) -> str | None:
        """The URL at which the stores are served."""
        return None if self._serving is None else self._serving.url

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics of the query after its last batch."""
        return {} if self._background is None else asdict(self._background.status)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self) -> None:
        from moldau.plan.conveyor.background import Background

        from .application import session_of

        made = self._application()
        if self._spark is None:
            self._spark = session_of(made, self._settings, self.topology)
        self._become("REBALANCING")
        self._background = Background(made, self._spark, self._follow)

    def _follow(self, state: str) -> None:
        if self._state != "PAUSED":
            self._become(NAMES[state])

    def _application(self) -> Application:
        from .application import application

        return application(self.topology, self._settings)

    def _stop(self, timeout: float) -> bool:
        return self._background is None or self._background.stop(timeout)

    def _become(self, state: Name) -> None:
        before = self._state
        if state == before:
            return
        with self._changed:
            self._state = state
            self._changed.notify_all()
        if self._listener is not None:
            self._listener(state, before)
        failure = self._background.failure if self._background is not None else None
        if state == "ERROR" and self._handler is not None and failure is not None:
            self._handler(failure)
