"""A worker: the connectors and tasks that its group has given it.

One thread does the work, round after round: it looks at what is wanted (the config topic), at what it was given (the
group) and at what runs (the engine), starts and stops the difference, and says of each unit what has become of it.
Tasks have threads of their own, which only leave word of their state. The leader's further duties are in `leading.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from moldau.client import ClientError
from moldau.connect import plugins, secrets
from moldau.connect import status_topic as s
from moldau.connect.config_topic import NOWHERE, PAUSED, STARTED, STOPPED, ConfigState, Restart, Row, Tasks
from moldau.connect.connector import SOURCE, Connector, Live, NotYet
from moldau.connect.creation import Creation
from moldau.connect.engine import Engine, Running, TaskSpec
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.group import Group, Unit
from moldau.connect.handling import trace_of
from moldau.connect.status_topic import Status, StatusState
from moldau.http import HttpError, ServeError
from moldau.topicstore import FENCED

log = logging.getLogger(__name__)
T = TypeVar("T")
ROUND_S = 0.5  # between rounds when nothing happens
SOON_S = 0.02  # while something is on its way to end
FORGET_S = 600.0  # a task that has run for so long begins anew with counting its restarts
RESTARTS, RESTART_DELAY = "errors.restart.max", "errors.restart.delay.ms"
DISABLED, ENABLED = "disabled", "enabled"


class Configs(Protocol):
    """The config topic as a store, or a standalone worker's memory."""

    @property
    def position(self) -> int: ...
    def wait_for(self, position: int) -> bool: ...
    def update(self, decide: Callable[[], tuple[Sequence[Row], T]]) -> T: ...
    def snapshot(self, copy: Callable[[], T]) -> tuple[int, T]: ...


