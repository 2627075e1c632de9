"""A distributed worker: topics, group, engine and REST, put together and taken apart; starting.py is its process."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp

from moldau.client import Client, ClientError
from moldau.connect import clients, secrets
from moldau.connect.app import THREADS, application
from moldau.connect.calls import Parts, ask_worker
from moldau.connect.changes import set_tasks
from moldau.connect.config_topic import CODEC, NOOP, ConfigState, Row
from moldau.connect.errors import ConfigError
from moldau.connect.group import Workers
from moldau.connect.jvm import catalogue
from moldau.connect.leading import Leading
from moldau.connect.loggers import Loggers
from moldau.connect.mirror import Mirror
from moldau.connect.offset_topic import OffsetState
from moldau.connect.starting import REQUEST
from moldau.connect.status_topic import StatusState, encode_topic
from moldau.connect.threads import OffsetStore, Surroundings, Threads
from moldau.connect.worker import Settings, Worker, units_of
from moldau.http import HttpError, Listen, ServeError
from moldau.settings import CONNECT, ServiceSettings, SettingError, rows
from moldau.topicstore import State, Store, StoreError, prepare

log = logging.getLogger(__name__)
OWN = {"allow.auto.create.topics": "false"}


def worker_settings(settings: ServiceSettings, given: Mapping[str, str], listen: Listen) -> Settings:
    host = settings["rest.advertised.host.name"] or listen.host
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn()
    try:
        providers = secrets.providers(given)
    except ConfigError as error:
        raise SettingError("config.providers", given.get("config.providers"), str(error)) from None
    return Settings(
        {**{name: rows(CONNECT)[name].default or "" for name in CONVERTERS}, **given},
        f"{host}:{settings['rest.advertised.port'] or listen.port}",
        settings["group.id"],
        settings["exactly.once.source.support"].lower(),
        settings.seconds("task.shutdown.graceful.timeout.ms"),
        settings.seconds(REQUEST),
        providers,
    )


CONVERTERS = ("key.converter", "value.converter", "header.converter")


@contextlib.contextmanager
def worker(
    settings: ServiceSettings,
    given: Mapping[str, str],
    listen: Listen,
    on_failure: Callable[[], None] = lambda: None,
    elsewhere: Callable[[Worker], AbstractContextManager[None]] | None = None,
) -> Iterator[ASGIApp]:
    """Run a worker for the length of a `with`; `on_failure` is called if it cannot go on.

    With `elsewhere`, which keeps other workers meanwhile, this one only answers requests.
    """
    kafka = {**clients.basic(given), "client.id": given.get("client.id", "connect")}
    own = worker_settings(settings, given, listen)
    url = f"{listen.scheme}://{own.worker_id}"
    with contextlib.ExitStack() as parts:
        parts.enter_context(catalogue.use(given))
        admin = parts.enter_context(Client({**kafka, **OWN}))
        try:
            prepare_topics(admin, settings)
            state, said, offsets = ConfigState(), StatusState(), OffsetState()
            made: list[Worker] = []
            configs = parts.enter_context(_configs(kafka, settings, own, state, lambda: made and made[0].wake()))
            statuses = parts.enter_context(_mirror(kafka, settings["status.storage.topic"], said, own))
            read = parts.enter_context(_mirror(kafka, settings["offset.storage.topic"], offsets, own))
            cluster_id = admin.refresh().id or ""
        except (StoreError, ClientError) as error:
            raise ServeError(f"{error} Is there a broker at {given['bootstrap.servers']}?") from None
        store = OffsetStore(read, offsets)
        around = Surroundings(
            own.given,
            settings.seconds("offset.flush.interval.ms"),
            own.timeout_s,
            store,
            Tracking(statuses, said, own.timeout_s).note if settings["topic.tracking.enable"] else _ignore,
            settings["topic.creation.enable"],
        )
        one = Worker(own, configs, state, statuses, said, Threads(around), lambda *told: propose(one, *told))
        made.append(one)
        member = parts.enter_context(Client({**kafka, **_of_group(settings, given)}))
        group = Workers(
            member,
            own.group_id,
            url,
            lambda: units_of(one.wanted()),
            lambda: list(one.carried),
            configs.take_over,
            one.wake,
            is_idle=elsewhere is not None,
        )
        one.on_round.append(Leading(one, admin).round)
        parts.callback(group.close)
        parts.callback(one.close)
        group.start()
        one.start(group)
        if elsewhere is not None:
            parts.enter_context(elsewhere(one))
        threads = parts.enter_context(ThreadPoolExecutor(THREADS, "rest"))
        reset = settings["topic.tracking.allow.reset"]
        served = Parts(one, store, admin, cluster_id, url, Loggers(), around, reset, settings["topic.tracking.enable"])
        _await_group(group, one, own.timeout_s)
        one.on_failure = on_failure
        yield application(served, settings, threads)


def _of_group(settings: ServiceSettings, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a member of the group."""
    return clients.membership(given) | {"max.poll.interval.ms": str(settings["rebalance.timeout.ms"])}


