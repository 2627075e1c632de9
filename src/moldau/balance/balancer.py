"""A balancer as a process: its place in the group, its journal, and what it does while it is the active one."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from moldau.balance import healing
from moldau.balance.execution import Executor, KafkaCluster, Progress, progress
from moldau.balance.goals import GOALS, Goal, Limits
from moldau.balance.journal import CODEC, NOOP, RUNNING, TOPIC, Journal, Row, Run, Wanted, resumption, submission
from moldau.balance.model import Model
from moldau.balance.moves import Plan
from moldau.balance.observing import observe
from moldau.balance.planning import plan
from moldau.balance.progress import PAUSED, Pace, Wish
from moldau.client import Client, ClientError
from moldau.topicstore import FENCED, Election, Identity, State, Store, Writer, prepare

log = logging.getLogger(__name__)

GROUP, GROUP_TYPE = "moldau-balancer", "moldau"
REPLICAS = 3
START_S, WRITE_S, ELECTION_S = 60.0, 30.0, 20.0
HALT_S = 60.0
TICK_S = 1.0
OUTAGE_S = 120.0  # how long a command waits for a cluster that does not answer
OWN = {
    "allow.auto.create.topics": "false",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "2000",
    "default.api.timeout.ms": "10000",  # a broker that has just gone must not keep it from the others
}
THROTTLE = 50_000_000


@dataclass(frozen=True, slots=True)
class Duty:
    """What a long-running balancer does by itself. Without `balance_every_s` it only heals and finishes runs."""

    heal_after_s: float = 600.0
    balance_every_s: float = 0.0
    throttle: int = THROTTLE
    goals: tuple[Goal, ...] = tuple(GOALS.values())
    limits: Limits = field(default_factory=Limits)
    look_every_s: float = 10.0


class Balancer:
    """A member of the group of balancers, with the journal. `client` is for all requests to the cluster."""

    def __init__(self, client: Client, store: Store[Row], journal: Journal, election: Election) -> None:
        self.client, self.journal = client, journal
        self._store, self._election = store, election
        self._looked = self._balanced = -1e9
        self._said = ""

    @property
    def is_active(self) -> bool:
        return self._election.leads

    def wait_for_election(self, timeout_s: float = ELECTION_S) -> str:
        """Return the URL of the active balancer, perhaps this one; empty if there is none yet."""
        leader = self._election.wait(timeout_s)
        return leader.url if leader else ""

    def write(self, rows: Sequence[Row]) -> None:
        """Append rows to the journal as the active balancer, and replay them."""
        self._store.update(lambda: (list(rows), None))

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows as anybody, and wait until they are replayed here; the active balancer sees them too."""
        if self.is_active:
            return self.write(rows)
        writer = Writer(self.client, TOPIC, None)
        writer.take_over(WRITE_S)
        written = writer.append([CODEC.encode(row) for row in rows], WRITE_S)
        self._store.wait_for(written[-1].offset + 1)
        return None

    def executor(self, pace: Pace | None = None) -> Executor:
        return Executor(KafkaCluster(self.client), self.journal, self.write, time.monotonic, pace)

    def submit(self, made: Plan, purpose: str, throttle: int) -> Run:
        """Hand in a plan; the active balancer carries it out."""
        alive = tuple(broker.id for broker in made.before.brokers if broker.alive)
        away = tuple(broker.id for broker in made.before.brokers if not broker.alive)
        run = Run(uuid4().hex, purpose, RUNNING, throttle, int(time.time() * 1000), away, alive)
        self.append(submission(self.journal, run, made.moves))
        return run

    def resume(self) -> None:
        """Let the run go on."""
        if self.journal.run is not None:
            self.append(resumption(self.journal.run))

    def want(self, wish: Wish) -> None:
        """Say what is wanted of the run. One that does not run begins again for it, so that it comes to an end."""
        run = self.journal.run
        if run is not None:
            rows: list[Row] = [Wanted(run.id, wish)]
            self.append(rows if run.state == RUNNING else [resumption(run)[1], *rows])

    def progress(self) -> Progress:
        """Tell how far the run is that another balancer carries out."""
        run = self.journal.run
        if run is None:
            return Progress("")
        return progress(run, self.journal.moves(), KafkaCluster(self.client).view())

    def work(self, executor: Executor, duty: Duty) -> None:
        """Do one round as a long-running balancer: carry on with the run; if there is none, look after the cluster."""
        if not self.is_active:
            return
        try:
            executor.tick()
            run = self.journal.run
            if (run is None or run.state != RUNNING) and time.monotonic() - self._looked >= duty.look_every_s:
                self._look_after(duty)
                self._looked = time.monotonic()
        except ClientError as error:
            if error.error in FENCED:
                self._election.renew()
            log.warning("will try again: %s", error)

    def _look_after(self, duty: Duty) -> None:
        model = observe(self.client)
        now_ms = int(time.time() * 1000)
        rows = healing.sightings(model, self.journal.away, now_ms)
        if rows:
            self.write(rows)
        due = healing.due(model, self.journal.away, now_ms, duty.heal_after_s)
        if due:
            self._heal(model, due, duty)
        elif duty.balance_every_s and time.monotonic() - self._balanced >= duty.balance_every_s:
            self._balanced = time.monotonic()
            run = self.journal.run
            if not self.journal.away and (run is None or run.state != PAUSED):
                self._begin(plan(model, duty.goals, duty.limits), "balance", duty)

    def _heal(self, model: Model, due: tuple[int, ...], duty: Duty) -> None:
        names = ", ".join(map(str, due))
        made = plan(model, (), duty.limits)
        if made.moves:
            log.info("broker %s stays away: %d replicas are made anew", names, healing.left(model, due))
            self._begin(made, f"heal {names}", duty)
        else:
            self._say(f"broker {names} stays away, and its replicas cannot be made anew: {' '.join(made.problems)}")

    def _begin(self, made: Plan, purpose: str, duty: Duty) -> None:
        if made.moves:
            log.info("%s: %d moves, %d bytes", purpose, len(made.moves), made.bytes)
            self.submit(made, purpose, duty.throttle)

    def _say(self, sentence: str) -> None:
        """Log a sentence once."""
        if sentence != self._said:
            self._said = sentence
            log.warning("%s", sentence)


