"""A registry as a process: settings, topic, election and HTTP, put together and taken apart."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.types import ASGIApp

from moldau.client import Client, ClientError
from moldau.http import HttpError, Listen, ServeError, parse_listen, run
from moldau.registry.app import THREADS, Parts, application
from moldau.registry.commands import Registry
from moldau.registry.election import Election, Identity
from moldau.registry.forwarding import Forwarder
from moldau.registry.parsing import Schemas
from moldau.registry.store import Store
from moldau.registry.topic import Topic, TopicError, prepare
from moldau.settings import CLIENT, HTTP, REGISTRY, ServiceSettings, SettingError, client_inert_names, rows

log = logging.getLogger(__name__)
PREFIX = "kafkastore."


def serve(
    overrides: tuple[str, ...] = (),
    *,
    bootstrap_servers: str | None = None,
    listen: str | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Run a registry until it is told to stop. SettingError or ServeError where it cannot be."""
    settings = ServiceSettings([HTTP, REGISTRY], overrides, prefixes=(PREFIX,))
    client = client_settings(settings, bootstrap_servers)
    place = parse_listen(listen or settings["listeners"], settings)
    run(place, settings, lambda bound: registry(settings, client, bound), stop_with_stdin=stop_with_stdin)


def client_settings(settings: ServiceSettings, bootstrap_servers: str | None) -> dict[str, str]:
    """What the Kafka clients are given: the brokers, and all that stands under `kafkastore.`"""
    servers = bootstrap_servers or settings["kafkastore.bootstrap.servers"]
    if not servers:
        raise SettingError("kafkastore.bootstrap.servers", None, "name a broker with --bootstrap-servers HOST:PORT")
    given = settings.under(PREFIX)
    for name in given:
        if name not in rows(CLIENT) and name not in client_inert_names():
            raise SettingError(PREFIX + name, None, "there is no such setting")
    return {**given, "bootstrap.servers": servers, "client.id": given.get("client.id", "schema-registry")}


@contextlib.contextmanager
def registry(settings: ServiceSettings, client: dict[str, str], listen: Listen) -> Iterator[ASGIApp]:
    """A registry that has read its topic, for the length of a `with`."""
    store = Store()
    topic = _topic(settings, client, store)
    quick = {
        "session.timeout.ms": settings["kafkagroup.session.timeout.ms"],
        "heartbeat.interval.ms": settings["kafkagroup.heartbeat.interval.ms"],
        "max.poll.interval.ms": settings["kafkagroup.rebalance.timeout.ms"],
    }
    with contextlib.ExitStack() as open_parts:
        open_parts.callback(topic.close)
        kafka = open_parts.enter_context(Client({**client, **quick}))
        election = Election(
            kafka,
            settings["schema.registry.group.id"],
            identity(settings, listen),
            sticky=settings["leader.election.sticky"],
            before_leading=lambda: _catch_up(topic),
        )
        open_parts.callback(election.close)
        threads = open_parts.enter_context(ThreadPoolExecutor(THREADS, "registry"))
        parts = Parts(
            _registry(settings, store),
            topic,
            election,
            Forwarder(settings),
            settings,
            threads,
            threading.Lock(),
            kafka.refresh().id or "",
        )
        election.start()
        yield application(parts)


def _registry(settings: ServiceSettings, store: Store) -> Registry:
    return Registry(
        store,
        Schemas(store, settings["schema.cache.size"], strict=settings["schema.providers.reference.versions.strict"]),
        level=settings["schema.compatibility.level"].upper(),
        validate_new=settings["schema.validate.new.schemas"],
        validate_fields=settings["schema.validate.fields"],
        modes_change=settings["mode.mutability"],
    )


def _topic(settings: ServiceSettings, client: dict[str, Any], store: Store) -> Topic:
    """The topic, read to its end; ServeError if it cannot be."""
    until = time.monotonic() + settings.seconds("kafkastore.init.timeout.ms")
    name, replicas = settings["kafkastore.topic"], settings["kafkastore.topic.replication.factor"]
    skip = settings["kafkastore.topic.skip.validation"]
    topic = None
    try:
        prepare(client, name, replicas, until - time.monotonic(), skip_validation=skip)
        topic = Topic(name, client, store, settings.seconds("kafkastore.timeout.ms"))
        topic.start(max(1.0, until - time.monotonic()))
    except (TopicError, ClientError) as error:
        if topic is not None:
            topic.close()
        raise ServeError(f"{error} Is there a broker at {client['bootstrap.servers']}?") from None
    return topic


def _catch_up(topic: Topic) -> bool:
    try:
        topic.catch_up()
    except HttpError as error:
        log.warning("cannot lead: %s", error)
        return False
    return True


def identity(settings: ServiceSettings, listen: Listen) -> Identity:
    """Who this registry is for the others."""
    host = settings["host.name"] or listen.host
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn()
    return Identity(host, listen.port, listen.scheme, settings["leader.eligibility"])
