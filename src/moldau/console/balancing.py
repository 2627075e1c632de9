"""The balancer's plans and runs, as the console begins, steers and watches them.

A run that is begun or steered here is carried out by a thread of the console, unless another balancer is active: then
the thread watches. Its state is the cluster's own (`moldau.balance`), so nothing is lost if the console ends: the run
can be resumed, here or by `moldau cluster balance --resume`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue

from moldau.admin.connection import Connection
from moldau.admin.mistakes import Mistake
from moldau.balance import sessions
from moldau.balance.balancer import Balancer, carry_out
from moldau.balance.execution import KafkaCluster, Progress, progress
from moldau.balance.goals import GOALS, Limits
from moldau.balance.journal import Run
from moldau.balance.moves import Plan
from moldau.balance.observing import observe
from moldau.balance.planning import plan
from moldau.balance.progress import Wish
from moldau.client import ClientError

REMEDY = "resume or cancel it first"
END_S = 20.0  # how long the end of the console waits for moves to be called off


@dataclass(frozen=True, slots=True)
class Watched:
    """A run as it is now. `is_ours` if a thread of this console takes care of it; `error` is why that has ended."""

    run: Run
    progress: Progress
    is_ours: bool
    error: str = ""


class _Ended(KeyboardInterrupt):
    """The console ends: what is under way is called off, as at Ctrl-C."""


class Balancing:
    """Plans and runs, for all pages together."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._journal = sessions.JournalReader(connection.client)
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._wishes: SimpleQueue[Wish] = SimpleQueue()
        self._progress: Progress | None = None
        self._error = ""
        self._is_closed = False

    def plan(self, drain: Sequence[int]) -> Plan:
        """Look at the cluster and plan; the brokers of `drain` shall be empty."""
        return plan(observe(self._connection.client).without(drain), tuple(GOALS.values()), Limits())

    def watch(self) -> Watched | None:
        """Return the last run and how far it is; None if there never was one."""
        with self._lock:
            journal = self._journal.read()
            run, moves = journal.run, journal.moves()
        if run is None:
            return None
        if self._is_working and self._progress is not None:
            return Watched(run, self._progress, True)
        if sessions.unfinished(journal) is None:
            return Watched(run, Progress(run.state), False, self._error)
        view = KafkaCluster(self._connection.client).view()
        return Watched(run, progress(run, moves, view), self._is_working, self._error)

    def begin(self, made: Plan, purpose: str, rate: int) -> None:
        """Begin to carry out a plan; Mistake if another one is unfinished."""
        if self._is_working:
            raise Mistake(f"A plan is being carried out: {REMEDY}.")
        self._start(sessions.begin(made, purpose, rate, REMEDY))

    def steer(self, wish: Wish) -> None:
        """Let an unfinished run go on, pause or end."""
        if self._is_working:
            self._wishes.put(wish)
        else:
            self._start(sessions.steer(wish))

    def close(self) -> None:
        """Call off what a thread of ours has under way, and take its throttles away."""
        self._is_closed = True
        if self._worker is not None:
            self._worker.join(END_S)

    @property
    def _is_working(self) -> bool:
        return self._worker is not None and self._worker.is_alive()

    def _start(self, act: sessions.Act) -> None:
        """Start the thread, and wait until what is wanted is written down; raises why it was not."""
        begun: Future[None] = Future()
        self._progress, self._error, self._wishes = None, "", SimpleQueue()
        self._worker = threading.Thread(target=self._run, args=(act, begun), name="balancing", daemon=True)
        self._worker.start()
        begun.result()

    def _run(self, act: sessions.Act, begun: Future[None]) -> None:
        try:
            with sessions.taking_part(self._connection.kafka_settings) as balancer:
                act(balancer)
                begun.set_result(None)
                carry_out(balancer, lambda seen: self._note(balancer, seen))
        except (ClientError, Mistake) as error:
            if begun.done():
                self._error = str(error)
            else:
                begun.set_exception(error)
        except _Ended:
            pass  # carry_out has called off what was under way

    def _note(self, balancer: Balancer, seen: Progress) -> None:
        self._progress = seen
        while not self._wishes.empty():
            wish = self._wishes.get()
            if wish is Wish.RUN:
                balancer.resume()
            else:
                balancer.want(wish)
        if self._is_closed:
            raise _Ended
