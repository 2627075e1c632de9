"""A running SQL server: clients, the thread that runs queries, and the application that is served."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from moldau.admin.acting import Acting
from moldau.client import Client, ClientError
from moldau.http import Caller, HttpError, Listen, ServeError
from moldau.http import Service as HttpService
from moldau.serdes.registry import Registry
from moldau.settings import ServiceSettings, SettingError
from moldau.sql.server import access, websocket
from moldau.sql.server.app import Endpoints, generic_error
from moldau.sql.server.broker_topics import BrokerTopics, GroupCheckpoints
from moldau.sql.server.command_topic import CommandTopic
from moldau.sql.server.errors import FORBIDDEN, NO_ACCESS, SERVER_ERROR, ServerError
from moldau.sql.server.limits import Admission, Limits
from moldau.sql.server.planning import REGISTRY_URL, SHARED
from moldau.sql.server.service import Request, Service
from moldau.sql.server.states import WorkerStates
from moldau.sql.upgrades import RUNTIME
from moldau.topicstore import Election, Identity, StoreError

log = logging.getLogger(__name__)
IDLE_S = 0.05  # between two looks for new records, when there were none
RETRY_S = 1.0
ELECTION_S = 10.0
PATIENCE = {"timeout": 5, "max.retries": 1}  # with the registry: a request to the server may take 30 s in all
OF_STATEMENTS = (
    "ksql.connect.url",
    "ksql.dialect",
    "ksql.extension.dir",
    "ksql.internal.topic.replicas",
    "ksql.service.id",
    "ksql.udfs.enabled",
    REGISTRY_URL,
    RUNTIME,
    SHARED,
)
SESSION_MS = 10_000  # after this time without a sign of life another server runs the queries


@contextlib.contextmanager
def application(settings: ServiceSettings, client_settings: dict[str, str], at: Listen) -> Iterator[ASGIApp]:
    """Connect, execute the commands that are there, and give the application for as long as the context is open."""
    with contextlib.ExitStack() as stack:
        try:
            yield _opened(settings, client_settings, at, stack)
        except (ClientError, StoreError) as error:
            raise ServeError(f"{error}") from None


def _opened(
    settings: ServiceSettings, client_settings: dict[str, str], at: Listen, stack: contextlib.ExitStack
) -> ASGIApp:
    client = stack.enter_context(Client(client_settings))
    cluster_id = str(client.refresh().id)
    service_id, url = settings["ksql.service.id"], settings["ksql.schema.registry.url"]
    of_registry = {name: text for name, text in settings.under("ksql.schema.registry.").items() if name != "url"}
    registry = Registry.connect({"url": url, **PATIENCE, **of_registry}) if url else None
    identity = Identity(settings["host.name"] or at.host, at.port, at.scheme)
    group = f"_confluent-ksql-{service_id}_servers"
    election = Election(
        client.sibling(**{"session.timeout.ms": SESSION_MS}),
        group,
        "ksql",
        identity,
        sticky=True,
        before_leading=lambda: True,
    )
    replicas = settings["ksql.internal.topic.replicas"]
    statements = _statements(settings["ksql.queries.file"])
    topics: list[CommandTopic] = []
    states = WorkerStates(client.sibling())
    stack.callback(states.close)

    def commands(made: Service) -> CommandTopic:
        topics.append(CommandTopic(client, service_id, replicas, made.apply))
        return topics[0]

    service = Service(
        BrokerTopics(client.sibling()),
        registry,
        _defaults(settings, headless=statements is not None),
        commands if statements is None else None,
        checkpoints=GroupCheckpoints(client.sibling()),
        runs=lambda: election.leads,
        states=states,
    )
    stack.callback(service.close)
    election.start()
    stack.callback(election.close)
    election.wait(ELECTION_S)
    service.admission = Admission(Limits.of(settings))
    service.address = f"{identity.host}:{identity.port}"
    if statements is None:
        service.live = False
        topics[0].start()
        service.live = True
        stack.callback(topics[0].close)
    else:
        _execute_file(service, statements, settings["ksql.queries.file"])
    runner = _Runner(service)
    runner.start()
    stack.callback(runner.close)
    endpoints = Endpoints(service, cluster_id, _access(settings, client, stack))
    sockets = {websocket.PATH: websocket.Conversation(endpoints)}
    return HttpService(
        endpoints.routes(), settings, "application/json", denied=denied, body_of=generic_error, sockets=sockets
    )


def _defaults(settings: ServiceSettings, headless: bool) -> dict[str, Any]:
    """Return the settings of all statements, which requests may override."""
    given = {f"ksql.{name}": text for name, text in settings.under("ksql.").items()}
    given |= {name: settings[name] for name in OF_STATEMENTS}
    if headless:
        given[RUNTIME] = "local"  # workers read command topics, and there is none
    return {name.replace("ksql.streams.", "", 1): value for name, value in given.items()}


def _statements(file: str) -> str | None:
    """Read the file of a headless server; None if the server is not headless."""
    if not file:
        return None
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise SettingError("ksql.queries.file", file, why) from None


def _execute_file(service: Service, text: str, file: str) -> None:
    """Execute the statements of a headless server: all of them, or it does not start."""
    try:
        service.execute(Request(text))
    except ServerError as error:
        raise ServeError(f"{file}: {error.statement or ''}: {error.message}") from None
    if any(plan.run.runtime == "spark" for plan in service.engine.queries.values()):
        raise ServeError(f"{file}: a server with a file runs its queries itself: leave out SET '{RUNTIME}'='spark'.")
    service.headless = file


def _access(
    settings: ServiceSettings, client: Client, stack: contextlib.ExitStack
) -> Callable[[Caller], access.Access]:
    """Return what checks a caller's rights in Kafka; without `moldau.act.as.caller` roles alone decide."""
    if not settings["moldau.act.as.caller"]:
        return lambda caller: access.anything
    mechanism, most = settings["moldau.act.as.caller.mechanism"], settings["moldau.act.as.caller.max"]
    acting = Acting(client, mechanism, lambda login: client.sibling(**login), Client.close, most)
    stack.callback(acting.close)

    def check(caller: Caller, uses: access.Uses) -> None:
        try:
            access.check(acting.of(caller.name), uses)
        except ClientError as error:
            code = NO_ACCESS if error.error.name.endswith("AUTHORIZATION_FAILED") else SERVER_ERROR
            raise ServerError(code, str(error)) from None

    return lambda caller: partial(check, caller)


def denied(caller: Caller, role: str) -> HttpError:
    return HttpError(403, FORBIDDEN)


class _Runner(threading.Thread):
    """The thread that lets queries work, and ends the process after TERMINATE CLUSTER."""

    def __init__(self, service: Service) -> None:
        super().__init__(name="sql queries", daemon=True)
        self._service, self._ended = service, threading.Event()

    def run(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            if self._service.is_over:
                os.kill(os.getpid(), signal.SIGTERM)
                return
            try:
                pause = 0.0 if self._service.work() else IDLE_S
            except ClientError as error:
                log.warning("Queries wait for Kafka: %s", error)
                pause = RETRY_S

    def close(self) -> None:
        self._ended.set()
        self.join()
