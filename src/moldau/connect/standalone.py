"""A standalone worker: connectors from files, everything in memory but the offsets of sources, which are in a file.

It is the worker of a cluster with other stores and a group of its own: sources are at least once. REST is there too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from starlette.types import ASGIApp

from moldau.client import Client, ClientError, Record
from moldau.connect import changes, clients, validation
from moldau.connect.app import THREADS, application
from moldau.connect.calls import Parts, named
from moldau.connect.config_topic import CODEC, ConfigState, Row
from moldau.connect.group import Alone
from moldau.connect.jvm import catalogue
from moldau.connect.leading import clear
from moldau.connect.loggers import Loggers
from moldau.connect.mirror import Pair
from moldau.connect.offset_topic import OffsetState
from moldau.connect.process import OWN, Tracking, propose, worker_settings
from moldau.connect.starting import first_of, service_settings
from moldau.connect.status_topic import StatusState
from moldau.connect.threads import Surroundings, Threads
from moldau.connect.worker import DISABLED, Worker, units_of
from moldau.http import HttpError, Listen, ServeError, parse_listen, run
from moldau.settings import ServiceSettings, SettingError

log = logging.getLogger(__name__)
T = TypeVar("T")
FILE = "offset.storage.file.filename"
OF_JAVA = b"\xac\xed"  # how a file begins that Java has serialized


def serve(
    properties: Mapping[str, str],
    connectors: Sequence[dict[str, str | None]],
    *,
    listen: str | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Run connectors until it is told to stop. SettingError or ServeError where that cannot be."""
    if not properties.get("bootstrap.servers"):
        raise SettingError("bootstrap.servers", None, "name a broker")
    if not properties.get(FILE):
        raise SettingError(FILE, None, "name a file for the offsets of sources")
    settings = service_settings(properties)
    place = parse_listen(first_of(listen or settings["listeners"]), settings)
    run(place, settings, lambda at: worker(settings, properties, connectors, at), stop_with_stdin=stop_with_stdin)


@contextlib.contextmanager
def worker(
    settings: ServiceSettings,
    given: Mapping[str, str],
    connectors: Sequence[dict[str, str | None]],
    listen: Listen,
) -> Iterator[ASGIApp]:
    """Run a standalone worker with these connectors for the length of a `with`."""
    own = worker_settings(settings, given, listen)
    own.exactly_once = DISABLED
    state, said = ConfigState(), StatusState()
    statuses, offsets = Statuses(said), FileOffsets(Path(settings[FILE]))
    tracked = Tracking(statuses, said, own.timeout_s).note
    around = Surroundings(
        own.given,
        settings.seconds("offset.flush.interval.ms"),
        own.timeout_s,
        offsets,
        tracked,
        settings["topic.creation.enable"],
    )
    configs = Configs(state)
    one = Worker(own, configs, state, statuses, said, Threads(around), lambda *told: propose(one, *told))
    url = f"{listen.scheme}://{own.worker_id}"
    with contextlib.ExitStack() as parts:
        parts.enter_context(catalogue.use(given))
        admin = parts.enter_context(Client({**clients.basic(given), **OWN}))
        try:
            cluster_id = admin.refresh().id or ""
            for config in connectors:
                _create(configs, state, config, one)
        except ClientError as error:
            raise ServeError(f"{error} Is there a broker at {given['bootstrap.servers']}?") from None
        except HttpError as error:
            raise ServeError(str(error)) from None
        configs.changed = one.wake
        one.on_round.append(lambda: clear(one))
        parts.callback(one.close)
        one.start(Alone(url, lambda: units_of(one.wanted())))
        threads = parts.enter_context(ThreadPoolExecutor(THREADS, "rest"))
        yield application(Parts(one, offsets, admin, cluster_id, url, Loggers(), around), settings, threads)


def _create(configs: Configs, state: ConfigState, config: dict[str, str | None], one: Worker) -> None:
    name = config.get("name") or ""
    validation.refuse_invalid(named(config, name), one.settings)
    configs.update(lambda: changes.create(state, name, config, None))


class Configs:
    """The config topic's place in memory. A row gets its offset from its number."""

    def __init__(self, state: ConfigState) -> None:
        self.position = 0
        self.changed: Callable[[], None] = lambda: None
        self._state, self._lock = state, threading.RLock()

    def wait_for(self, position: int) -> bool:
        return True

    def update(self, decide: Callable[[], tuple[Sequence[Row], T]]) -> T:
        with self._lock:
            rows, answer = decide()
            for row in rows:
                self._state.replay(CODEC.decode(Record(self.position, 0, *CODEC.encode(row))))
                self.position += 1
        self.changed()
        return answer

    def snapshot(self, copy: Callable[[], T]) -> tuple[int, T]:
        with self._lock:
            return self.position, copy()


class Statuses:
    """The status topic's place in memory."""

    def __init__(self, said: StatusState) -> None:
        self._said, self._lock = said, threading.RLock()

    def write(self, rows: Sequence[Pair], timeout_s: float) -> None:
        with self._lock:
            for key, value in rows:
                self._said.replay(key, value)

    def look(self, at: Callable[[], T]) -> T:
        with self._lock:
            return at()


class FileOffsets:
    """The offsets of sources in a file: lines of JSON, a key and a value each, written anew as a whole."""

    topic = ""

    def __init__(self, path: Path) -> None:
        self._path, self._lock, self._state = path, threading.RLock(), OffsetState()
        self._rows: dict[bytes, bytes] = {}
        data = path.read_bytes() if path.exists() else b""
        if data.startswith(OF_JAVA):
            raise SettingError(FILE, str(path), "Java has written it, and only Java can read it; name another file")
        for line in data.splitlines():
            key, value = json.loads(line)
            self._note(key.encode(), value.encode())

    def _note(self, key: bytes, value: bytes | None) -> None:
        self._state.replay(key, value)
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = value

    def sync(self, timeout_s: float) -> None:
        """What is in the file is in memory."""

    def offset(self, connector: str, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        with self._lock:
            return self._state.offset(connector, partition)

    def of(self, connector: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        with self._lock:
            return self._state.of(connector)

    def encode(self, connector: str, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> Pair:
        with self._lock:
            return self._state.encode(connector, partition, offset)

    def put(self, rows: Sequence[Pair], send: Callable[..., None]) -> None:
        self.write(rows, 0)

    def write(self, rows: Sequence[Pair], timeout_s: float) -> None:
        """Replace the file: after a crash it is the one before or the new one."""
        with self._lock:
            for key, value in rows:
                self._note(key, value)
            lines = [json.dumps([key.decode(), value.decode()]) + "\n" for key, value in self._rows.items()]
            beside = self._path.with_name(self._path.name + ".new")
            with beside.open("w", encoding="utf-8") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