def _await_group(group: Workers, one: Worker, timeout_s: float) -> None:
    """Wait until the group has a leader; ServeError if this worker is not let in."""
    deadline = time.monotonic() + timeout_s
    while group.wait(0.2) is None and time.monotonic() < deadline:
        group.check()
    if one.failure is not None:
        raise ServeError(str(one.failure))


def prepare_topics(client: Client, settings: ServiceSettings) -> None:
    """Create the three topics, unless they are there."""
    brokers = len(client.refresh().brokers)
    for what in ("config", "offset", "status"):
        count = 1 if what == "config" else settings[f"{what}.storage.partitions"]
        replicas = min(settings[f"{what}.storage.replication.factor"], brokers)
        prepare(client, settings[f"{what}.storage.topic"], count, replicas=replicas)


@contextlib.contextmanager
def _configs(
    kafka: Mapping[str, str], settings: ServiceSettings, own: Settings, state: ConfigState, changed: Callable[[], Any]
) -> Iterator[Store[Row]]:
    def replay(row: Row) -> None:
        state.replay(row)
        changed()

    store = Store(
        Client({**kafka, **OWN}),
        settings["config.storage.topic"],
        CODEC,
        State(replay, state.reset),
        noop=NOOP,
        transactional_id=f"connect-cluster-{own.group_id}",
        timeout_s=own.timeout_s,
    )
    try:
        store.start(own.timeout_s)
        yield store
    finally:
        store.close()


@contextlib.contextmanager
def _mirror(kafka: Mapping[str, str], topic: str, state: StatusState | OffsetState, own: Settings) -> Iterator[Mirror]:
    mirror = Mirror(Client({**kafka, **OWN}), topic, state.replay, state.reset)
    try:
        mirror.start(own.timeout_s)
        yield mirror
    finally:
        mirror.close()


class Tracking:
    """Notes in the status topic which topics a connector uses, each once."""

    def __init__(self, statuses: Any, said: StatusState, timeout_s: float) -> None:
        self._statuses, self._said, self._timeout_s = statuses, said, timeout_s

    def note(self, connector: str, task: int, topic: str) -> None:
        if topic in self._said.topics.get(connector, ()):
            return
        now = time.time_ns() // 1_000_000
        self._statuses.write([encode_topic(connector, topic, task, now)], self._timeout_s)
        self._said.topics.setdefault(connector, set()).add(topic)  # the topic says so soon


def _ignore(connector: str, task: int, topic: str) -> None:
    return None


def propose(one: Worker, name: str, configs: list[dict[str, str]]) -> None:
    """Write the configurations of a connector's tasks, or have the leader do it."""
    group = one.group
    assert group is not None
    if group.leads:
        one.configs.update(lambda: set_tasks(one.state, name, configs))
        return
    leader = group.leader
    if leader is None:
        raise HttpError(409, "There is no leader just now.")
    body = json.dumps(configs).encode()
    ask_worker(f"{leader.url}/connectors/{quote(name, safe='')}/tasks", body, group.key)
