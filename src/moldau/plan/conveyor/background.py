"""An application in the background of a process: a thread supervises its query."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.spark.runner import POLL_S, QueryFailed, Supervised, Supervisor
from moldau.spark.runner.status import QueryStatus, State

from .start import Application, Reported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Listener = Callable[[State], None]


class Background:
    """The query of one application: started, restarted after a temporary failure, and stopped between two batches.
    `listen` is called with each new state; `failure` is why the query has ended for good.
    """

    def __init__(self, application: Application, spark: SparkSession, listen: Listener) -> None:
        self.status = QueryStatus(application.id)
        self.failure: QueryFailed | None = None
        self._listen = listen
        query = Reported(application)
        one = Supervised(application.id, query, self.status, observe=query.observe)
        self._supervisor = Supervisor(spark, [one])
        self._told_to_stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{application.id} on Spark", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Stop the query; return whether it has ended in time."""
        self._told_to_stop.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        seen: State | None = None
        try:
            while not self._supervisor.ended:
                if self._told_to_stop.is_set():
                    self._supervisor.stop(time.monotonic())
                self._supervisor.step(time.monotonic())
                self._supervisor.raise_failure()
                seen = self._tell(seen)
                if self._told_to_stop.is_set():
                    time.sleep(POLL_S)
                else:
                    self._told_to_stop.wait(POLL_S)
        except QueryFailed as error:
            self.failure = error
        finally:
            self._supervisor.kill()
            self._tell(seen)

    def _tell(self, seen: State | None) -> State:
        if self.status.state is not seen:
            self._listen(self.status.state)
        return self.status.state