class Statuses(Protocol):
    """The status topic, or a standalone worker's memory."""

    def write(self, rows: Sequence[tuple[bytes, bytes | None]], timeout_s: float) -> None: ...
    def look(self, at: Callable[[], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """A connector as the config topic has it."""

    config: Mapping[str, str | None]
    at: int
    target: str
    tasks: Tasks
    is_incomplete: bool
    is_unfenced: bool


@dataclass(slots=True, eq=False)
class Carried:
    """A unit of this worker: the revision that it runs, its task if it is one, and what was said of it last."""

    unit: Unit
    at: int = NOWHERE
    target: str = ""
    running: Running | None = None
    ends_by: float | None = None  # when a task that was told to stop is given up
    is_configured: bool = False  # of a connector: its tasks are written
    live: Live | None = None  # of a connector that runs beside its tasks
    state: str = s.UNASSIGNED
    trace: str | None = None
    version: str | None = None
    told: tuple[str, str | None] | None = None
    restarts: int = 0  # by itself, in a row
    changed_at: float = 0.0  # when its state did


@dataclass(slots=True)
class Settings:
    """What a worker must know of its settings. `given` are those of worker.properties."""

    given: Mapping[str, str]
    worker_id: str
    group_id: str
    exactly_once: str = DISABLED
    graceful_s: float = 5.0
    timeout_s: float = 90.0
    providers: Mapping[str, secrets.Provider] = field(default_factory=dict)


Propose = Callable[[str, list[dict[str, str]]], None]


class Worker:
    """One worker. `propose` hands the configurations of a connector's tasks to the leader."""

    def __init__(
        self,
        settings: Settings,
        configs: Configs,
        state: ConfigState,
        statuses: Statuses,
        said: StatusState,
        engine: Engine,
        propose: Propose,
    ) -> None:
        self.settings, self.configs, self.state = settings, configs, state
        self.statuses, self.said, self.engine = statuses, said, engine
        self.group: Group | None = None
        self.carried: dict[Unit, Carried] = {}
        self.failure: Exception | None = None
        self.on_round: list[Callable[[], None]] = []
        self.on_failure: Callable[[], None] = lambda: None
        self._propose = propose
        self._restarts: deque[Restart | Unit] = deque(maxlen=10_000)
        self._untold: dict[Unit, Status | None] = {}
        self._woken, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._live, name="connect worker", daemon=True)

    # The life of a worker.

    def start(self, group: Group) -> None:
        self.group = group
        self.state.on_restart = self.restart
        self._thread.start()

    def wake(self) -> None:
        """Have a look at once: something has changed."""
        self._woken.set()

    def restart(self, what: Restart | Unit) -> None:
        """Restart what a request names, as far as it is here."""
        self._restarts.append(what)
        self.wake()

    def close(self) -> None:
        """Let the tasks end after what they have begun, and say that nobody has them."""
        self._closing.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(self.settings.graceful_s + self.settings.timeout_s)

    def _live(self) -> None:
        try:
            while not self._closing.is_set():
                is_ending = any(one.ends_by is not None for one in self.carried.values())
                self._woken.wait(SOON_S if is_ending else ROUND_S)
                self._woken.clear()
                self.round()
            self._end()
        except ServeError as error:
            log.error("%s", error)
            self.failure = error
            self.on_failure()
        except Exception as error:
            self.failure = error
            self.on_failure()
            raise

    def _end(self) -> None:
        deadline = time.monotonic() + self.settings.graceful_s + 1
        while any(not self._halt(one) for one in list(self.carried.values())) and time.monotonic() < deadline:
            time.sleep(SOON_S)
        for unit, one in self.carried.items():
            if one.state != s.FAILED:
                self._untold[unit] = self._status(one, s.UNASSIGNED)
        self.carried.clear()
        self._tell()

    # One round.

    def round(self) -> None:
        """Bring what runs nearer to what is wanted. What goes wrong with the cluster is tried again."""
        assert self.group is not None
        self.group.check()
        given, is_lost = self.group.look()
        if is_lost:
            log.warning("the group has lost this worker; its tasks stop at once")
            for one in self.carried.values():
                self._release(one)
                if one.running is not None:
                    one.running.abandon()
            self.carried.clear()
        wanted = self.wanted()
        units = frozenset(units_of(wanted))
        self._let_go([unit for unit in self.carried if unit not in given or unit not in units], units)
        for unit in sorted(given & units, key=lambda unit: (unit[0], -1 if unit[1] is None else unit[1])):
            self._carry(unit, wanted[unit[0]])
        self._restart_all(wanted)
        try:
            for duty in self.on_round:
                duty()
            self._tell()
        except ClientError as error:
            log.warning("the cluster is away: %s", error)
            self._renew_if_fenced(error)
        self.group.share_out_if(lambda before: before != units)

    def wanted(self) -> dict[str, Wanted]:
        state = self.state

        def copy() -> dict[str, Wanted]:
            return {
                name: Wanted(
                    row.properties or {},
                    row.at,
                    state.target(name),
                    state.tasks.get(name, Tasks()),
                    name in state.incomplete,
                    name in state.unfenced,
                )
                for name, row in state.connectors.items()
            }

        return self.configs.snapshot(copy)[1]

    def _let_go(self, units: Iterable[Unit], existing: frozenset[Unit]) -> None:
        """Stop what is others' now, or nobody's; when it has ended, the group may give it away."""
        assert self.group is not None
        for unit in units:
            if self._halt(self.carried[unit]):
                del self.carried[unit]
                self._untold.pop(unit, None)
                if unit in existing:
                    self.group.rejoin()

    def _halt(self, one: Carried) -> bool:
        """Stop a task; return whether it has ended. One that takes too long is given up."""
        self._release(one)
        if one.running is None:
            return True
        if one.ends_by is None:
            one.ends_by = time.monotonic() + self.settings.graceful_s
            one.running.stop()
        if not one.running.has_ended:
            if time.monotonic() < one.ends_by:
                return False
            log.warning("%s does not end; it is given up", name_of(one.unit))
        one.running.abandon()
        one.running, one.ends_by = None, None
        return True

    def _release(self, one: Carried) -> None:
        """Stop a connector that runs beside its tasks."""
        if one.live is not None:
            one.live.release(one.unit[0])
            one.live = None

    def _carry(self, unit: Unit, wanted: Wanted) -> None:
        one = self.carried.setdefault(unit, Carried(unit))
        try:
            if unit[1] is None:
                self._carry_connector(one, wanted)
            else:
                self._carry_task(one, unit[1], wanted)
        except NotYet:
            log.debug("%s takes its time", name_of(unit))
        except (ClientError, HttpError) as error:  # the cluster is away, or there is no leader
            log.warning("%s has to wait: %s", name_of(unit), error)
            self._renew_if_fenced(error)
        except Exception as error:  # of code that is not ours; this unit fails, others go on
            log.warning("%s failed: %s", name_of(unit), error)
            one.state, one.trace = s.FAILED, trace_of(error)
            return

    def _renew_if_fenced(self, error: Exception) -> None:
        """Lead anew if another writer of the config topic was here: no further try would succeed otherwise."""
        assert self.group is not None
        if isinstance(error, ClientError) and error.error in FENCED:
            self.group.renew()

    # Connectors.

    def _carry_connector(self, one: Carried, wanted: Wanted) -> None:
        """Let a connector be as it is wanted, and see that its tasks are configured."""
        if (one.at, one.target) != (wanted.at, wanted.target):
            one.at, one.target, one.is_configured = wanted.at, wanted.target, False
            one.trace, one.state, one.version = None, s.UNASSIGNED, None
            self._release(one)
        if one.state == s.FAILED:
            return
        name = one.unit[0]
        if one.live is not None and one.live.has_changed(name):
            one.is_configured = False
        if not one.is_configured:
            plugin, config = self._opened(wanted.config)
            if plugin.kind == SOURCE and self.settings.given.get("topic.creation.enable", "true").lower() != "false":
                Creation.of(config)  # what it says of its topics must make sense
            one.version = plugins.version_of(wanted.config)
            if wanted.target == STARTED:
                one.live = plugin if isinstance(plugin, Live) else None
                self._configure(name, wanted, plugin, config)
            one.is_configured = True
        one.state = {STARTED: s.RUNNING, PAUSED: s.PAUSED, STOPPED: s.STOPPED}[wanted.target]

    def _configure(self, name: str, wanted: Wanted, plugin: Connector, config: Mapping[str, str]) -> None:
        most = int(config.get("tasks.max") or 1)
        texts = wanted_texts(wanted)
        if isinstance(plugin, Live):
            found = plugin.configured(name, config, most, partial(self.engine.offset, name))
            secret = {key: text for key, text in texts.items() if "${" in text}  # kept as references in the topic
            found = [{key: secret.get(key, text) for key, text in one.items()} for one in found]
        else:
            found = plugin.task_configs(texts, most)
        made = [{**one, "task.class": plugin.task_class} for one in found]
        if len(made) > most and config.get("tasks.max.enforce", "true").lower() != "false":
            raise ConnectError(
                f"The connector {name} has generated {len(made)} tasks, which is greater than {most}, "
                "the maximum number of tasks it is configured to create."
            )
        same = list(map(dict, wanted.tasks.configs)) == made and wanted.tasks.at > wanted.at
        if not same or wanted.is_incomplete:
            self._propose(name, made)

    def _opened(self, config: Mapping[str, str | None]) -> tuple[Connector, dict[str, str]]:
        """Return the plugin of a connector, and its config with secrets resolved."""
        resolved = secrets.resolve(config, self.settings.providers)
        plugin = plugins.find(resolved.get("connector.class", ""))
        if plugin is None:
            raise ConfigError(plugins.not_found(resolved.get("connector.class", "")))
        return plugin.load(), resolved

    # Tasks.

    def _carry_task(self, one: Carried, number: int, wanted: Wanted) -> None:
        tasks = wanted.tasks
        if one.at != tasks.at:
            if not self._halt(one):
                return
            one.at, one.trace, one.state, one.target, one.restarts = tasks.at, None, s.UNASSIGNED, wanted.target, 0
            one.version = plugins.version_of(wanted.config)
        if one.ends_by is not None:  # it is being restarted
            if not self._halt(one):
                return
            one.state = s.UNASSIGNED
        is_paused = wanted.target == PAUSED
        if one.running is None:
            if one.state != s.FAILED and self._may_start(wanted):
                self._start(one, number, wanted, is_paused)
        elif one.target != wanted.target:
            one.running.pause(is_paused)
        one.target = wanted.target
        if one.state == s.FAILED and is_due(wanted.config, one.restarts, time.monotonic() - one.changed_at):
            one.restarts += 1
            log.info("restart %s of %s", one.restarts, name_of(one.unit))
            self._restart(one)

    def _may_start(self, wanted: Wanted) -> bool:
        plugin, _ = self._opened(wanted.config)
        return not (self.is_exactly_once(plugin) and wanted.is_unfenced)

    def is_exactly_once(self, plugin: Connector) -> bool:
        return plugin.kind == SOURCE and plugin.exactly_once and self.settings.exactly_once == ENABLED

    def _start(self, one: Carried, number: int, wanted: Wanted, is_paused: bool) -> None:
        name = one.unit[0]
        plugin, config = self._opened(wanted.config)
        task_config = secrets.resolve(wanted.tasks.configs[number], self.settings.providers)
        transactional_id = f"{self.settings.group_id}-{name}-{number}"
        spec = TaskSpec(name, number, plugin, config, task_config, self.is_exactly_once(plugin), transactional_id)

        def report(state: str, trace: str | None) -> None:
            if state == s.FAILED and time.monotonic() - one.changed_at > FORGET_S:
                one.restarts = 0
            one.state, one.trace, one.changed_at = state, trace, time.monotonic()
            self.wake()

        one.running = self.engine.start(spec, report, is_paused=is_paused)

    # Restarts.

    def _restart_all(self, wanted: Mapping[str, Wanted]) -> None:
        while self._restarts:
            what = self._restarts.popleft()
            for unit, one in self.carried.items():
                if what == unit or (isinstance(what, Restart) and self._is_meant(what, one)):
                    self._restart(one)

    def _is_meant(self, what: Restart, one: Carried) -> bool:
        """Tell whether a request means a unit: by its state here, or by what was said of it when the request was made.

        A task that is being started again, because the group had lost this worker or the task was configured anew, may
        fail for the reason that the user has removed meanwhile: the answer to the request has promised a restart.
        """
        said = self.statuses.look(lambda: self.said.statuses.get(one.unit))
        return any(is_restarted(what, one.unit, state) for state in (one.state, said.state if said else one.state))

    def _restart(self, one: Carried) -> None:
        one.state, one.trace = s.RESTARTING, None
        self._note(one)
        if one.unit[1] is None:
            one.at = NOWHERE
        elif not self._halt(one):
            return
        one.state = s.UNASSIGNED
        self.wake()

    # What is said of units.

    def _tell(self) -> None:
        for one in self.carried.values():
            self._note(one)
        if self._untold:
            rows, self._untold = self._untold, {}
            try:
                encoded = [s.encode(unit, status) for unit, status in rows.items()]
                self.statuses.write(encoded, self.settings.timeout_s)
            except ClientError:
                self._untold = rows | self._untold
                raise

    def _note(self, one: Carried) -> None:
        now = one.state, one.trace
        if now != one.told and (one.state != s.UNASSIGNED or one.told is not None):
            one.told = now
            self._untold[one.unit] = self._status(one, one.state)

    def _status(self, one: Carried, state: str) -> Status:
        assert self.group is not None
        trace = one.trace if state == s.FAILED else None
        return Status(state, self.settings.worker_id, self.group.generation, one.version, trace)

    def forget(self, units: Iterable[Unit]) -> None:
        """Remove the statuses of units that there are no more."""
        rows = [s.encode(unit, None) for unit in units if unit not in self.carried]
        if rows:
            self.statuses.write(rows, self.settings.timeout_s)

    def forget_topics(self, used: Iterable[tuple[str, str]]) -> None:
        """Remove that connectors have used topics; a task that has not ended here may still use them."""
        carried = {name for name, _ in self.carried}
        rows = [s.encode_topic(name, topic, 0, None) for name, topic in used if name not in carried]
        if rows:
            self.statuses.write(rows, self.settings.timeout_s)


def units_of(wanted: Mapping[str, Wanted]) -> Iterable[Unit]:
    """Return everything that somebody must have: each connector, and each of its tasks."""
    for name, one in wanted.items():
        yield name, None
        if one.target != STOPPED:
            for number in range(len(one.tasks.configs)):
                yield name, number


def is_due(config: Mapping[str, str | None], restarts: int, failed_s: float) -> bool:
    """Tell whether a task that has failed is to be restarted by itself now."""
    most, delay_ms = int(config.get(RESTARTS) or 0), int(config.get(RESTART_DELAY) or 1000)
    return restarts < most and failed_s * 1000 >= delay_ms * 2 ** min(restarts, 16)


def is_restarted(what: Restart, unit: Unit, state: str) -> bool:
    """Tell whether a request to restart means this unit."""
    is_named = unit[0] == what.connector and (what.include_tasks or unit[1] is None)
    return is_named and (not what.only_failed or state == s.FAILED)


def wanted_texts(wanted: Wanted) -> dict[str, str]:
    """Return the config of a connector with references to secrets as they are: they are stored with the tasks."""
    return {name: text for name, text in wanted.config.items() if text is not None}


def name_of(unit: Unit) -> str:
    return f"connector {unit[0]}" if unit[1] is None else f"task {unit[0]}-{unit[1]}"