@contextmanager
def opened(settings: Mapping[str, Any]) -> Iterator[Balancer]:
    """Open a balancer that has read its journal and stands for election, for the length of a `with`."""
    journal = Journal()
    given = {**settings, **OWN}
    with ExitStack() as parts:
        client = parts.enter_context(Client(given))
        brokers = len(client.refresh().brokers)
        prepare(client, TOPIC, replicas=min(REPLICAS, brokers))
        store = Store(
            Client(given),
            TOPIC,
            CODEC,
            State(journal.replay, journal.reset),
            noop=NOOP,
            transactional_id=TOPIC,
            timeout_s=WRITE_S,
        )
        parts.callback(store.close)
        store.start(START_S)
        member = parts.enter_context(Client(given))
        identity = Identity(socket.gethostname(), os.getpid(), "balancer")
        election = Election(member, GROUP, GROUP_TYPE, identity, sticky=True, before_leading=lambda: _take_over(store))
        parts.callback(election.close)
        election.start()
        yield Balancer(client, store, journal, election)


def _take_over(store: Store[Row]) -> bool:
    try:
        store.take_over()
    except ClientError as error:
        log.warning("cannot become the active balancer: %s", error)
        return False
    return True


def carry_out(balancer: Balancer, show: Callable[[Progress], None], pace: Pace | None = None) -> Progress:
    """Carry out the run to its end, or watch the balancer that does. An interrupt calls off what is under way, takes
    the throttles away, and leaves a run that can be resumed."""
    executor = balancer.executor(pace)
    answered = time.monotonic()
    try:
        while True:
            try:
                seen = executor.tick() if balancer.is_active else balancer.progress()
                answered = time.monotonic()
            except ClientError as error:
                if not error.retriable or time.monotonic() - answered > OUTAGE_S:
                    raise
                seen = Progress(RUNNING, trouble=(str(error).rstrip("."),))
            show(seen)
            if seen.state != RUNNING:
                return seen
            time.sleep(TICK_S)
    except (KeyboardInterrupt, ClientError):
        if balancer.is_active:
            _halt(executor)
        raise


def _halt(executor: Executor) -> None:
    """Call off what is under way and take the throttles away, as far as the cluster lets us."""
    executor.halted = True
    deadline = time.monotonic() + HALT_S
    while time.monotonic() < deadline:
        with suppress(ClientError):
            if executor.tick().state != RUNNING:
                return
        time.sleep(TICK_S / 4)


def run_for_good(
    settings: Mapping[str, Any], duty: Duty, is_stopped: Callable[[float], bool], ready: Callable[[], None]
) -> None:
    """Run a long-running balancer until `is_stopped`, which waits for so many seconds, returns true. A run that is
    under way then goes on when the next balancer becomes active."""
    with opened(settings) as balancer:
        ready()
        executor = balancer.executor()
        while not is_stopped(TICK_S):
            balancer.work(executor, duty)
        run = balancer.journal.run
        if balancer.is_active and run is not None and run.state == RUNNING:
            wish = balancer.journal.wish()
            _halt(executor)
            if wish is Wish.RUN and balancer.journal.run is not None and not balancer.journal.run.is_over:
                balancer.write(resumption(run))
