"""A registry as a process: settings, topic, election and HTTP, put together and taken apart."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.types import ASGIApp

from moldau.client import Client, ClientError
from moldau.http import Listen, ServeError, parse_listen, run
from moldau.registry.app import THREADS, Parts, application
from moldau.registry.commands import Registry
from moldau.registry.keys import records as key_records
from moldau.registry.keys.commands import Keys
from moldau.registry.keys.store import KeyStore
from moldau.registry.keys.topic import KeyTopic
from moldau.registry.parsing import Schemas
from moldau.registry.records import CODEC, NOOP_RECORD, Record
from moldau.registry.store import Store
from moldau.registry.subject_rules import SETTING, SubjectRules
from moldau.settings import CLIENT, HTTP, REGISTRY, ServiceSettings, SettingError, client_inert_names, rows
from moldau.topicstore import Codec, Election, Identity, State, StoreError, prepare
from moldau.topicstore import Store as TopicStore

log = logging.getLogger(__name__)
R = TypeVar("R")
PREFIX = "kafkastore."
KMS_PREFIX = "kms."  # settings of the key management services of shared keys
GROUP_TYPE = "sr"  # as Confluent's
OWN = {"allow.auto.create.topics": "false"}
ADVICE = ", or start with kafkastore.topic.skip.validation=true"


def serve(
    overrides: tuple[str, ...] = (),
    *,
    bootstrap_servers: str | None = None,
    listen: str | None = None,
    start_with_stdin: bool = False,
    stop_with_stdin: bool = False,
) -> None:
    """Run a registry until it is told to stop. SettingError or ServeError where it cannot be."""
    settings = ServiceSettings([HTTP, REGISTRY], overrides, prefixes=(PREFIX, KMS_PREFIX))
    client = client_settings(settings, bootstrap_servers)
    place = parse_listen(listen or settings["listeners"], settings)
    run(
        place,
        settings,
        lambda bound: registry(settings, client, bound),
        start_with_stdin=start_with_stdin,
        stop_with_stdin=stop_with_stdin,
    )


def client_settings(settings: ServiceSettings, bootstrap_servers: str | None) -> dict[str, str]:
    """Return the settings of the Kafka clients: the brokers, and all that stands under `kafkastore.`"""
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
    """Open a registry that has read its topic, for the length of a `with`."""
    store, key_store, rules = Store(), KeyStore(), SubjectRules(settings[SETTING])
    state = State[Record](lambda record: store.replay(*record), store.reset)
    topic = _topic(settings, client, "kafkastore.topic", CODEC, state, NOOP_RECORD)
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
            GROUP_TYPE,
            identity(settings, listen),
            sticky=settings["leader.election.sticky"],
            before_leading=lambda: _take_over(topic, key_topic),
        )
        open_parts.callback(election.close)
        key_state = State[key_records.Record](key_store.replay, key_store.reset)
        key_topic = KeyTopic(
            lambda: _topic(
                settings, client, "dek.registry.topic", key_records.CODEC, key_state, key_records.NOOP_RECORD
            ),
            lambda: election.leads,
        )
        open_parts.callback(key_topic.close)
        threads = open_parts.enter_context(ThreadPoolExecutor(THREADS, "registry"))
        keys = Keys(key_store, settings["dek.registry.max.keys"], settings.under(KMS_PREFIX))
        whole = _registry(settings, store)
        parts = Parts(whole, topic, election, settings, threads, rules, keys, key_topic, kafka.refresh().id or "")
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


def _topic(
    settings: ServiceSettings, client: dict[str, Any], setting: str, codec: Codec[R], state: State[R], noop: R
) -> TopicStore[R]:
    """Open the topic that a setting names and read it to its end; ServeError if that cannot be done."""
    until = time.monotonic() + settings.seconds("kafkastore.init.timeout.ms")
    name = settings[setting]
    kafka = Client({**client, **OWN, "default.api.timeout.ms": settings["kafkastore.init.timeout.ms"]})
    topic = TopicStore(
        kafka,
        name,
        codec,
        state,
        noop=noop,
        transactional_id=f"schema-registry-{name}",
        timeout_s=settings.seconds("kafkastore.timeout.ms"),
    )
    try:
        replicas = min(settings["kafkastore.topic.replication.factor"], len(kafka.refresh().brokers))
        skip = settings["kafkastore.topic.skip.validation"]
        prepare(kafka, name, replicas=replicas, advice=ADVICE, validate=not skip)
        topic.start(max(1.0, until - time.monotonic()))
    except (StoreError, ClientError) as error:
        topic.close()
        raise ServeError(f"{error} Is there a broker at {client['bootstrap.servers']}?") from None
    return topic


def _take_over(*topics: TopicStore[Record] | KeyTopic) -> bool:
    try:
        for topic in topics:
            topic.take_over()
    except ClientError as error:
        log.warning("cannot lead: %s", error)
        return False
    return True


def identity(settings: ServiceSettings, listen: Listen) -> Identity:
    """Return who this registry is for the others."""
    host = settings["host.name"] or listen.host
    if host in ("0.0.0.0", "::"):
        host = socket.getfqdn()
    return Identity(host, listen.port, listen.scheme, settings["leader.eligibility"])
